"""Statistics, page indexes and Bloom filters, against the values themselves."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rookery.io import BytesSource, LocalSource, Source
from rookery.parquet import (
    Chunk,
    ParquetError,
    Physical,
    read_bloom,
    read_footer,
    read_page_index,
    read_page_indexes,
    read_rows,
)
from rookery.parquet.footer import MAGIC
from rookery.parquet.metadata import parse_metadata
from rookery.parquet.thrift import Cursor, Struct
from rookery.parquet.thrift_writer import I8, I64, encode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

N = 4_000
FORMS = {Physical.INT32: "<i", Physical.INT64: "<q", Physical.FLOAT: "<f", Physical.DOUBLE: "<d"}


def write(data: pa.Table, **options: Any) -> BytesSource:
    sink = pa.BufferOutputStream()
    small = {"data_page_size": 500, "write_batch_size": 50, "row_group_size": 1_500}
    pq.write_table(data, sink, **{"write_page_index": True, **small, **options})
    return BytesSource(sink.getvalue())


def sample() -> pa.Table:
    n = np.random.default_rng(3).integers(-(10**6), 10**6, N)
    gone = (n % 3 == 0) | (np.arange(N) % 1000 > 800)
    return pa.table(
        {
            "i": pa.array(n.astype(np.int32), mask=gone),
            "l": pa.array(n),
            "d": pa.array(n / 7, mask=gone),
            "s": pa.array([f"{abs(value):07d}" for value in n], mask=gone),
            "f": pa.array([int(abs(value)).to_bytes(8, "big") for value in n], pa.binary(8)),
        }
    )


def value_of(chunk: Chunk, bound: bytes) -> Any:
    form = FORMS.get(chunk.leaf.physical)
    return struct.unpack(form, bound)[0] if form else bound


def stored(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def holds(source: Source, number: int, truth: pa.Table) -> int:
    """Check every page of a row group against its rows, and return how many pages there are."""
    footer = read_footer(source)
    group = footer.row_groups[number]
    assert group.first_row == sum(before.rows for before in footer.row_groups[:number])
    pages = 0
    for chunk, index in zip(group.chunks, read_page_indexes(source, group.chunks), strict=True):
        assert index is not None
        assert index.min_values is not None
        assert index.max_values is not None
        assert index.null_pages is not None
        values = truth.column(chunk.leaf.path[0]).to_pylist()[group.first_row : group.first_row + group.rows]
        last = 0
        for page, count in enumerate(index.row_counts(group.rows).tolist()):
            first = int(index.first_rows[page])
            assert first == last
            last = first + count
            inside = [stored(value) for value in values[first:last] if value is not None]
            assert index.null_counts is None or index.null_counts[page] == count - len(inside)
            assert bool(index.null_pages[page]) == (not inside)
            low, high = index.min_values[page], index.max_values[page]
            assert (low is None) == (high is None) == (not inside)
            if low is not None and high is not None:
                assert value_of(chunk, low) <= min(inside)
                assert value_of(chunk, high) >= max(inside)
            ranges = [(first, last)]
            column, _ = read_rows(source, footer, chunk.leaf, number, ranges, index, gap=0)
            assert column.to_pylist() == values[first:last]
        assert last == group.rows
        pages += len(index)
    return pages


@pytest.mark.parametrize("page", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pages_hold_what_their_bounds_say(page: str, dictionary: bool) -> None:
    data = sample()
    source = write(data, data_page_version=page, use_dictionary=dictionary)
    assert sum(holds(source, number, data) for number in range(3)) > 100


def test_statistics_are_those_of_arrow() -> None:
    data = sample()
    source = write(data)
    metadata = pq.ParquetFile(pa.BufferReader(source.read(0, source.size))).metadata
    for number, group in enumerate(read_footer(source).row_groups):
        for chunk in group.chunks:
            theirs = metadata.row_group(number).column(chunk.leaf.index)
            statistics = chunk.statistics
            assert statistics.null_count == theirs.statistics.null_count
            assert statistics.min_value is not None
            assert statistics.max_value is not None
            assert value_of(chunk, statistics.min_value) == stored(theirs.statistics.min)
            assert value_of(chunk, statistics.max_value) == stored(theirs.statistics.max)
            assert chunk.uncompressed_size == theirs.total_uncompressed_size
            assert ".".join(chunk.leaf.path) == theirs.path_in_schema
            assert len(chunk.encodings) == len(theirs.encodings)


def test_indexes_are_read_together() -> None:
    source = write(sample())
    chunks = [chunk for group in read_footer(source).row_groups for chunk in group.chunks]
    source.reads = 0
    read_page_indexes(source, chunks)
    assert source.reads == 1


def test_no_index() -> None:
    source = write(sample(), write_page_index=False)
    chunks = read_footer(source).row_groups[0].chunks
    source.reads = 0
    assert read_page_indexes(source, chunks) == [None] * len(chunks)
    assert read_bloom(source, chunks[0]) is None
    assert source.reads == 0


# -- what is believed


def footer_of(element: Struct, statistics: Struct, orders: list[Struct] | None) -> Chunk:
    column = {
        1: element[1],
        2: [0],
        3: [b"v"],
        4: 0,
        5: I64(9),
        6: I64(50),
        7: I64(50),
        9: I64(4),
        12: statistics,
    }
    metadata = {
        1: 1,
        2: [{4: b"schema", 5: 1}, {3: 1, 4: b"v", **element}],
        3: I64(9),
        4: [{1: [{2: I64(0), 3: column}], 2: I64(50), 3: I64(9)}],
    }
    if orders is not None:
        metadata[7] = orders
    return parse_metadata(Cursor(encode(metadata)).struct()).row_groups[0].chunks[0]


NEW = {3: I64(2), 5: b"zzzz", 6: b"aaaa"}
OLD = {1: b"zzzz", 2: b"aaaa"}
DEFINED: list[Struct] = [{1: {}}]


@pytest.mark.parametrize("element, statistics, orders, believed", [
    ({1: 6}, NEW, DEFINED, True),
    ({1: 6}, NEW, None, False),
    ({1: 6}, NEW, [{2: {}}], False),
    ({1: 6}, OLD, DEFINED, False),
    ({1: 7, 2: 4}, NEW, DEFINED, True),
    ({1: 7, 2: 4}, NEW, None, False),
    ({1: 7, 2: 4, 6: 21}, NEW, DEFINED, False),  # an interval
    ({1: 7, 2: 2, 10: {15: {}}}, NEW, DEFINED, False),  # a half
    ({1: 1}, NEW, DEFINED, True),
    ({1: 1}, NEW, None, True),
    ({1: 1}, OLD, None, True),
    ({1: 4}, OLD, DEFINED, True),
    ({1: 1, 6: 13}, OLD, None, False),  # unsigned
    ({1: 1, 10: {10: {1: I8(32), 2: False}}}, NEW, DEFINED, False),
    ({1: 1, 10: {10: {1: I8(32), 2: True}}}, NEW, DEFINED, True),
    ({1: 3}, NEW, DEFINED, False),  # INT96
    ({1: 2}, NEW, DEFINED, False),  # eight bytes, but the bounds have four
], ids=str)  # fmt: skip
def test_bounds_that_can_be_believed(
    element: Struct, statistics: Struct, orders: list[Struct] | None, believed: bool
) -> None:
    found = footer_of(element, statistics, orders).statistics
    assert (found.min_value, found.max_value) == ((b"aaaa", b"zzzz") if believed else (None, None))
    assert found.null_count == (2 if statistics is NEW else None)


# -- made by hand


def bloom_file(header: Struct, bits: bytes, told: bool = True) -> tuple[Source, Chunk]:
    """A file of nothing but a filter and a footer that points at it."""
    blob = encode(header) + bits
    column = {1: 2, 2: [0], 3: [b"v"], 4: 0, 5: I64(0), 6: I64(0), 7: I64(0), 9: I64(4), 14: I64(len(MAGIC))}
    if told:
        column[15] = len(blob)
    group = {1: [{2: I64(0), 3: column}], 2: I64(0), 3: I64(0)}
    schema = [{4: b"schema", 5: 1}, {1: 2, 3: 1, 4: b"v"}]
    footer = encode({1: 1, 2: schema, 3: I64(0), 4: [group]})
    source = BytesSource(MAGIC + blob + footer + len(footer).to_bytes(4, "little") + MAGIC)
    return source, read_footer(source).row_groups[0].chunks[0]


BITS = bytes(range(256)) * 2
HEADER: Struct = {1: len(BITS), 2: {1: {}}, 3: {1: {}}, 4: {1: {}}}


@pytest.mark.parametrize("told", [True, False])
def test_a_bloom_filter(told: bool) -> None:
    source, chunk = bloom_file(HEADER, BITS, told)
    before = source.reads
    assert read_bloom(source, chunk) == BITS
    assert source.reads - before == (1 if told else 2)


@pytest.mark.parametrize("union", [2, 3, 4])
def test_a_bloom_filter_of_another_kind(union: int) -> None:
    assert read_bloom(*bloom_file({**HEADER, union: {7: {}}}, BITS)) is None


@pytest.mark.parametrize("size", [0, -32, 31, len(BITS) + 32, 1 << 30])
@pytest.mark.parametrize("told", [True, False])
def test_a_bloom_filter_of_no_size(size: int, told: bool) -> None:
    source, chunk = bloom_file({**HEADER, 1: size}, BITS, told)
    if not told and size == len(BITS) + 32:
        return  # the bytes after it are as good as any
    with pytest.raises(ParquetError, match="Bloom"):
        read_bloom(source, chunk)


# -- Spark


def test_spark(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "written"
    frame = spark.range(0, 70_000, 1, 1).selectExpr(
        "id AS k", "concat('name ', id % 5000) AS s", "CASE WHEN id % 9 > 0 THEN id / 7 END AS d"
    )
    writer = frame.write.option("parquet.bloom.filter.enabled#k", "true")
    writer = writer.option("parquet.bloom.filter.expected.ndv#k", "70000")
    writer.option("parquet.page.row.count.limit", "20000").parquet(str(folder))
    (path,) = map(str, folder.glob("*.parquet"))
    with LocalSource(path) as source:
        assert holds(source, 0, pq.read_table(path)) >= 3 * 4
        chunks = read_footer(source).row_groups[0].chunks
        bits = read_bloom(source, chunks[0])
        assert bits is not None
        assert len(bits) >= 70_000
        assert 0.1 < np.unpackbits(np.frombuffer(bits, np.uint8)).mean() < 0.6
        assert read_bloom(source, chunks[1]) is None
        index = read_page_index(source, chunks[0])
        assert index is not None
        before = source.bytes_read
        column, rows = read_rows(source, read_footer(source), chunks[0].leaf, 0, [(41_000, 41_003)], index)
        assert column.to_pylist() == rows.tolist() == [41_000, 41_001, 41_002]
        assert source.bytes_read - before < 2 * chunks[0].size / len(index) + (64 << 10)
