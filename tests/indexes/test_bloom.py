"""Bloom filters of files that several tasks have read: joined first, and folded when they are whole."""

from __future__ import annotations

from rookery.indexes.bloom import BloomKind, Filters
from rookery.sidecar import Index
from rookery.sketch.bloom import BLOCK_SIZE, BloomFilter
from rookery.sketch.bloom_matrix import BloomMatrix

INDEX = Index("bloom", 1, "long", 0.01)


def filters(part: Filters, shared: set[int]) -> dict[int, int]:
    """The blocks of each file's filter, as blobs have them."""
    found = [BloomMatrix.decode(blob.payload) for blob in BloomKind().blobs(INDEX, part, 2, shared)]
    return {ordinal: matrix.blocks for matrix in found for ordinal in matrix.ordinals.tolist()}


def test_filters_of_shared_files_are_folded() -> None:
    wide = BloomFilter.from_bytes(bytes(1024 * BLOCK_SIZE))
    assert filters({0: wide, 1: wide}, {0}) == {0: 1, 1: 1024}


def test_parts_of_a_file_are_joined() -> None:
    kind = BloomKind()
    low = BloomFilter.from_bytes(bytes([1]) + bytes(BLOCK_SIZE - 1))
    high = BloomFilter.from_bytes(bytes([2]) + bytes(BLOCK_SIZE - 1))
    sent = [kind.decode(*row) for part in ({0: low}, {0: high, 1: high}) for row in kind.encode(part)]
    found = kind.merge(sent)
    assert (found[0].words[0, 0], found[1].words[0, 0]) == (3, 2)
