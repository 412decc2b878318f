"""The blob types that are known here, a line each. A blob of any other type is shown and copied as it is."""

from __future__ import annotations

from collections.abc import Mapping

from rookery.blobs import (
    bitmap,
    bloom_matrix,
    deletion_vector,
    hll,
    inverted_theta,
    kll,
    table_theta,
    theta,
    top_k,
)
from rookery.blobs.blob_type import BlobType
from rookery.puffin.verify import PayloadCheck

BLOB_TYPES: tuple[BlobType, ...] = (
    theta.BLOB_TYPE,
    hll.BLOB_TYPE,
    deletion_vector.BLOB_TYPE,
    table_theta.BLOB_TYPE,
    inverted_theta.BLOB_TYPE,
    kll.BLOB_TYPE,
    top_k.BLOB_TYPE,
    bloom_matrix.BLOB_TYPE,
    bitmap.BLOB_TYPE,
)
KNOWN: Mapping[str, BlobType] = {kind.name: kind for kind in BLOB_TYPES}
CHECKS: Mapping[str, PayloadCheck] = {kind.name: kind.check for kind in BLOB_TYPES}


def is_carried(type_name: str) -> bool:
    """Whether blobs of a type mean something in the statistics file of a later snapshot.

    >>> is_carried("apache-datasketches-hll-v1"), is_carried("apache-datasketches-theta-v1")
    (True, False)
    >>> is_carried("of-another-writer-v3")  # its own snapshot id states what it describes
    True
    """
    return type_name not in KNOWN or KNOWN[type_name].is_carried
