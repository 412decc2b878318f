"""`rookery-top-k-v1`: the frequent values of a column."""

from __future__ import annotations

from rookery.blobs.blob_type import BlobType, Summary
from rookery.model import Place
from rookery.puffin import BlobMetadata
from rookery.sketch.blob_types import TOP_K_V1


def summarize(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The most frequent values."""
    from rookery.sketch.frequent import Frequent  # brings pyarrow, which other blobs do without

    frequent = Frequent.decode(payload, place=Place(file, blob.offset))
    top = ", ".join(f"{value} ({count.value:,.0f})" for value, count in frequent.top(3))
    return {"most_frequent": top or "none", "rows": frequent.count}


BLOB_TYPE = BlobType(TOP_K_V1, "frequent values of a column", "top-k", summarize)
