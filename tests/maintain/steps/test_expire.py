"""Expiring snapshots: nothing that a snapshot which stays needs is lost, nor statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from rookery.api.analyze import analyze
from rookery.api.lake import Lake
from rookery.maintain.policies.policy import Snapshots
from rookery.maintain.steps import expire
from rookery.maintain.steps.step import Idle, Plan
from tests.lakehouse import NewTable, append_ids
from tests.maintain.tending import (
    BRISK,
    estimated_rows,
    folder_of,
    missing_files,
    rows_hash,
    run_step,
    view_of,
)

COLUMNS = "id bigint, kind string"
LAST = replace(BRISK, snapshots=Snapshots(timedelta(milliseconds=1), 1))
append = partial(append_ids, columns=("cast(id % 3 AS string) AS kind",))


def registered(lake: Lake, table: str) -> set[int]:
    return {file.snapshot_id for file in lake.load(table).metadata.statistics}


def test_statistics_are_registered_before_the_old_ones_go(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 300)
    analyze(spark, table)
    append(spark, table, 300, 300)
    current = lake.load(table).metadata.current_snapshot_id
    assert current not in registered(lake, table)
    assert estimated_rows(spark, table, "kind = '1'") == 600  # with no number of distinct values

    planned = expire.plan(view_of(lake, table, LAST))
    assert isinstance(planned, Plan)
    assert planned.details["kinds"]["statistics"] == 1
    done = run_step(spark, lake, table, expire.NAME, LAST)

    assert "registered first" in done.why
    assert registered(lake, table) == {current}
    assert estimated_rows(spark, table, "kind = '1'") == 200
    assert missing_files(lake, table) == []
    assert len(list(folder_of(lake, table).glob("metadata/*.stats"))) == 1
    state = view_of(lake, table).survey.state
    assert state is not None
    assert state.header.snapshot_id == current


def test_what_goes_is_what_was_planned(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS, partitioned="kind")
    for number in range(3):
        append(spark, table, number * 30, 30)
    spark.sql(f"DELETE FROM {table} WHERE id % 5 = 0")
    analyze(spark, table)
    spark.sql(f"CALL lake.system.compute_partition_stats('{table}')")
    spark.sql(f"ALTER TABLE {table} CREATE TAG early AS OF VERSION {_first(spark, table)}")
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    )
    spark.sql(f"INSERT OVERWRITE {table} SELECT id, kind FROM {table} WHERE kind = '1'")
    before, early = rows_hash(spark, table), rows_hash(spark, table, "early")
    folder = folder_of(lake, table)
    there = set(_files(folder))

    planned = expire.plan(view_of(lake, table, LAST))
    assert isinstance(planned, Plan)
    kinds = planned.details["kinds"]
    assert all(kinds[kind] for kind in ("data", "position", "manifests", "lists", "statistics")), kinds
    done = run_step(spark, lake, table, expire.NAME, LAST)

    assert "planned were" not in done.why
    assert done.files == planned.files
    gone = there - set(_files(folder))
    assert len(gone) == planned.files
    assert done.after["snapshots"] == 2
    assert (rows_hash(spark, table), rows_hash(spark, table, "early")) == (before, early)
    assert missing_files(lake, table) == []


def _first(spark: SparkSession, table: str) -> int:
    return int(spark.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at").collect()[0][0])


def _files(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.endswith((".crc", ".metadata.json")):
            yield str(path)


def test_snapshots_are_kept_where_that_is_said(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    for number in range(3):
        append(spark, table, number, 1)
    assert isinstance(expire.plan(view_of(lake, table, LAST)), Plan)
    for_ever = replace(BRISK, snapshots=Snapshots(None, 1))
    assert isinstance(expire.plan(view_of(lake, table, for_ever)), Idle)
    assert isinstance(
        expire.plan(view_of(lake, table, replace(BRISK, snapshots=Snapshots(timedelta(1), 1)))), Idle
    )
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('gc.enabled' = 'false')")
    idle = expire.plan(view_of(lake, table, LAST))
    assert isinstance(idle, Idle)
    assert "gc.enabled" in idle.why
