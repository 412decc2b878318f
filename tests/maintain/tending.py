"""Tables in need of care, and what must be true of them before and after."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from rookery.api.lake import Lake
from rookery.io import local_path
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.policies.policy import DEFAULT, Orphans, Policy, Snapshots
from rookery.maintain.steps.reachable_files import reached, statistics_paths
from rookery.maintain.steps.step import MaintainedTable, Outcome, StepReport, TableRun, TableView
from rookery.maintain.survey import survey
from tests.interop.java import IcebergJava

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 24 * 3600.0
# Snapshots go at once, but for the last two; what is older than a day is old.
BRISK = replace(
    DEFAULT,
    snapshots=Snapshots(timedelta(milliseconds=1), 2),
    orphans=Orphans(timedelta(days=2)),
)


def no_spark() -> SparkSession:
    raise AssertionError("Spark was asked for")


def maintained_of(
    lake: Lake,
    name: str,
    spark: SparkSession | None,
    policy: Policy = BRISK,
    *,
    forced: bool = False,
    clock: Callable[[], float] = time.time,
) -> MaintainedTable:
    full = lake.table_name(name)
    start = no_spark if spark is None else lambda: spark
    return MaintainedTable(full, lambda: lake.open(full), start, policy, clock, forced, lake.other_tables())


def run_step(spark: SparkSession | None, lake: Lake, table: str, step: str, policy: Policy) -> StepReport:
    """Take one step of the pipeline."""
    done = maintain_table(maintained_of(lake, table, spark, policy), only=[step]).steps[0]
    assert done.outcome is not Outcome.FAILED, done.error
    return done


def view_of(
    lake: Lake, name: str, policy: Policy = BRISK, *, done: tuple[str, ...] = (), forced: bool = False
) -> TableView:
    maintained = maintained_of(lake, name, None, policy, forced=forced)
    return maintained.view(survey(*maintained.load()), done)


def by_step(run: TableRun) -> dict[str, StepReport]:
    return {step.step: step for step in run.steps}


def rows_hash(spark: SparkSession, table: str, version: int | str | None = None) -> tuple[int, object]:
    """All rows of a table as one number, whatever their order."""
    reader = spark.read if version is None else spark.read.option("versionAsOf", version)
    frame = reader.table(table)
    columns = ", ".join(f"`{name}`" for name in frame.columns)
    row = frame.selectExpr(f"hash({columns}) AS h", f"xxhash64({columns}) AS x").selectExpr(
        "count(*) AS n", "sum(cast(x AS decimal(38,0)) * 31 + h) AS s"
    )
    found = row.first()
    assert found is not None
    return found["n"], found["s"]


def estimated_rows(spark: SparkSession, table: str, where: str) -> int:
    """How many rows Spark expects of a filter: with a number of distinct values, a share of the table's."""
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        plan = spark.sql(f"EXPLAIN COST SELECT * FROM {table} WHERE {where}").collect()[0][0]
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
    found = re.search(r"Filter.*rowCount=([\d.E+]+)", plan)
    return int(float(found.group(1))) if found else -1


def folder_of(lake: Lake, table: str) -> Path:
    return Path(local_path(lake.load(table).location()))


def plant(folder: Path, name: str, age: float, content: bytes = b"nobody knows me") -> Path:
    """Put a file that nothing names into a folder, of an age in seconds."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    at = time.time() - age
    os.utime(path, (at, at))
    return path


def make_old(folder: Path, age: float) -> None:
    """Let all files in a folder look old, so that only being named keeps them."""
    at = time.time() - age
    for path in folder.rglob("*"):
        os.utime(path, (at, at))


def missing_files(lake: Lake, table: str) -> list[str]:
    """Files that some snapshot or statistics entry names and that are not there."""
    loaded, _ = lake.open(table)
    names = [*reached(loaded, loaded.snapshots).paths(), *statistics_paths(loaded)]
    return [name for name in names if not os.path.exists(local_path(name))]


def delete_equal(spark: SparkSession, lake: Lake, table: str, column: str, values: pa.Array) -> None:
    """Delete rows by equality, as Flink does: the values in a file, committed by Java."""
    number = str(lake.load(table).schema().find_field(column).field_id)
    field = pa.field(column, values.type, metadata={"PARQUET:field_id": number})
    path = folder_of(lake, table) / "data" / f"equal-{time.time_ns()}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_arrays([values], schema=pa.schema([field])), path)
    java = IcebergJava(spark)
    java.table(table).refresh()
    java.commit_deletes(table, [java.equality_deletes(table, str(path), [column], len(values))])
    spark.catalog.refreshTable(table)
