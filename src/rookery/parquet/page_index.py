"""The page index: the places of a chunk's pages, their rows, and the bounds of their values.

It is near the end of the file, apart from the pages, so that pages that cannot match need not be read.
A page index that contradicts itself is an error: pruning then keeps everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rookery.io import Source
from rookery.model import Place
from rookery.parquet.ranges import JOIN_GAP, Range, read_ranges
from rookery.parquet.structure import Chunk, ParquetError, damaged
from rookery.parquet.thrift import Cursor, Struct

Bounds = tuple[bytes | None, ...]
_BYTES_OBJECT = 33  # the size of an empty one


@dataclass(frozen=True, slots=True, eq=False)
class PageIndex:
    """The data pages of a chunk, in order, one element of each array a page."""

    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]  # compressed, with the header
    first_rows: NDArray[np.int64]  # in the row group
    null_pages: NDArray[np.bool_] | None = None
    min_values: Bounds | None = None  # None for a page of nulls
    max_values: Bounds | None = None
    null_counts: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def nbytes(self) -> int:
        """Its approximate memory."""
        bounds = (value for side in (self.min_values, self.max_values) for value in side or ())
        return 64 + 40 * len(self) + sum(_BYTES_OBJECT + len(value or b"") for value in bounds)

    def row_counts(self, rows: int) -> NDArray[np.int64]:
        """How many rows each page holds, in a row group of *rows*."""
        return np.diff(self.first_rows, append=rows)


def read_page_index(source: Source, chunk: Chunk) -> PageIndex | None:
    """Read the page index of one chunk; None if the file has none."""
    return read_page_indexes(source, [chunk])[0]


def read_page_indexes(source: Source, chunks: Sequence[Chunk], gap: int = JOIN_GAP) -> list[PageIndex | None]:
    """Read those of several chunks; writers put them side by side, so that one read will mostly do."""
    ranges = [extent for chunk in chunks for extent in _extents(chunk)]
    parts = iter(read_ranges(source, ranges, "a page index", gap))
    indexes: list[PageIndex | None] = []
    for chunk in chunks:
        # A column index alone has bounds of pages whose rows are unknown.
        if chunk.offset_index_offset is None or chunk.offset_index_length is None:
            indexes.append(None)
            continue
        place = Place(source.name, chunk.offset_index_offset)
        with damaged(place, f"a page index of column {'.'.join(chunk.leaf.path)}"):
            structs = [Cursor(bytes(next(parts))).struct() for _ in _extents(chunk)]
            indexes.append(_page_index(place, chunk, *structs))
    return indexes


def _extents(chunk: Chunk) -> Iterator[Range]:
    if chunk.offset_index_offset is None or chunk.offset_index_length is None:
        return
    yield chunk.offset_index_offset, chunk.offset_index_length
    if chunk.column_index_offset is not None and chunk.column_index_length is not None:
        yield chunk.column_index_offset, chunk.column_index_length


def _page_index(place: Place, chunk: Chunk, offsets: Struct, columns: Struct | None = None) -> PageIndex:
    locations = offsets[1]
    index = PageIndex(
        _numbers(location[1] for location in locations),
        _numbers(location[2] for location in locations),
        _numbers(location[3] for location in locations),
    )
    _check_places(place, chunk, index)
    if columns is None:
        return index
    pages = len(index)
    null_pages, lows, highs, counts = columns[1], columns[2], columns[3], columns.get(5)
    for name, entries in (("null pages", null_pages), ("minima", lows), ("maxima", highs)):
        if len(entries) != pages:
            raise ParquetError(place, f"{pages} {name}, one per page", str(len(entries)))
    if counts is not None and len(counts) != pages:
        raise ParquetError(place, f"{pages} null counts, one a page", str(len(counts)))
    nulls = np.array([flag is True for flag in null_pages], np.bool_)
    believed = chunk.leaf.ordered
    return PageIndex(
        offsets=index.offsets,
        sizes=index.sizes,
        first_rows=index.first_rows,
        null_pages=nulls,
        min_values=_bounds(lows, nulls) if believed else None,
        max_values=_bounds(highs, nulls) if believed else None,
        null_counts=None if counts is None else _null_counts(place, counts, chunk),
    )


def _numbers(values: Iterable[Any]) -> NDArray[np.int64]:
    return np.fromiter(values, np.int64)


def _check_places(place: Place, chunk: Chunk, index: PageIndex) -> None:
    """Pages follow each other in the chunk, and each has at least one row."""
    if not len(index):
        if chunk.values:
            raise ParquetError(place, f"pages of {chunk.values} values", "none")
        return
    ends = index.offsets + index.sizes
    if index.sizes.min() <= 0:
        raise ParquetError(place, "pages of some size", f"{index.sizes.min()} bytes")
    inside = index.offsets[0] >= chunk.start and ends[-1] <= chunk.start + chunk.size
    if not inside or np.any(ends[:-1] > index.offsets[1:]) or np.any(ends < index.offsets):
        extent = f"{chunk.size} bytes from {chunk.start}"
        raise ParquetError(place, f"pages one after the other in {extent}", f"{index.offsets[:9]}…")
    rows = index.first_rows
    if rows[0] != 0 or np.any(rows[1:] <= rows[:-1]) or rows[-1] >= chunk.values:
        raise ParquetError(
            place, f"ascending rows from 0 on, below {chunk.values}", f"{rows[:9]}… to {rows[-1]}"
        )


def _bounds(values: list[Any], null_pages: NDArray[np.bool_]) -> Bounds:
    if not all(type(value) is bytes for value in values):
        raise TypeError("a bound that is no bytes")
    return tuple(None if null else value for value, null in zip(values, null_pages.tolist(), strict=True))


def _null_counts(place: Place, counts: list[Any], chunk: Chunk) -> NDArray[np.int64]:
    numbers = _numbers(counts)
    if len(numbers) and (numbers.min() < 0 or numbers.max() > chunk.values):
        raise ParquetError(place, f"null counts of {chunk.values} values", f"{numbers.max()}")
    return numbers
