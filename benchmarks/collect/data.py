"""The tables that are measured, in a lake of their own. Data is made once; what a run adds is taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from pyspark.sql import SparkSession

from benchmarks.harness import Effort
from rookery.api.lake import Lake
from rookery.storage import local_path
from rookery.tables import CatalogConfig
from rookery.tables.catalogs import HOME_VARIABLE, embedded

CATALOG = "bench"
SMALL_ROWS = 5_000
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


@dataclass(frozen=True)
class Bench:
    """The lake, a session that knows it, and where its data lies."""

    lake: Lake
    spark: SparkSession
    folder: Path

    def table(self, name: str) -> Table:
        return self.lake.load(name)

    def exists(self, name: str) -> bool:
        return self.lake.catalog.table_exists(tuple(name.split(".")))


def open_bench(effort: Effort) -> Bench:
    folder = effort.data.absolute() / f"scale-{effort.scale:g}"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault(HOME_VARIABLE, str(folder))
    lake = Lake(CatalogConfig(CATALOG, embedded(folder).properties))
    bench = Bench(lake, lake.spark(), folder)
    for namespace in ("tpch", "made"):
        lake.catalog.create_namespace_if_not_exists(namespace)
    return bench


def sizes(table: Table) -> dict[str, int]:
    """The data files of a table with their sizes."""
    files = table.inspect.data_files()
    return dict(zip(files["file_path"].to_pylist(), files["file_size_in_bytes"].to_pylist(), strict=True))


def rolled_back(bench: Bench, name: str, files: int) -> str:
    """Take back what earlier runs have appended to a table of *files* files."""
    table = bench.table(name)
    for snapshot in table.metadata.snapshots:
        if snapshot.summary is not None and int(snapshot.summary["total-data-files"] or 0) == files:
            if snapshot.snapshot_id != table.metadata.current_snapshot_id:
                call = f"CALL {CATALOG}.system.rollback_to_snapshot('{name}', {snapshot.snapshot_id})"
                bench.spark.sql(call).collect()
            return name
    raise LookupError(f"{name} has no snapshot of {files} files; delete {bench.folder} to make it anew")


def forget(bench: Bench, name: str) -> None:
    """Delete what earlier runs have left beside a table."""
    shutil.rmtree(local_path(bench.table(name).location()) + ".rookery", ignore_errors=True)


# -- TPC-H, written by Spark


def lineitem(bench: Bench, files: int, effort: Effort) -> str:
    """TPC-H lineitem of scale factor 2 in so many files."""
    name = f"tpch.lineitem_{files}"
    if not bench.exists(name):
        frame = bench.spark.read.parquet(str(_generated(bench, effort))).repartition(files)
        writer = frame.writeTo(f"{CATALOG}.{name}").tableProperty("format-version", "2")
        writer.tableProperty("write.parquet.compression-codec", "zstd").create()
    forget(bench, name)
    return rolled_back(bench, name, files)


def _generated(bench: Bench, effort: Effort) -> Path:
    folder = bench.folder / "generated"
    made = folder / "lineitem.parquet"
    if not made.exists():
        tool = str(Path(sys.executable).with_name("tpchgen-cli"))
        scale = f"{2 * effort.scale:g}"
        subprocess.run(
            [tool, "parquet", "-s", scale, "--tables=lineitem", f"--output-dir={folder}"],
            check=True,
            capture_output=True,
        )
    return made


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
    table = _made_anew(bench, name, SMALL_SCHEMA)
    for numbers in np.array_split(np.arange(files), min(4, files)):
        append_small(bench, table, numbers.tolist())
    return table


def append_small(bench: Bench, table: Table, numbers: Sequence[int]) -> list[DataFile]:
    """Append the small files of these numbers in one commit."""
    paths = [_small_file(bench, number).as_uri() for number in numbers]
    added = [parquet_file_to_data_file(table.io, table.metadata, path) for path in paths]
    _append(table, added)
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


def _made_anew(bench: Bench, name: str, schema: Schema) -> Table:
    identifier = tuple(name.split("."))
    if bench.exists(name):
        forget(bench, name)
        location = local_path(bench.table(name).location())
        bench.lake.catalog.drop_table(identifier)
        shutil.rmtree(location, ignore_errors=True)
    return bench.lake.catalog.create_table(identifier, schema, properties={"format-version": "2"})


def _append(table: Table, files: Sequence[DataFile]) -> None:
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for file in files:
            append.append_data_file(file)


# -- a table that is metadata alone


def wide_table(bench: Bench, files: int) -> str:
    """A table of so many files with bounds for 16 columns; the files themselves do not exist."""
    name = "made.wide"
    if not bench.exists(name) or _count(bench.table(name)) < files:
        table = _made_anew(bench, name, WIDE_SCHEMA)
        for numbers in np.array_split(np.arange(files), min(5, files)):
            append_wide(table, numbers.tolist())
    return rolled_back(bench, name, files)


def _count(table: Table) -> int:
    snapshots = (snapshot.summary for snapshot in table.metadata.snapshots)
    return max((int(summary["total-data-files"] or 0) for summary in snapshots if summary), default=0)


def append_wide(table: Table, numbers: Sequence[int]) -> None:
    """Append files of these numbers, in one commit."""
    _append(table, list(_wide_files(table.location(), numbers)))


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
