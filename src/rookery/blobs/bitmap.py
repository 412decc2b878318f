"""`rookery-bitmap-v1`: for each value of a column, the rows that have it."""

from __future__ import annotations

from rookery.blobs.blob_type import BlobType, Summary
from rookery.model import Place
from rookery.puffin import BlobMetadata
from rookery.sketch.blob_types import BITMAP_V1


def describe(payload: bytes, place: Place) -> Summary:
    """How many values have a bitmap of their rows, in how many files."""
    from rookery.sketch.bitmap import BitmapIndex  # brings pyarrow, which other blobs do without

    index = BitmapIndex.decode(payload, place=place)
    return {
        "files": index.files,
        "covered": int(index.covered.sum()),
        "values": len(index.values),
        "nulls": len(index.nulls),
    }


def summarize(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The same, of a blob in a file."""
    return describe(payload, Place(file, blob.offset))


BLOB_TYPE = BlobType(BITMAP_V1, "for each value of a column, the rows that have it", "bitmap", summarize)
