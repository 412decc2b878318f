"""`apache-datasketches-theta-v1`: distinct values of a column, as Iceberg and Trino store them."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.blobs.blob_type import BlobType, Summary
from rookery.blobs.ndv import NDV, check_ndv
from rookery.model import Check, Place
from rookery.puffin import THETA_V1, BlobMetadata
from rookery.sketch import ThetaSketch


def summarize(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The number of distinct values, with bounds, and how much the sketch keeps."""
    sketch = ThetaSketch.decode(payload, place=Place(file, blob.offset))
    return {NDV: sketch.estimate(), "hashes": len(sketch.hashes), "theta": sketch.share}


def check(subject: str, blob: BlobMetadata, payload: bytes) -> Iterator[Check]:
    """Check the sketch, and its `ndv` if it states one."""
    return check_ndv(subject, blob, "a compact theta sketch", lambda: ThetaSketch.decode(payload).estimate())


# Not carried: Spark plans with every theta blob of the file, whichever snapshot the blob is of.
BLOB_TYPE = BlobType(
    name=THETA_V1, holds="distinct values of a column", page="theta", summarize=summarize, check_payload=check
)
