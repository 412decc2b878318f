"""The whole pipeline on real tables: the rows stay, what is in the way goes."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from rookery.maintain.pipeline import NAMES, maintain_table
from rookery.maintain.policies.policy import DEFAULT
from rookery.maintain.steps.step import Outcome
from tests.lakehouse import NewTable
from tests.maintain.tending import (
    BRISK,
    DAY,
    by_step,
    delete_equal,
    estimated_rows,
    folder_of,
    maintained_of,
    make_old,
    missing_files,
    plant,
    rows_hash,
)

PATIENT = replace(BRISK, snapshots=DEFAULT.snapshots)


def fill(spark: SparkSession, table: str, files: int, rows: int = 100) -> None:
    """Append small files, a commit each."""
    for number in range(files):
        start = number * rows
        spark.range(start, start + rows, 1, 1).selectExpr(
            "id", "cast(id % 7 AS int) AS kind", "concat('row ', id) AS note"
        ).writeTo(table).append()


@pytest.mark.parametrize(
    ("version", "partitioned"), [(2, ""), (2, "kind"), (3, "bucket(2, id)")], ids=["v2", "v2-parts", "v3"]
)
def test_a_neglected_table_is_made_whole(
    spark: SparkSession, lake: Lake, own_table: NewTable, version: int, partitioned: str
) -> None:
    table = own_table(
        "id bigint, kind int, note string",
        partitioned=partitioned,
        format_version=version,
    )
    fill(spark, table, 6)
    spark.sql(f"ALTER TABLE {table} CREATE TAG kept")
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH side")
    spark.sql(f"INSERT INTO {table}.branch_side VALUES (-1, 0, 'aside')")
    spark.sql(f"DELETE FROM {table} WHERE id % 3 = 0")
    if not partitioned:
        delete_equal(spark, lake, table, "id", pa.array([1, 2, 4], pa.int64()))
    fill(spark, table, 2, 10)
    before = rows_hash(spark, table)
    tagged, aside = (rows_hash(spark, table, ref) for ref in ("kept", "side"))
    folder = folder_of(lake, table)
    make_old(folder, 9 * DAY)
    old = plant(folder, "data/nobodys.parquet", 3 * DAY)
    young = plant(folder, "data/somebodys.parquet", DAY / 2)

    run = maintain_table(maintained_of(lake, table, spark))

    steps = by_step(run)
    assert run.outcome is Outcome.DONE, [(step.step, step.error) for step in run.steps]
    assert list(steps) == list(NAMES)
    assert rows_hash(spark, table) == before
    assert rows_hash(spark, table, "kept") == tagged
    assert rows_hash(spark, table, "side") == aside
    assert missing_files(lake, table) == []
    assert not old.exists()
    assert young.exists()
    assert steps["rewrite data files"].outcome is Outcome.DONE
    assert spark.table(f"{table}.delete_files").count() == 0
    assert estimated_rows(spark, table, "note = 'row 7'") <= 2 < before[0]  # by the number of distinct values
    assert lake.open(table)[1].states()

    assert "planned were" not in " ".join(step.why for step in run.steps)

    again = maintain_table(maintained_of(lake, table, None, PATIENT))  # no Spark: there is nothing to do
    assert {step.step: step.outcome for step in again.steps} == dict.fromkeys(NAMES, Outcome.NOT_NEEDED)


def test_an_empty_table_needs_nothing(lake: Lake, new_table: NewTable) -> None:
    table = new_table("id bigint, kind string")
    run = maintain_table(maintained_of(lake, table, None))
    assert {step.outcome for step in run.steps} == {Outcome.NOT_NEEDED}
