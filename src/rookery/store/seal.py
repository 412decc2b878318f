"""Seals: a checksum on every blob of states and segments, so that a flipped bit is noticed, not believed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from rookery.model import FormatError, Place
from rookery.puffin import Blob, BlobMetadata, Reader, Writer

CHECKSUM = "crc-32"


class DamagedError(FormatError):
    """A file that is kept beside a table is not as it was written."""


class SealingWriter(Writer):
    """A Puffin writer that puts a checksum on each blob."""

    def add(self, blob: Blob) -> BlobMetadata:
        """Append a blob with its checksum."""
        seal = _checksum(blob, blob.payload)
        return super().add(replace(blob, properties={**blob.properties, CHECKSUM: seal}))


def read_sealed(reader: Reader, blobs: Iterable[BlobMetadata]) -> Iterator[tuple[BlobMetadata, bytes]]:
    """Read payloads in the order of the file, each against its checksum."""
    for blob, payload in reader.read_many(blobs):
        expected, found = blob.properties.get(CHECKSUM), _checksum(blob, payload)
        if expected != found:
            raise DamagedError(Place(reader.source.name, blob.offset), f"the checksum {expected}", found)
        yield blob, payload


def _checksum(blob: Blob | BlobMetadata, payload: bytes) -> str:
    """Over the payload and what the footer says of it, since either may be damaged."""
    said = f"{blob.type} {list(blob.fields)} {blob.snapshot_id} {blob.sequence_number}"
    return f"{zlib.crc32(payload, zlib.crc32(said.encode())):08x}"
