"""Rows by their pages, against pyarrow's reading of the whole file."""

from __future__ import annotations

import gc
import weakref
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.io import BytesSource, LocalSource, Source
from rookery.model import UsageError
from rookery.parquet import (
    read_columns,
    read_footer,
    read_page_indexes,
    read_row_group,
    read_rows,
    row_numbers,
)

ROWS = 3_000
RANGES = [(0, 1), (7, 8), (300, 640), (640, 641), (999, 1000)]
rng = np.random.default_rng(11)


def nulled(array: pa.Array) -> pa.Array:
    mask = rng.random(len(array)) < 0.2
    mask[500:900] = True  # whole pages of nulls
    return pa.array([None if gone else value.as_py() for value, gone in zip(array, mask, strict=True)]).cast(
        array.type
    )


def table(rows: int = ROWS) -> pa.Table:
    """Whatever a column of an Iceberg table, or of a file that it took in, may be."""
    n = rng.integers(0, 10**6, rows)
    texts = pa.array([f"text {value}" for value in n])
    numbers = pa.array(n)
    columns = {
        "bool": pa.array(n % 2 == 0),
        "int": numbers.cast(pa.int32()),
        "small": pa.array(n % 100).cast(pa.int8()),
        "unsigned": numbers.cast(pa.uint32()),
        "long": numbers,
        "float": pa.array((n / 7).astype(np.float32)),
        "double": pa.array(n / 7),
        "half": pa.array((n % 100).astype(np.float16)),
        "text": texts,
        "large": texts.cast(pa.large_string()),
        "bytes": texts.cast(pa.binary()),
        "category": pa.array([f"c{value % 9}" for value in n]).dictionary_encode(),
        "fixed": pa.array([int(value).to_bytes(12, "big") for value in n], pa.binary(12)),
        "date": numbers.cast(pa.int32()).cast(pa.date32()),
        "time_ms": pa.array(n % 86_400_000).cast(pa.int32()).cast(pa.time32("ms")),
        "time_us": numbers.cast(pa.time64("us")),
        "duration": numbers.cast(pa.duration("ms")),
        "decimal9": pa.array([Decimal(int(value)).scaleb(-2) for value in n], pa.decimal128(9, 2)),
        "decimal18": pa.array([Decimal(int(value)).scaleb(-4) for value in n], pa.decimal128(18, 4)),
        "decimal38": pa.array([Decimal(int(value)).scaleb(-9) for value in n], pa.decimal128(38, 9)),
    }
    for unit in ("s", "ms", "us", "ns"):
        columns[f"ts_{unit}"] = numbers.cast(pa.timestamp(unit))
        columns[f"tz_{unit}"] = numbers.cast(pa.timestamp(unit, "UTC"))
    columns["tz_berlin"] = numbers.cast(pa.timestamp("us", "Europe/Berlin"))
    columns |= {f"{name}_null": nulled(array) for name, array in list(columns.items()) if name != "category"}
    columns["uuid"] = pa.array([UUID(int=int(value)).bytes for value in n], pa.uuid())
    columns["nothing"] = pa.array([None] * rows, pa.null())
    return pa.table(columns)


TABLE = table()


def file(data: pa.Table = TABLE, **options: Any) -> BytesSource:
    settings = {"write_page_index": True, "row_group_size": 1_100, "data_page_size": 400}
    sink = pa.BufferOutputStream()
    pq.write_table(data, sink, **{**settings, "write_batch_size": 40, **options})
    return BytesSource(sink.getvalue())


def agrees(source: Source, ranges: Any = RANGES, indexed: bool = True) -> int:
    """Every leaf of every row group is as pyarrow reads it; return how many pages an index told of."""
    footer = read_footer(source)
    whole = pq.ParquetFile(pa.BufferReader(source.read(0, source.size)))
    pages = 0
    for number, group in enumerate(footer.row_groups):
        indexes = read_page_indexes(source, group.chunks)
        assert all(index is not None for index in indexes) or not indexed
        pages += sum(map(len, filter(None, indexes)))
        truth = whole.read_row_group(number)
        mine = None if ranges is None else [r for r in ranges if r[1] <= group.rows]
        rows = row_numbers(mine, group.rows)
        columns = read_columns(source, footer, footer.leaves, number, mine, indexes)
        for leaf, column in zip(footer.leaves, columns, strict=True):
            expected = truth.column(leaf.path[0]).take(rows)
            assert column.type == expected.type, leaf.path
            assert column.equals(expected), leaf.path
    return pages


# -- types, encodings, codecs, pages


@pytest.mark.parametrize("page", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
def test_codecs_and_pages(codec: str, page: str, dictionary: bool) -> None:
    source = file(compression=codec, data_page_version=page, use_dictionary=dictionary)
    assert agrees(source) > 10 * len(TABLE.columns)


@pytest.mark.parametrize("options", [
    {"store_schema": False},
    {"use_deprecated_int96_timestamps": True},
    {"use_deprecated_int96_timestamps": True, "store_schema": False},
    {"version": "1.0", "coerce_timestamps": "us", "allow_truncated_timestamps": True},
    {"store_decimal_as_integer": True},
    {"dictionary_pagesize_limit": 3_000},
    {"write_page_checksum": True},
    {"write_statistics": False},
    {"row_group_size": 10**6, "data_page_size": 1 << 20, "max_rows_per_page": 77},
], ids=str)  # fmt: skip
def test_options(options: dict[str, Any]) -> None:
    agrees(file(**options), indexed="write_statistics" not in options)


@pytest.mark.parametrize("ranges", [None, [], [(0, 1_100)], [(0, 800)], [(500, 501)], [(3, 3), (4, 5)]])
@pytest.mark.parametrize("indexed", [True, False])
def test_ranges(ranges: Any, indexed: bool) -> None:
    agrees(file(write_page_index=indexed), ranges, indexed)


@pytest.mark.parametrize("column, encoding", [
    ("int", "DELTA_BINARY_PACKED"), ("long_null", "DELTA_BINARY_PACKED"), ("ts_us", "DELTA_BINARY_PACKED"),
    ("text", "DELTA_BYTE_ARRAY"), ("text_null", "DELTA_LENGTH_BYTE_ARRAY"), ("fixed", "DELTA_BYTE_ARRAY"),
    ("float", "BYTE_STREAM_SPLIT"), ("double_null", "BYTE_STREAM_SPLIT"), ("decimal38", "BYTE_STREAM_SPLIT"),
    ("int", "BYTE_STREAM_SPLIT"), ("bool_null", "RLE"),
])  # fmt: skip
@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_encodings(column: str, encoding: str, page: str) -> None:
    data = TABLE.select([column])
    source = file(data, use_dictionary=False, column_encoding={column: encoding}, data_page_version=page)
    assert agrees(source) >= 3


def test_required_columns() -> None:
    schema = pa.schema([pa.field("v", pa.int64(), nullable=False)])
    agrees(file(pa.table([pa.array(range(ROWS))], schema=schema)))


@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_rows(rows: int) -> None:
    agrees(file(TABLE.slice(0, rows)), None, indexed=rows > 0)


def test_no_row_groups() -> None:
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, TABLE.schema).close()
    assert read_footer(BytesSource(sink.getvalue())).row_groups == ()


def test_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    duckdb.sql(
        "COPY (SELECT range AS l, range % 7 AS few, 'text ' || range AS s, range::DECIMAL(20, 2) AS d, "
        "CASE WHEN range % 3 > 0 THEN uuid() END AS u, to_timestamp(range) AS t, range % 2 = 0 AS b "
        f"FROM range(9000)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 4096)"
    )
    source = LocalSource(str(path))
    agrees(source, indexed=False)
    statistics = read_footer(source).row_groups[0].chunks[0].statistics
    assert statistics.min_value == bytes(8)


# -- structs


@pytest.mark.parametrize("stored", [True, False])
def test_leaves_of_structs(stored: bool) -> None:
    kind = pa.struct(
        [("a", pa.int64()), ("b", pa.struct([("c", pa.string()), ("t", pa.timestamp("ms", "Asia/Tokyo"))]))]
    )
    values = [
        None if n % 5 == 0 else {"a": n, "b": None if n % 7 == 0 else {"c": f"c{n}", "t": n}}
        for n in range(ROWS)
    ]
    data = pa.table({"x": pa.array(range(ROWS)), "s": pa.array(values, kind)})
    source = file(data, store_schema=stored)
    footer = read_footer(source)
    indexes = read_page_indexes(source, footer.row_groups[0].chunks)
    truth = pq.read_table(pa.BufferReader(source.read(0, source.size))).slice(0, 1_100).flatten().flatten()
    columns = read_columns(source, footer, footer.leaves, 0, RANGES, indexes)
    for leaf, column in zip(footer.leaves, columns, strict=True):
        assert column.equals(truth.column(".".join(leaf.path)).take(row_numbers(RANGES, 1_100)))


def test_lists_are_read_by_the_row_group() -> None:
    data = pa.table({"l": pa.array([[n, n + 1] for n in range(ROWS)]), "x": pa.array(range(ROWS))})
    source = file(data)
    footer = read_footer(source)
    with pytest.raises(UsageError, match="list"):
        read_rows(source, footer, footer.leaves[0], 0, None, None)
    assert read_row_group(source, 1, ["l"]).equals(data.select(["l"]).slice(1_100, 1_100))
    before = source.reads
    assert read_row_group(source, 2, ["l", "x"]).equals(data.slice(2_200))
    assert source.reads == before + 1  # both together, and no footer


def test_a_source_is_let_go(tmp_path: Path) -> None:
    source = BytesSource(file().read(0, file().size))
    read_row_group(source, 0, ["long"])
    gone = weakref.ref(source)
    del source
    gc.collect()
    assert gone() is None


# -- rows


@settings(max_examples=60)
@given(st.lists(st.integers(0, 1_000), max_size=12, unique=True))
def test_any_ranges(edges: list[int]) -> None:
    edges = sorted(edges)[: len(edges) // 2 * 2]
    ranges = list(zip(edges[::2], edges[1::2], strict=True))
    source = FEW
    footer = read_footer(source)
    for leaf in footer.leaves:
        (index,) = read_page_indexes(source, [footer.row_groups[0].chunks[leaf.index]])
        column, rows = read_rows(source, footer, leaf, 0, ranges, index, gap=0)
        assert rows.tolist() == [row for start, end in ranges for row in range(start, end)]
        assert column.equals(TABLE.column(leaf.path[0]).take(rows))


FEW = file(TABLE.select(["text_null", "long", "bool_null"]), row_group_size=ROWS)


@pytest.mark.parametrize(
    "ranges", [[(5, 9), (8, 12)], [(5, 3)], [(9, 10), (1, 2)], [(-1, 4)], [(0, ROWS + 1)]]
)
def test_ranges_that_are_none(ranges: Any) -> None:
    footer = read_footer(FEW)
    with pytest.raises(UsageError):
        read_rows(FEW, footer, footer.leaves[0], 0, ranges, None)


# -- the price


def test_bytes_are_those_of_the_pages() -> None:
    data = pa.table({"s": pa.array([f"{n * 7919:032d}" for n in range(100_000)])})
    pages = {"max_rows_per_page": 1_000, "write_batch_size": 1_000, "data_page_size": 1 << 20}
    source = file(data, row_group_size=10**6, use_dictionary=False, compression="none", **pages)
    footer = read_footer(source)
    chunk = footer.row_groups[0].chunks[0]
    (index,) = read_page_indexes(source, [chunk])
    assert index is not None
    assert len(index) == 100
    for ranges, pages, reads in (
        ([(500, 501)], 1, 1), ([(999, 1_001)], 2, 1), ([(0, 10), (90_000, 95_000)], 6, 2), (None, 100, 1),
    ):  # fmt: skip
        source.reads = source.bytes_read = 0
        column, rows = read_rows(source, footer, chunk.leaf, 0, ranges, index)
        assert column.equals(data.column(0).take(rows))
        assert (source.reads, source.bytes_read) == (reads, int(index.sizes[:pages].sum()))


def test_columns_by_one_read() -> None:
    source = file(TABLE.select(["text", "long", "date"]), compression="none")
    footer = read_footer(source)
    source.reads = 0
    indexes = read_page_indexes(source, footer.row_groups[0].chunks)
    assert source.reads == 1
    read_columns(source, footer, footer.leaves, 0, RANGES, indexes)
    assert source.reads == 2
    read_columns(source, footer, footer.leaves, 0, None, [None] * 3)
    assert source.reads == 3
    read_columns(source, footer, footer.leaves, 0, [], indexes)
    assert source.reads == 3
