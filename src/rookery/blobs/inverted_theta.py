"""`rookery-inverted-theta-v1`: the theta sketches of many files in one."""

from __future__ import annotations

from rookery.blobs.blob_type import BlobType, Summary
from rookery.blobs.ndv import NDV
from rookery.model import Place
from rookery.puffin import BlobMetadata
from rookery.sketch import InvertedTheta
from rookery.sketch.blob_types import INVERTED_THETA_V1


def summarize(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The number of distinct values in all files of the group, and how many files there are."""
    theta = InvertedTheta.decode(payload, place=Place(file, blob.offset))
    return {
        NDV: theta.sketch().estimate(),
        "files": theta.files,
        "hashes": len(theta.hashes),
        "theta": theta.share,
    }


BLOB_TYPE = BlobType(
    INVERTED_THETA_V1, "distinct values of a column in each of many files", "inverted-theta", summarize
)
