"""The tables that are measured, in a lake of their own. Data is made once; what a run adds is taken back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DecimalType, DoubleType, IntegerType, LongType, NestedField, StringType

from benchmarks.harness import Effort
from benchmarks.lake import (
    CATALOG,
    Bench,
    append_files,
    forget,
    generated,
    made_anew,
    rolled_back,
    sizes,
)

SMALL_ROWS = 5_000
MANIFEST_FILES = 10_000  # at 16 columns 3 MB; Iceberg merges manifests up to 8 MB
SMALL_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "customer", IntegerType(), required=False),
    NestedField(3, "price", DoubleType(), required=False),
    NestedField(4, "status", StringType(), required=False),
)
_KINDS = (LongType(), IntegerType(), DecimalType(15, 2), DateType(), StringType())
WIDE_SCHEMA = Schema(
    *(NestedField(number, f"c{number}", _KINDS[number % 5], required=False) for number in range(1, 17))
)


# -- TPC-H, written by Spark


def lineitem(bench: Bench, files: int, effort: Effort) -> str:
    """TPC-H lineitem of scale factor 2 in so many files."""
    name = f"tpch.lineitem_{files}"
    if not bench.exists(name):
        made = generated(bench.folder / "generated", "lineitem", 2 * effort.scale)
        frame = bench.spark.read.parquet(str(made)).repartition(files)
        writer = frame.writeTo(f"{CATALOG}.{name}").tableProperty("format-version", "2")
        writer.tableProperty("write.parquet.compression-codec", "zstd").create()
    forget(bench, name)
    return rolled_back(bench, name, files)


def append_copy(bench: Bench, name: str) -> int:
    """Append a copy of the table's first file, by Spark; return the new file's size."""
    before = sizes(bench.table(name))
    one = bench.spark.read.parquet(min(before)).coalesce(1)
    one.writeTo(f"{CATALOG}.{name}").append()
    (added,) = sizes(bench.table(name)).keys() - before.keys()
    return sizes(bench.table(name))[added]


# -- many small files


def small_table(bench: Bench, name: str, files: int) -> Table:
    """A table, made anew, of so many small files, which are kept."""
    table = made_anew(bench, name, SMALL_SCHEMA)
    for numbers in np.array_split(np.arange(files), min(4, files)):
        append_small(bench, table, numbers.tolist())
    return table


def append_small(bench: Bench, table: Table, numbers: Sequence[int]) -> list[DataFile]:
    """Append the small files of these numbers in one commit."""
    paths = [_small_file(bench, number).as_uri() for number in numbers]
    added = [parquet_file_to_data_file(table.io, table.metadata, path) for path in paths]
    append_files(table, added)
    return added


def _small_file(bench: Bench, number: int) -> Path:
    path = bench.folder / "small" / f"{number:06d}.parquet"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        random = np.random.default_rng(number)
        statuses = pa.array(["open", "paid", "shipped", "returned"])
        columns = [
            pa.array(np.arange(SMALL_ROWS, dtype=np.int64) + number * SMALL_ROWS),
            pa.array(random.integers(0, 100_000, SMALL_ROWS, np.int32)),
            pa.array(random.integers(1, 1_000_000, SMALL_ROWS) / 100),
            statuses.take(pa.array(random.integers(0, 4, SMALL_ROWS))),
        ]
        fields = [
            pa.field(field.name, column.type, metadata={"PARQUET:field_id": str(field.field_id)})
            for field, column in zip(SMALL_SCHEMA.fields, columns, strict=True)
        ]
        pq.write_table(pa.table(columns, schema=pa.schema(fields)), path, compression="zstd")
    return path


# -- a table that is metadata alone


def wide_table(bench: Bench, files: int, name: str = "made.wide") -> str:
    """A table of so many files with bounds for 16 columns; the files themselves do not exist."""
    if not bench.exists(name) or _count(bench.table(name)) < files:
        table = made_anew(bench, name, WIDE_SCHEMA)
        for numbers in np.array_split(np.arange(files), max(min(5, files), files // MANIFEST_FILES)):
            append_wide(table, numbers.tolist())
    return rolled_back(bench, name, files)


def _count(table: Table) -> int:
    snapshots = (snapshot.summary for snapshot in table.metadata.snapshots)
    return max((int(summary["total-data-files"] or 0) for summary in snapshots if summary), default=0)


def append_wide(table: Table, numbers: Sequence[int]) -> None:
    """Append files of these numbers, in one commit."""
    append_files(table, list(_wide_files(table.location(), numbers)))


def _wide_files(location: str, numbers: Sequence[int]) -> Iterator[DataFile]:
    ids = [field.field_id for field in WIDE_SCHEMA.fields]
    for number in numbers:
        yield DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{location}/data/{number:05d}-00000-0c1f7a52-6d2e-4d5c-9a39-5d0f4f7f2b11.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=100_000,
            file_size_in_bytes=4 << 20,
            column_sizes=dict.fromkeys(ids, 250000 + number),
            value_counts=dict.fromkeys(ids, 100000),
            null_value_counts=dict.fromkeys(ids, number % 7),
            nan_value_counts={},
            lower_bounds={field.field_id: _bound(field, number) for field in WIDE_SCHEMA.fields},
            upper_bounds={field.field_id: _bound(field, number + 1) for field in WIDE_SCHEMA.fields},
            split_offsets=[4],
            sort_order_id=None,
            spec_id=0,
            equality_ids=None,
            key_metadata=None,
        )


def _bound(field: NestedField, number: int) -> bytes:
    kind = field.field_type
    if isinstance(kind, StringType):
        return f"value-{number:010d}".encode()
    if isinstance(kind, DecimalType):
        return number.to_bytes(4, "big")
    return to_bytes(kind, number)  # type: ignore[arg-type]
