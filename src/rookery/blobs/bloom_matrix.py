"""`rookery-bloom-matrix-v1`: the Bloom filters of a column in many files."""

from __future__ import annotations

from rookery.blobs.blob_type import BlobType, Summary
from rookery.model import Place
from rookery.puffin import BlobMetadata
from rookery.sketch.blob_types import BLOOM_MATRIX_V1


def summarize(blob: BlobMetadata, payload: bytes, file: str) -> Summary:
    """How many files have a Bloom filter, of which size, and for which rate of false positives."""
    from rookery.sketch.bloom_matrix import BloomMatrix  # brings numba, which other blobs do without

    matrix = BloomMatrix.decode(payload, place=Place(file, blob.offset))
    return {
        "files": matrix.files,
        "covered": len(matrix.ordinals),
        "blocks": matrix.blocks,
        "false_positive_rate": matrix.fpp,
    }


BLOB_TYPE = BlobType(
    BLOOM_MATRIX_V1, "Bloom filters of a column, one for each of many files", "bloom-matrix", summarize
)
