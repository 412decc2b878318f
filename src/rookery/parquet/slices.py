"""Some rows of a flat column, by reading only the pages that hold them.

The pages become a file of one column that pyarrow decodes, so that every type, encoding and codec is decoded
as it does from the file itself. Lists and maps are not supported here, as values do not count their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rookery.io import Source
from rookery.model import Place, UsageError
from rookery.parquet.minifile import PAGES_AT, one_column_file, top_level
from rookery.parquet.page_index import PageIndex
from rookery.parquet.ranges import JOIN_GAP, Range, read_ranges
from rookery.parquet.structure import Chunk, Footer, Leaf, PageType, ParquetError, damaged
from rookery.parquet.thrift import Cursor, ThriftError

Rows = Sequence[tuple[int, int]]
"""Half-open ranges of rows of a row group, ascending and apart."""

_DATA_PAGES = {PageType.DATA: 5, PageType.DATA_V2: 8}  # where the header of each has its details
_VALUES = 1  # of either kind of details


def read_rows(
    source: Source,
    footer: Footer,
    leaf: Leaf,
    row_group: int,
    ranges: Rows | None,
    page_index: PageIndex | None,
    gap: int = JOIN_GAP,
) -> tuple[pa.ChunkedArray, NDArray[np.int64]]:
    """Read a flat leaf's values in exactly the rows of *ranges* (None: all), and return them with the rows.

    Without a page index the whole chunk is read, and then cut.
    """
    wanted = _ordered(ranges, footer.row_groups[row_group].rows)
    (column,) = _read(source, footer, [leaf], row_group, wanted, [page_index], gap)
    return column, _written_out(wanted)


def read_columns(
    source: Source,
    footer: Footer,
    leaves: Sequence[Leaf],
    row_group: int,
    ranges: Rows | None,
    page_indexes: Sequence[PageIndex | None],
    gap: int = JOIN_GAP,
) -> list[pa.ChunkedArray]:
    """Read several flat leaves in the rows of *ranges*; bytes at most *gap* apart are read together."""
    wanted = _ordered(ranges, footer.row_groups[row_group].rows)
    return _read(source, footer, leaves, row_group, wanted, page_indexes, gap)


def row_numbers(ranges: Rows | None, rows: int) -> NDArray[np.int64]:
    """Write *ranges* of a row group of *rows* out, a number a row."""
    return _written_out(_ordered(ranges, rows))


def _read(
    source: Source,
    footer: Footer,
    leaves: Sequence[Leaf],
    row_group: int,
    wanted: NDArray[np.int64],
    page_indexes: Sequence[PageIndex | None],
    gap: int,
) -> list[pa.ChunkedArray]:
    group = footer.row_groups[row_group]
    cuts = [
        _cut(source, group.chunks[leaf.index], group.rows, wanted, index)
        for leaf, index in zip(leaves, page_indexes, strict=True)
    ]
    parts = iter(read_ranges(source, [extent for cut in cuts for extent in cut.extents], "pages", gap))
    return [_decode(source, footer, cut, [next(parts) for _ in cut.extents], wanted) for cut in cuts]


# -- rows


def _ordered(ranges: Rows | None, rows: int) -> NDArray[np.int64]:
    """Ranges as an array of two columns, without the empty ones."""
    if ranges is None:
        return np.array([(0, rows)] if rows else [], np.int64).reshape(-1, 2)
    wanted: NDArray[np.int64] = np.array(ranges, np.int64).reshape(-1, 2)
    wanted = wanted[wanted[:, 0] != wanted[:, 1]]
    if np.any(np.diff(wanted.ravel()) < 0) or (len(wanted) and (wanted[0, 0] < 0 or wanted[-1, 1] > rows)):
        raise UsageError(
            f"ranges of rows must ascend, stay apart, and be within the {rows} rows of the row group"
        )
    return wanted


def _written_out(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(ranges) == 1:
        return np.arange(ranges[0, 0], ranges[0, 1])
    lengths = ranges[:, 1] - ranges[:, 0]
    before = np.cumsum(lengths) - lengths
    shifts: NDArray[np.int64] = np.repeat(ranges[:, 0] - before, lengths)
    return shifts + np.arange(len(shifts), dtype=np.int64)


def _positions(wanted: NDArray[np.int64], held: NDArray[np.int64]) -> NDArray[np.int64]:
    """Convert ranges of rows to ranges of positions among the rows that are *held*."""
    if len(held) == 1:
        shifted: NDArray[np.int64] = wanted - held[0, 0]
        return shifted
    lengths = held[:, 1] - held[:, 0]
    before = np.cumsum(lengths) - lengths
    # Ranges may cross the border of two runs of pages, but then the rows of the runs are adjacent.
    run = np.searchsorted(held[:, 0], wanted[:, 0], "right") - 1
    shifts: NDArray[np.int64] = before[run] - held[run, 0]
    return wanted + shifts[:, None]


# -- pages


@dataclass(frozen=True, slots=True)
class _Cut:
    """What is to be read of a chunk: bytes (a dictionary page first), and the rows that come with them."""

    chunk: Chunk
    extents: list[Range]
    dictionary_size: int
    rows: int
    held: NDArray[np.int64]  # the same rows, as ranges
    counts: list[int] | None = None  # rows of each page, if an index states them


def _cut(source: Source, chunk: Chunk, rows: int, wanted: NDArray[np.int64], index: PageIndex | None) -> _Cut:
    """Find what must be read for the *wanted* rows: the whole chunk, or runs of its pages."""
    leaf = chunk.leaf
    if not leaf.is_flat:
        raise UsageError(f"column {'.'.join(leaf.path)} is inside a list or a map: read its row group whole")
    if chunk.values != rows:
        raise ParquetError(Place(source.name, chunk.start), f"{rows} values, one a row", str(chunk.values))
    if not len(wanted):
        return _Cut(chunk=chunk, extents=[], dictionary_size=0, rows=0, held=wanted)
    if index is None or len(index) <= 1 or wanted[0, 1] - wanted[0, 0] == rows:
        whole = [(chunk.start, chunk.size)]
        return _Cut(
            chunk=chunk,
            extents=whole,
            dictionary_size=chunk.dictionary_size,
            rows=rows,
            held=np.array([(0, rows)], np.int64),
        )
    keep = _pages_of(wanted, index)
    # Some writers do not state where the dictionary is; it is all before the first page.
    dictionary = int(index.offsets[0]) - chunk.start
    extents = [(chunk.start, dictionary)] if dictionary else []
    counts = index.row_counts(rows)[keep].tolist()
    runs: list[tuple[int, int]] = []
    places = (index.offsets[keep].tolist(), index.sizes[keep].tolist(), index.first_rows[keep].tolist())
    for offset, size, first, count in zip(*places, counts, strict=True):
        start, length = extents[-1] if runs else (-1, 0)
        if runs and runs[-1][1] == first and start + length == offset:
            extents[-1] = (start, length + size)
            runs[-1] = (runs[-1][0], first + count)
        else:
            extents.append((offset, size))
            runs.append((first, first + count))
    return _Cut(
        chunk=chunk,
        extents=extents,
        dictionary_size=dictionary,
        rows=sum(counts),
        held=np.array(runs, np.int64),
        counts=counts,
    )


def _pages_of(wanted: NDArray[np.int64], index: PageIndex) -> NDArray[np.int64]:
    """Find the pages that hold a wanted row."""
    first = np.searchsorted(index.first_rows, wanted[:, 0], "right") - 1
    after = np.searchsorted(index.first_rows, wanted[:, 1], "left")
    change = np.zeros(len(index) + 1, np.int64)
    np.add.at(change, first, 1)
    np.add.at(change, after, -1)
    return np.flatnonzero(np.cumsum(change[:-1]))


# -- values


def _decode(
    source: Source, footer: Footer, cut: _Cut, parts: list[memoryview], wanted: NDArray[np.int64]
) -> pa.ChunkedArray:
    leaf = cut.chunk.leaf
    with damaged(Place(source.name, cut.chunk.start), f"pages of column {'.'.join(leaf.path)}"):
        data = one_column_file(footer, cut.chunk, cut.dictionary_size, parts, cut.rows)
        _check_pages(memoryview(data).cast("B"), PAGES_AT + sum(map(len, parts)), cut)
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
        column = top_level(leaf, file.read(use_threads=False).column(0))
        if len(column) != cut.rows:
            raise ThriftError(f"{len(column)} values of {cut.rows}")
        positions = _positions(wanted, cut.held)
        if len(positions) == 1:
            start, end = positions[0].tolist()
            return column.slice(start, end - start)
        return column.take(_written_out(positions)) if len(positions) else column


def _check_pages(data: memoryview, end: int, cut: _Cut) -> None:
    """Check that the pages have as many rows as stated elsewhere, which pyarrow does not."""
    cursor = Cursor(data, PAGES_AT)
    counts = []
    left = cut.rows
    while left > 0:
        if cursor.position >= end:
            raise ThriftError(f"pages end {left} rows early")
        header = cursor.struct()
        cursor.position += header[3]
        if header[3] < 0 or cursor.position > end:
            raise ThriftError("a page is longer than its chunk")
        details = _DATA_PAGES.get(header[1])
        if details is not None:
            counts.append(header[details][_VALUES])
            left -= counts[-1]
    if left < 0 or (cut.counts is not None and counts != cut.counts):
        raise ThriftError("pages of other rows than the index states")
