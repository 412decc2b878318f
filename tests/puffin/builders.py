"""What the tests of this room are made of: files, good ones by the writer and bad ones by hand."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import lz4.frame
import msgspec
import zstandard
from pyroaring import BitMap
from zlib_ng import zlib_ng

from rookery.io import BytesSink, BytesSource
from rookery.model import FormatError, Place, RookeryError
from rookery.puffin import (
    DELETION_VECTOR_V1,
    THETA_V1,
    Blob,
    BlobMetadata,
    DeletionVector,
    Limits,
    Writer,
    open_puffin,
)
from rookery.puffin.deletion_vector import MAGIC as VECTOR_MAGIC
from rookery.puffin.layout import MAGIC, Tail
from rookery.sketch import ThetaSketch

NAME = "s3://bucket/file.puffin"
SMALL = Limits(footer=1 << 20, blob=1 << 20)


# -- whole files


def puffin(*blobs: Blob, **options: Any) -> bytes:
    """A file by the writer."""
    sink = BytesSink()
    with Writer(sink, **options) as writer:
        for blob in blobs:
            writer.add(blob)
    assert sink.data is not None
    return sink.data


def source(data: bytes) -> BytesSource:
    return BytesSource(data, NAME)


def assemble(
    footer: Any,
    body: bytes = b"",
    *,
    flags: int = 0,
    payload_size: int | None = None,
    header: bytes = MAGIC,
    before: bytes = MAGIC,
    end: bytes = MAGIC,
) -> bytes:
    """A file by hand: *footer* is the payload's bytes, or the document to be written as JSON."""
    payload = footer if isinstance(footer, bytes) else msgspec.json.encode(footer)
    size = len(payload) if payload_size is None else payload_size
    return header + body + before + payload + struct.pack("<iI", size, flags) + end


def described(offset: int = 4, length: int = 0, **changes: Any) -> dict[str, Any]:
    """A blob's JSON; underscores in *changes* stand for dashes, and ... takes a key away."""
    document: dict[str, Any] = {
        "type": "opaque",
        "fields": [1],
        "snapshot-id": 2,
        "sequence-number": 3,
        "offset": offset,
        "length": length,
    }
    document |= {key.replace("_", "-"): value for key, value in changes.items()}
    return {key: value for key, value in document.items() if value is not ...}


def with_stored(*stored: tuple[bytes, dict[str, Any]], **options: Any) -> bytes:
    """A file whose blobs are stored just so, each with changes to its JSON."""
    body, blobs = b"", []
    for data, changes in stored:
        blobs.append(described(len(MAGIC) + len(body), len(data), **changes))
        body += data
    return assemble({"blobs": blobs, "properties": {"created-by": "hand"}}, body, **options)


def replace_tail(data: bytes, **changes: Any) -> bytes:
    tail = Tail.unpack(data)._replace(**changes)
    return data[: -len(tail.pack())] + tail.pack()


def read_everything(data: bytes, limits: Limits = SMALL) -> list[tuple[BlobMetadata, Any]] | FormatError:
    """Read and decode all of a file, or return the error, which must say where and why."""
    try:
        reader = open_puffin(source(data), limits=limits)
        return [(blob, _decoded(blob, payload)) for blob, payload in reader.read_many(reader.metadata.blobs)]
    except RookeryError as error:
        found = error
    assert isinstance(found, FormatError), repr(found)
    assert found.place.file == NAME
    assert found.place.offset >= 0
    assert found.expected
    assert found.found
    return found


def fails(data: bytes, limits: Limits = SMALL) -> FormatError:
    """Return the error of a file that must not be read."""
    found = read_everything(data, limits)
    assert isinstance(found, FormatError), found
    return found


def _decoded(blob: BlobMetadata, payload: bytes) -> Any:
    if blob.type == DELETION_VECTOR_V1:
        return DeletionVector.from_blob(blob, payload, NAME)
    if blob.type == THETA_V1:
        sketch = ThetaSketch.decode(payload, place=Place(NAME, blob.offset))
        return sketch, sketch.estimate()
    return payload


@contextmanager
def traced_memory() -> Iterator[Callable[[], int]]:
    """Trace what Python allocates; what is yielded tells the peak so far."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# -- frames


def zstd_unsized(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


def lz4_unsized(data: bytes) -> bytes:
    return lz4.frame.compress(data, store_size=False)


def zstd_claiming(data: bytes, size: int) -> bytes:
    """A zstd frame of at most 255 bytes of content that claims another size."""
    frame = bytearray(zstandard.ZstdCompressor(level=3).compress(data))
    assert len(data) < 256
    assert frame[5] == len(data)
    frame[5] = size
    return bytes(frame)


def lz4_claiming(data: bytes, size: int) -> bytes:
    """An LZ4 frame that claims another size, its header's checksum put right."""
    frame = bytearray(lz4.frame.compress(data, store_size=True))
    frame[6:14] = struct.pack("<Q", size)
    for frame[14] in range(256):
        try:
            if lz4.frame.get_frame_info(bytes(frame))["content_size"] == size:
                return bytes(frame)
        except RuntimeError:
            continue
    raise AssertionError("one of 256 checksums must fit")


# -- deletion vectors


def sealed(vector: bytes, magic: bytes = VECTOR_MAGIC) -> bytes:
    """Any bytes as a deletion vector's payload, with the length and the CRC that belong to them."""
    body = magic + vector
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib_ng.crc32(body))


def vector_of(bitmaps: Iterable[tuple[int, bytes]], count: int | None = None) -> bytes:
    """A vector by hand out of keys and serialized 32-bit bitmaps."""
    parts = [struct.pack("<I", key) + bitmap for key, bitmap in bitmaps]
    return struct.pack("<Q", len(parts) if count is None else count) + b"".join(parts)


def bitmap32(*values: int) -> bytes:
    return BitMap(values).serialize()
