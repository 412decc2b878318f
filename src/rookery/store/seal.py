"""Seals: a checksum on every blob of states and segments, so that a flipped bit is noticed, not believed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b

from rookery.model import FormatError, Place
from rookery.puffin import Blob, BlobMetadata, FileMetadata, Reader, Writer
from rookery.puffin.footer import encode_footer

CHECKSUM = "checksum"
HEAD_CHECKSUM = "head-checksum"
HEAD_SIZE = "head-size"


class DamagedError(FormatError):
    """A file that is kept beside a table is not as it was written."""


class SealingWriter(Writer):
    """A Puffin writer that puts a checksum on each blob."""

    def add(self, blob: Blob, head: int = 0) -> BlobMetadata:
        """Append a blob with its checksum; one that is read by ranges has another for its *head* alone."""
        said = {**blob.properties, CHECKSUM: _checksum(blob, blob.payload)}
        if head:
            said |= {HEAD_SIZE: str(head), HEAD_CHECKSUM: _checksum(blob, blob.payload[:head])}
        return super().add(replace(blob, properties=said))


def read_sealed(reader: Reader, blobs: Iterable[BlobMetadata]) -> Iterator[tuple[BlobMetadata, bytes]]:
    """Read payloads in the order of the file, each against its checksum."""
    for blob, payload in reader.read_many(blobs):
        expected, found = blob.properties.get(CHECKSUM), _checksum(blob, payload)
        if expected != found:
            raise DamagedError(Place(reader.source.name, blob.offset), f"the checksum {expected}", found)
        yield blob, payload


def read_head(reader: Reader, blob: BlobMetadata) -> bytes:
    """Read the head of a payload, against its checksum; what follows it vouches for itself."""
    size = blob.properties.get(HEAD_SIZE, "")
    if not size.isascii() or not size.isdigit():
        raise DamagedError(Place(reader.source.name, blob.offset), f"the property {HEAD_SIZE}", repr(size))
    head = reader.read_range(blob, 0, int(size))
    expected, found = blob.properties.get(HEAD_CHECKSUM), _checksum(blob, head)
    if expected != found:
        raise DamagedError(Place(reader.source.name, blob.offset), f"the checksum {expected}", found)
    return head


def footer_checksum(metadata: FileMetadata) -> str:
    """Return a checksum of all that a footer says; what it says has the checksums of all the rest."""
    return _digest(encode_footer(metadata))


def _checksum(blob: Blob | BlobMetadata, payload: bytes) -> str:
    """Over the payload and what the footer says of it, since either may be damaged."""
    said = f"{blob.type} {list(blob.fields)} {blob.snapshot_id} {blob.sequence_number}"
    return _digest(said.encode(), payload)


def _digest(*parts: bytes) -> str:
    """Not a CRC: all that ends with its own CRC, as heads and rows of indexes do, has one and the same."""
    digest = blake2b(digest_size=8)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
