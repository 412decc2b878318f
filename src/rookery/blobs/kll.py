"""`rookery-kll-v1`: quantiles of a column."""

from __future__ import annotations

from rookery.blobs.blob_type import BlobType, Summary
from rookery.model import Place
from rookery.puffin import BlobMetadata
from rookery.sketch.blob_types import KLL_V1


def summarize(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The median, and of how many rows."""
    from rookery.sketch.quantiles import Quantiles  # brings pyarrow, which other blobs do without

    quantiles = Quantiles.decode(payload, place=Place(file, blob.offset))
    median = quantiles.at([0.5])
    return {
        "median": median[0] if median else None,
        "rows": quantiles.count,
        "rank_error": quantiles.rank_error,
    }


BLOB_TYPE = BlobType(KLL_V1, "quantiles of a column", "kll", summarize)
