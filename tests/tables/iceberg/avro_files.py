"""Avro files made by hand: an encoder that follows the writer's schema, and a file system in memory."""

from __future__ import annotations

import bz2
import io
import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import zstandard

from rookery.tables.iceberg.manifest_list import Manifest

SYNC = bytes(range(16))


def number(value: int) -> bytes:
    """A number in zigzag form."""
    left = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes(out) + bytes([left])


def sized(data: bytes) -> bytes:
    return number(len(data)) + data


class Encoder:
    """Encodes values: dicts for records, (branch, value) for unions, pairs for maps."""

    def __init__(self, *, negative_counts: bool = False) -> None:
        self.names: dict[str, Any] = {}
        self.negative_counts = negative_counts

    def encode(self, schema: Any, value: Any) -> bytes:
        if isinstance(schema, list):
            branch, inner = value
            return number(branch) + self.encode(schema[branch], inner)
        if isinstance(schema, str):
            return self._plain(schema, value) if schema not in self.names else self._named(schema, value)
        kind = schema["type"]
        if kind in ("record", "fixed", "enum"):
            self.names[schema["name"]] = schema
            return self._named(schema["name"], value)
        if kind == "array":
            return self._blocks([self.encode(schema["items"], item) for item in value])
        if kind == "map":
            return self._blocks([sized(key.encode()) + self.encode(schema["values"], v) for key, v in value])
        return self.encode(kind, value)

    def _named(self, name: str, value: Any) -> bytes:
        schema = self.names[name]
        if schema["type"] == "record":
            return b"".join(self.encode(field["type"], value[field["name"]]) for field in schema["fields"])
        return number(value) if schema["type"] == "enum" else bytes(value)

    def _blocks(self, parts: Sequence[bytes]) -> bytes:
        """Two blocks where there are enough items for them."""
        half = len(parts) // 2
        out = b""
        for some in (parts[:half], parts[half:]):
            if some and self.negative_counts:
                out += number(-len(some)) + sized(b"".join(some))
            elif some:
                out += number(len(some)) + b"".join(some)
        return out + number(0)

    def _plain(self, kind: str, value: Any) -> bytes:
        match kind:
            case "null":
                return b""
            case "boolean":
                return bytes([value])
            case "int" | "long":
                return number(value)
            case "float":
                return struct.pack("<f", value)
            case "double":
                return struct.pack("<d", value)
            case "string":
                return sized(value.encode())
        return sized(value)


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _zstd_without_size(data: bytes) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(data) + packer.flush()


CODECS = {
    "null": bytes,
    "deflate": _deflate,
    "zstandard": lambda data: zstandard.ZstdCompressor().compress(data),
    "zstandard, of unknown size": _zstd_without_size,
    "snappy": lambda data: (
        pa.compress(data, codec="snappy", asbytes=True) + zlib.crc32(data).to_bytes(4, "big")
    ),
    "bzip2": bz2.compress,
}


def container(
    schema: Any, records: Iterable[bytes], codec: str = "null", per_block: int = 1000, **metadata: bytes
) -> bytes:
    """A whole file."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    header = {"avro.schema": text, "avro.codec": codec.split(",")[0].encode(), **metadata}
    out = [b"Obj\x01", number(len(header))]
    out += [sized(key.encode()) + sized(value) for key, value in header.items()]
    out += [number(0), SYNC]
    records = list(records)
    for start in range(0, len(records), per_block):
        some = records[start : start + per_block]
        out += [number(len(some)), sized(CODECS[codec](b"".join(some))), SYNC]
    return b"".join(out)


class MemoryIO:
    """As much of PyIceberg's FileIO as reading takes."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    def new_input(self, path: str) -> MemoryInput:
        return MemoryInput(self.files, path)


class MemoryInput:
    def __init__(self, files: Mapping[str, bytes], path: str) -> None:
        self.files, self.path = files, path

    def open(self, seekable: bool = True) -> io.BytesIO:
        if self.path not in self.files:
            raise FileNotFoundError(self.path)
        return io.BytesIO(self.files[self.path])


def listed(path: str, *, sequence_number: int = 5, spec_id: int = 0, content: int = 0) -> Manifest:
    """A manifest of which only its place is of interest."""
    return Manifest(path, 1, spec_id, content, sequence_number, 0, 7, None, None, None, None, None, None, ())
