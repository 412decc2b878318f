"""Avro's object container files: a header with the writer's schema, then blocks of records.

Iceberg's manifests and manifest lists are such files. Records are read by a program that
`program` makes of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rookery.model import FormatError, Place
from rookery.tables.iceberg.avro.codecs import LARGEST, NULL_CODEC, check_codec, decompress
from rookery.tables.iceberg.avro.interpreter import items, sized, varint

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
_ENOUGH = 1 << 22
_SCHEMA, _CODEC = "avro.schema", "avro.codec"


@dataclass(frozen=True, slots=True)
class Block:
    """Records as they are in a file, decompressed. `end` is where the next block begins."""

    place: Place
    count: int
    data: bytes
    end: int


@dataclass(frozen=True, slots=True)
class Container:
    """A file whose header has been read."""

    data: bytes
    place: Place
    schema: bytes
    codec: str
    sync: bytes
    start: int  # of the first block

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, many small ones as one: PyIceberg writes a block for every file."""
        start = at = self.start
        parts: list[bytes] = []
        count = size = 0
        while at < len(self.data):
            records, plain, at = self._block(at)
            parts.append(plain)
            count += records
            size += len(plain)
            if size >= _ENOUGH or at >= len(self.data):
                yield Block(self.place.at(start), count, b"".join(parts), at)
                start, parts, count, size = at, [], 0, 0

    def _block(self, at: int) -> tuple[int, bytes, int]:
        """The records of a block, their bytes, and where the next block begins."""
        count, begin = varint(self.data, at)
        size, begin = sized(self.data, begin) if begin >= 0 else (0, begin)
        end = begin + size
        if begin < 0 or count < 0 or end + SYNC_SIZE > len(self.data):
            raise FormatError(self.place.at(at), "a block with its count, its size and so many bytes", "none")
        if self.data[end : end + SYNC_SIZE] != self.sync:
            raise FormatError(self.place.at(end), "the file's sync marker", "other bytes")
        plain = self.data[begin:end]
        if self.codec != NULL_CODEC:
            plain = decompress(self.codec, plain, self.place, at)
        if len(plain) > LARGEST:
            raise FormatError(self.place.at(at), f"a block of at most {LARGEST} bytes", str(len(plain)))
        if count > len(plain):
            raise FormatError(self.place.at(at), f"at most {len(plain)} records in as many bytes", str(count))
        return count, plain, end + SYNC_SIZE


def open_container(data: bytes, file: str) -> Container:
    """Read the header of a file's bytes; *file* is its name in errors."""
    place = Place(file)
    if data[: len(MAGIC)] != MAGIC:
        raise FormatError(place, "an Avro file", f"one that begins with {data[: len(MAGIC)]!r}")
    metadata, at = _metadata(data, len(MAGIC), place)
    if at + SYNC_SIZE > len(data):
        raise FormatError(place.at(at), "a sync marker", "the end of the file")
    if _SCHEMA not in metadata:
        raise FormatError(place, f"{_SCHEMA} in the header", "none")
    codec = metadata[_CODEC].decode("utf-8", "replace") if _CODEC in metadata else NULL_CODEC
    check_codec(codec, place)
    return Container(
        data=data,
        place=place,
        schema=metadata[_SCHEMA],
        codec=codec,
        sync=data[at : at + SYNC_SIZE],
        start=at + SYNC_SIZE,
    )


def _metadata(data: bytes, at: int, place: Place) -> tuple[dict[str, bytes], int]:
    """The header's map from texts to bytes, and where it ends."""
    metadata: dict[str, bytes] = {}
    while True:
        start = at
        count, at = items(data, at)
        if at < 0:
            raise FormatError(place.at(start), "the header's metadata", "no number of entries")
        if count == 0:
            return metadata, at
        for _ in range(count):
            key, at = _bytes(data, at, place)
            value, at = _bytes(data, at, place)
            metadata[key.decode("utf-8", "replace")] = value


def _bytes(data: bytes, at: int, place: Place) -> tuple[bytes, int]:
    length, start = sized(data, at)
    if start < 0:
        raise FormatError(place.at(at), "a key or a value of the header's metadata", "no length that fits")
    return data[start : start + length], start + length
