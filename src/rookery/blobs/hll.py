"""`apache-datasketches-hll-v1`: distinct values of a column, in registers."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.blobs.blob_type import BlobType, Summary
from rookery.blobs.ndv import NDV, check_ndv
from rookery.model import Check, Place
from rookery.puffin import BlobMetadata
from rookery.sketch import HllSketch
from rookery.sketch.blob_types import HLL_V1


def summarize(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """The number of distinct values, with bounds, and how the sketch stores them."""
    sketch = HllSketch.decode(payload, place=Place(file, blob.offset))
    return {
        NDV: sketch.estimate(),
        "registers": 1 << sketch.lg_k,
        "kind": sketch.kind.name,
        "mode": sketch.mode.name,
    }


def check(subject: str, blob: BlobMetadata, payload: bytes) -> Iterator[Check]:
    """Check the sketch, and its `ndv` if it states one."""
    return check_ndv(subject, blob, "an HLL sketch", lambda: HllSketch.decode(payload).estimate())


BLOB_TYPE = BlobType(
    name=HLL_V1,
    holds="distinct values of a column",
    page="hll",
    summarize=summarize,
    check_payload=check,
    is_carried=True,
)
