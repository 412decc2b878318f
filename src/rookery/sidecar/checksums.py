"""Checksums of all blobs of states and segments, so that a flipped bit is detected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b

from rookery.model import FormatError, Place
from rookery.puffin import Blob, BlobMetadata, FileMetadata, Reader, Writer
from rookery.puffin.footer import encode_footer
from rookery.sketch.blob_types import CHECKSUM, HEAD_CHECKSUM, HEAD_SIZE


class DamagedError(FormatError):
    """A file stored beside a table is not as it was written."""


class ChecksumWriter(Writer):
    """A Puffin writer that puts a checksum on each blob, or on the head of those that are read by ranges."""

    def add(self, blob: Blob, head: int = 0) -> BlobMetadata:
        """Append a blob with its checksum: of its *head* alone, if that has the checksums of the rest."""
        if head:
            checksums = {HEAD_SIZE: str(head), HEAD_CHECKSUM: _checksum(blob, blob.payload[:head])}
        else:
            checksums = {CHECKSUM: _checksum(blob, blob.payload)}
        return super().add(replace(blob, properties={**blob.properties, **checksums}))


def read_checked(reader: Reader, blobs: Iterable[BlobMetadata]) -> Iterator[tuple[BlobMetadata, bytes]]:
    """Read payloads in the order of the file, each verified by its checksum."""
    for blob, payload in reader.read_many(blobs):
        if HEAD_SIZE in blob.properties:
            _check(reader, blob, HEAD_CHECKSUM, payload[: _head_size(reader, blob)])
        else:
            _check(reader, blob, CHECKSUM, payload)
        yield blob, payload


def read_head(reader: Reader, blob: BlobMetadata) -> bytes:
    """Read the head of a payload, verified by its checksum; the rest has its own checksums."""
    head = reader.read_range(blob, 0, _head_size(reader, blob))
    _check(reader, blob, HEAD_CHECKSUM, head)
    return head


def _head_size(reader: Reader, blob: BlobMetadata) -> int:
    size = blob.properties.get(HEAD_SIZE, "")
    if not size.isascii() or not size.isdigit():
        raise DamagedError(Place(reader.source.name, blob.offset), f"the property {HEAD_SIZE}", repr(size))
    return int(size)


def _check(reader: Reader, blob: BlobMetadata, name: str, payload: bytes) -> None:
    expected, actual = blob.properties.get(name), _checksum(blob, payload)
    if expected != actual:
        raise DamagedError(Place(reader.source.name, blob.offset), f"the checksum {expected}", actual)


def footer_checksum(metadata: FileMetadata) -> str:
    """Return a checksum of a footer, which itself contains the checksums of all the rest."""
    return _digest(encode_footer(metadata))


def _checksum(blob: Blob | BlobMetadata, payload: bytes) -> str:
    """Over the payload and its description in the footer, since either may be damaged."""
    description = f"{blob.type} {list(blob.fields)} {blob.snapshot_id} {blob.sequence_number}"
    return _digest(description.encode(), payload)


def _digest(*parts: bytes) -> str:
    """Not a CRC: data that ends with its own CRC, as heads and rows of indexes do, has a constant CRC."""
    digest = blake2b(digest_size=8)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
