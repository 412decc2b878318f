"""Copying a Puffin file: blobs selected, dropped or recompressed, all others byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rookery.model import UsageError
from rookery.puffin import codecs
from rookery.puffin.metadata import DELETION_VECTOR_V1, Blob, BlobMetadata, WrittenFile
from rookery.puffin.reader import Reader
from rookery.puffin.writer import Writer

KEEP = "keep"


def copy_blobs(
    reader: Reader, writer: Writer, wanted: Callable[[int, BlobMetadata], bool], codec: str
) -> WrittenFile:
    """Copy the blobs that are *wanted* (by number and description), in the order of the footer.

    *codec* is a codec's name or `"keep"`. A blob whose stored form would not change is copied as is, and so
    is a deletion vector, which must stay as it is.
    """
    for index, blob in enumerate(reader.metadata.blobs):
        if not wanted(index, blob):
            continue
        target = None if codec == codecs.NONE else codec
        if codec == KEEP or target == blob.codec or blob.type == DELETION_VECTOR_V1:
            writer.add_stored(blob, reader.read_stored(blob))
        else:
            writer.add(
                Blob(
                    type=blob.type,
                    payload=reader.read(blob),
                    fields=blob.fields,
                    snapshot_id=blob.snapshot_id,
                    sequence_number=blob.sequence_number,
                    codec=codec,
                    properties=blob.properties,
                    extra=blob.extra,
                )
            )
    return writer.finish()


def selection(
    count: int, numbers: Collection[int], types: Collection[str], dropped_types: Collection[str]
) -> Callable[[int, BlobMetadata], bool]:
    """Make the test for `copy_blobs`: these numbers and types (none named: all), less the dropped."""
    unknown = sorted(number for number in numbers if not 0 <= number < count)
    if unknown:
        raise UsageError(
            f"there is no blob {unknown[0]}",
            hint=f"the file has {count}" + (f": 0 to {count - 1}" if count else ""),
        )

    def wanted(index: int, blob: BlobMetadata) -> bool:
        return (
            (not numbers or index in numbers)
            and (not types or blob.type in types)
            and blob.type not in dropped_types
        )

    return wanted
