"""`rookery-bitmap-v1`: for each value of a column, the rows that have it."""

from __future__ import annotations

from rookery.blobs.blob_type import BlobType, Summary
from rookery.model import Place
from rookery.puffin import BlobMetadata
from rookery.sketch.blob_types import BITMAP_V1


def summarize(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """How many values have a bitmap of their rows, in how many files."""
    from rookery.sketch.bitmap import BitmapIndex  # brings pyarrow, which other blobs do without

    index = BitmapIndex.decode(payload, place=Place(file, blob.offset))
    return {
        "files": index.files,
        "covered": int(index.covered.sum()),
        "values": len(index.values),
        "nulls": len(index.nulls),
    }


BLOB_TYPE = BlobType(BITMAP_V1, "for each value of a column, the rows that have it", "bitmap", summarize)
