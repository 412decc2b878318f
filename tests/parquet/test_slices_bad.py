"""Damaged footers, page indexes, filters and pages: an error of ours, or rows as good as the bytes are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.io import BytesSource
from rookery.model import RookeryError
from rookery.parquet import (
    ParquetError,
    read_bloom,
    read_columns,
    read_footer,
    read_page_index,
    read_page_indexes,
    read_row_group,
    read_rows,
)
from rookery.parquet.page_index import PageIndex
from rookery.parquet.thrift import Cursor, ThriftError
from rookery.parquet.thrift_writer import I64, encode

N = 400
TABLE = pa.table(
    {
        "l": pa.array([None if n % 4 == 0 else n * 31 for n in range(N)], pa.int64()),
        "s": pa.array([f"text {n % 50}" for n in range(N)]),
        "x": pa.array([n.to_bytes(16, "big") for n in range(N)], pa.binary(16)),
        "b": pa.array([n % 2 == 0 for n in range(N)]),
        "t": pa.array({"u": n, "v": [n]} for n in range(N)),
    }
)
FORMS: dict[str, dict[str, Any]] = {
    "dictionary": {"compression": "zstd"},
    "plain": {"use_dictionary": False, "compression": "none"},
    "v2": {"use_dictionary": False, "compression": "snappy", "data_page_version": "2.0"},
    "bloom": {"compression": "none", "bloom_filter_options": {"s": {"ndv": 50, "fpp": 0.1}}},
}
forms = pytest.mark.parametrize("form", FORMS)
RANGES = [(3, 4), (100, 140), (399, 400)]


def write(form: str) -> bytes:
    sink = pa.BufferOutputStream()
    pages = {"data_page_size": 100, "write_batch_size": 20, "write_page_index": True, "store_schema": False}
    pq.write_table(TABLE, sink, **{**pages, **FORMS[form]})
    return bytes(sink.getvalue())


def footer_start(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def survives(data: bytes) -> bool:
    """Read all that can be read; nothing but an error of ours may come of it."""
    source = BytesSource(data)
    try:
        footer = read_footer(source)
        for number, group in enumerate(footer.row_groups):
            ranges = [(start, end) for start, end in RANGES if end <= group.rows]
            flat = [leaf for leaf in footer.leaves if leaf.is_flat]
            indexes = read_page_indexes(source, [group.chunks[leaf.index] for leaf in flat])
            read_columns(source, footer, flat, number, ranges, indexes)
            read_columns(source, footer, flat, number, None, indexes)
            for chunk in group.chunks:
                read_bloom(source, chunk)
            read_row_group(source, number, [footer.leaves[-1].path[0]])
    except RookeryError:
        return False
    return True


def flips(data: bytes, start: int, end: int, count: int) -> Iterator[bytes]:
    chance = random.Random(start)
    for at in sorted(chance.sample(range(start, end), min(count, end - start))):
        yield data[:at] + bytes([data[at] ^ chance.choice((0x01, 0x11, 0x80, 0xFF))]) + data[at + 1 :]


@forms
def test_bytes_of_the_footer(form: str) -> None:
    data = write(form)
    assert survives(data)
    chunk = read_footer(BytesSource(data)).row_groups[0].chunks[1]
    assert (read_bloom(BytesSource(data), chunk) is not None) == (form == "bloom")
    assert False in {survives(bad) for bad in flips(data, footer_start(data), len(data), 250)}


@forms
def test_bytes_of_the_indexes(form: str) -> None:
    data = write(form)
    first = min(
        chunk.column_index_offset or 0 for chunk in read_footer(BytesSource(data)).row_groups[0].chunks
    )
    assert 0 < first < footer_start(data)
    assert False in {survives(bad) for bad in flips(data, first, footer_start(data), 400)}


@forms
def test_bytes_of_the_pages(form: str) -> None:
    data = write(form)
    assert False in {survives(bad) for bad in flips(data, 4, footer_start(data), 250)}


@settings(max_examples=150)
@given(st.binary(max_size=80), st.binary(max_size=80))
def test_any_page_index(offsets: bytes, columns: bytes) -> None:
    chunk = replace(
        CHUNK,
        offset_index_offset=1,
        offset_index_length=len(offsets),
        column_index_offset=1 + len(offsets),
        column_index_length=len(columns),
    )
    with suppress(ParquetError):
        read_page_index(BytesSource(b"x" + offsets + columns), chunk)


GOOD = BytesSource(write("plain"))
CHUNK = read_footer(GOOD).row_groups[0].chunks[0]


# -- page indexes that contradict themselves, or the file


def index_of(pages: list[tuple[int, int, int]], columns: dict[int, Any] | None = None) -> PageIndex | None:
    offsets = encode({1: [{1: I64(at), 2: size, 3: I64(row)} for at, size, row in pages]})
    chunk = replace(CHUNK, offset_index_offset=1, offset_index_length=len(offsets))
    chunk = replace(chunk, start=100, size=300, values=90, column_index_offset=None)
    data = b"x" + offsets
    if columns is not None:
        stored = encode(columns)
        chunk = replace(chunk, column_index_offset=len(data), column_index_length=len(stored))
        data += stored
    return read_page_index(BytesSource(data), chunk)


PAGES = [(100, 50, 0), (150, 200, 30), (350, 50, 60)]
COLUMNS = {1: [False, True, False], 2: [b"a", b"", b"c"], 3: [b"b", b"", b"d"], 4: 0}


def test_a_good_index() -> None:
    index = index_of(PAGES, {**COLUMNS, 5: [I64(1), I64(30), I64(0)]})
    assert index is not None
    assert index.min_values == (b"a", None, b"c")
    assert index.max_values == (b"b", None, b"d")
    assert index.null_counts is not None
    assert index.null_counts.tolist() == [1, 30, 0]
    assert index.row_counts(90).tolist() == [30, 30, 30]
    bare = index_of(PAGES)
    assert bare is not None
    assert bare.min_values is bare.null_pages is bare.null_counts is None


@pytest.mark.parametrize("pages", [
    [],
    [(99, 50, 0), *PAGES[1:]],  # before the chunk
    [*PAGES[:2], (350, 51, 60)],  # beyond it
    [(100, 51, 0), *PAGES[1:]],  # over the next
    [PAGES[0], PAGES[2], PAGES[1]],
    [(100, 0, 0), *PAGES[1:]],
    [(100, -5, 0), *PAGES[1:]],
    [(100, 50, 1), *PAGES[1:]],  # rows not from 0
    [*PAGES[:2], (350, 50, 30)],  # rows that stand still
    [*PAGES[:2], (350, 50, 90)],  # rows that are not there
    [(100, 50, 0), ((1 << 63) - 10, 50, 30)],
    [(100, 50, 0), (1 << 64, 50, 30)],
])  # fmt: skip
def test_pages_that_cannot_be(pages: list[tuple[int, int, int]]) -> None:
    with pytest.raises(ParquetError):
        index_of(pages)


@pytest.mark.parametrize("columns", [
    {},
    {**COLUMNS, 1: [False]},
    {**COLUMNS, 2: [b"a"]},
    {**COLUMNS, 3: [b"a"] * 4},
    {**COLUMNS, 2: [1, 2, 3]},
    {**COLUMNS, 5: [I64(0)]},
    {**COLUMNS, 5: [I64(-1), I64(0), I64(0)]},
    {**COLUMNS, 5: [I64(91), I64(0), I64(0)]},
    {**COLUMNS, 5: [b"", b"", b""]},
])  # fmt: skip
def test_bounds_that_cannot_be(columns: dict[int, Any]) -> None:
    with pytest.raises(ParquetError):
        index_of(PAGES, columns)


def test_an_index_outside_the_file() -> None:
    for offset, length in ((GOOD.size - 5, 10), (1 << 62, 10), (4, 1 << 40)):
        with pytest.raises(ParquetError, match="inside the file"):
            read_page_index(GOOD, replace(CHUNK, offset_index_offset=offset, offset_index_length=length))


def test_an_index_of_other_rows() -> None:
    """Its places are right, its rows are not: the pages' own headers tell."""
    footer = read_footer(GOOD)
    index = read_page_index(GOOD, CHUNK)
    assert index is not None
    assert len(index) > 5
    rows = index.first_rows.copy()
    rows[2] += 1
    with pytest.raises(ParquetError, match="rows"):
        read_rows(
            GOOD, footer, CHUNK.leaf, 0, [(int(rows[2]), int(rows[2]) + 2)], replace(index, first_rows=rows)
        )


def test_row_counts_out_of_all_proportion() -> None:
    footer = read_footer(GOOD)
    rows = 1 << 50
    group = replace(footer.row_groups[0], rows=rows, chunks=(replace(CHUNK, values=rows),))
    with pytest.raises(ParquetError, match="early"):
        read_rows(GOOD, replace(footer, row_groups=(group,)), CHUNK.leaf, 0, [(5, 6)], None)


# -- Thrift, written and read again

leaf = st.one_of(st.booleans(), st.integers(-(2**31), 2**31 - 1), st.binary(max_size=200))
struct = st.recursive(
    st.dictionaries(st.integers(1, 300), leaf, max_size=5),
    lambda inner: st.dictionaries(
        st.integers(1, 40), st.one_of(leaf, inner, st.lists(inner, max_size=20)), max_size=5
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(struct, st.integers(-(2**63), 2**63 - 1))
def test_structs_come_back(fields: dict[int, Any], number: int) -> None:
    fields = {**fields, 999: I64(number), 1000: [True, False], 1001: [False], 1002: list(range(70))}
    cursor = Cursor(encode(fields))
    assert cursor.struct() == fields
    assert cursor.position == len(cursor.data)


def test_a_number_of_too_many_bytes() -> None:
    for bytes_of_it, fits in ((10, True), (11, False)):
        data = b"\x16" + b"\xff" * (bytes_of_it - 1) + b"\x01\x00"
        if fits:
            Cursor(data).struct()
        else:
            with pytest.raises(ThriftError, match="too long"):
                Cursor(data).struct()


def test_arrays_are_of_one_kind() -> None:
    index = index_of(PAGES)
    assert index is not None
    assert index.offsets.dtype == index.sizes.dtype == index.first_rows.dtype == np.int64
