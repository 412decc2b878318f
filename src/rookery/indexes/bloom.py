"""The Bloom index: a filter per file; a few kilobytes of each segment show which files may have a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from rookery.blobs import Summary, bloom_matrix
from rookery.indexes.kind import Builder, IndexKind, MergeInput
from rookery.indexes.lookup import Probe
from rookery.model import Leaf, wanted_values
from rookery.puffin import BlobMetadata
from rookery.sidecar import Index, IndexBlob, Segment
from rookery.sidecar.checksums import DamagedError
from rookery.sketch.blob_types import BLOOM_MATRIX_V1
from rookery.sketch.bloom import BloomFilter, blocks_for
from rookery.sketch.bloom_matrix import BloomMatrix, MatrixHeader, header_size
from rookery.sketch.value_hashes import bloom_hashes
from rookery.sketch.values import ValueConsumer

MAX_BYTES = 256 << 20  # of one index in one group, which is in memory when it is written
MOST_BITS_A_KEY = 24
MOST_VALUES = 256  # each is a read of every segment

Filters = dict[int, BloomFilter]
"""Filters by the ordinals of their files."""


class BloomKind(IndexKind[Filters]):
    """Bloom filters, stored block by block across the files of a group."""

    name = "bloom"
    blob_type = BLOOM_MATRIX_V1
    stage = "bloom filter check"
    summary = "Finds the files that may contain a value; for = and IN on columns with many distinct values."
    default_fpp = 0.001
    serves_equality = True

    def weights(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Filters have their full size before they are folded."""
        return np.asarray(rows * (MOST_BITS_A_KEY / 8 / MAX_BYTES), np.float64)

    def builder(self, index: Index, rows: Sequence[int]) -> Builder[Filters]:
        """Return a builder of one filter a file."""
        return _Builder(index)

    def encode(self, part: Filters) -> Iterator[tuple[int, bytes | memoryview]]:
        """Yield a filter a row."""
        for ordinal, filter_ in part.items():
            yield ordinal, filter_.buffer()

    def decode(self, number: int, payload: bytes | memoryview) -> Filters:
        """Read one filter."""
        return {number: BloomFilter.from_bytes(payload)}

    def merge(self, parts: Sequence[Filters]) -> Filters:
        """Join filters; those of one file are of one size until it is whole."""
        joined: Filters = {}
        for part in parts:
            for ordinal, filter_ in part.items():
                before = joined.get(ordinal)
                joined[ordinal] = filter_ if before is None else before.union(filter_)
        return joined

    def blobs(self, index: Index, part: Filters, files: int, shared: Set[int]) -> Iterable[IndexBlob]:
        """Return a matrix for each number of blocks; files that were shared are folded only now."""
        fitted = {
            ordinal: filter_.fitted(index.fpp) if ordinal in shared else filter_
            for ordinal, filter_ in part.items()
        }
        return _blobs(index, BloomMatrix.of(fitted, files, index.fpp))

    def merge_segments(
        self, index: Index, inputs: Sequence[MergeInput], rows: NDArray[np.int64]
    ) -> Iterable[IndexBlob]:
        """Return the filters of the files that are kept, side by side."""
        moved = (
            matrix.moved(part.kept, part.offset, len(rows))
            for part in inputs
            for matrix in matrices(part.segment, index.field_id)
        )
        return _blobs(index, BloomMatrix.merge(matrix for matrix in moved if matrix is not None))

    def ask(self, index: Index, leaf: Leaf, notes: list[str]) -> Probe | None:
        """Look up the values of = and IN."""
        values = wanted_values(leaf)
        if values is None:
            return None
        if len(values) > MOST_VALUES:
            notes.append(f"more than {MOST_VALUES} values are looked up")
            return None
        hashes = [bloom_hashes(index.type, value) for value in values]
        if any(each is None for each in hashes):
            notes.append("NaN cannot be looked up")
            return None
        flat = [number for each in hashes for number in each or ()]
        return lambda segment: probe(segment, index.field_id, flat)

    def summarize(self, blob: BlobMetadata, payload: bytes, file: str) -> Summary:
        """How many files have a filter, of which size, and for which rate of false positives."""
        return bloom_matrix.summarize(blob, payload, file)


class _Builder:
    """The filters of the files of one task."""

    def __init__(self, index: Index) -> None:
        from rookery.sketch.bloom_builder import BloomBuilder  # brings numba, which pruning does without

        self._make = BloomBuilder
        self._index = index
        self._filters: Filters = {}

    def begin(self, ordinal: int, rows: int) -> ValueConsumer:
        """Return a filter as large as the rows may need; one that is too large is folded when it is whole."""
        self._filter = self._make(self._index.type, blocks_for(max(rows, 1), self._index.fpp))
        return self._filter

    def end(self, ordinal: int, *, whole: bool) -> None:
        """Keep the file's filter."""
        filter_ = self._filter.result()
        self._filters[ordinal] = filter_.fitted(self._index.fpp) if whole else filter_

    def result(self) -> Filters:
        """Return the filters."""
        return self._filters


def matrices(segment: Segment, field_id: int) -> list[BloomMatrix]:
    """Return the Bloom matrices of a column, whole."""
    payloads = segment.payloads(BLOOM_MATRIX_V1, field_id)
    return [BloomMatrix.decode(payload, place=place) for payload, place in payloads]


def probe(
    segment: Segment, field_id: int, hashes: Sequence[int]
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.bool_]]]:
    """Yield, by matrix, the ordinals it covers and which of those files may hold one of the hashes."""
    for blob, header in segment.heads(BLOOM_MATRIX_V1, field_id, MatrixHeader.decode):
        place = segment.place_of(blob)
        if header.size != blob.length:
            raise DamagedError(place, f"{header.size} bytes", str(blob.length))
        maybe = np.zeros(len(header.ordinals), bool)
        for value in hashes:
            row = segment.read_range(blob, *header.row_range(value))
            maybe |= header.probe(row, value, place=place)
        yield header.ordinals, maybe


def _blobs(index: Index, filters: Iterable[BloomMatrix]) -> Iterator[IndexBlob]:
    for matrix in filters:
        head = header_size(len(matrix.ordinals))
        yield IndexBlob(BLOOM_MATRIX_V1, index.field_id, matrix.encode(), head)
