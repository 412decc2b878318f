"""`rookery-theta-v1`: a theta sketch of a column, or of columns together, in a state."""

from __future__ import annotations

from rookery.blobs import theta
from rookery.blobs.blob_type import BlobType
from rookery.sketch.blob_types import TABLE_THETA_V1

BLOB_TYPE = BlobType(
    TABLE_THETA_V1, "distinct values of a column, or of columns together", "state", theta.summarize
)
