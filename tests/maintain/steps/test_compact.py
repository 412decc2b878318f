"""Rewriting data files: what is planned from metadata is what Iceberg then does."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.policies.policy import Compaction, Policy, RunLimits, Strategy, Verify
from rookery.maintain.steps import compact
from rookery.maintain.steps.sort_depth import sort_depth
from rookery.maintain.steps.step import Idle, Outcome, Plan, StepReport
from rookery.model import UsageError
from tests.lakehouse import NewTable, append_ids
from tests.maintain.tending import BRISK, delete_equal, maintained_of, rows_hash, view_of

ONLY = ("rewrite data files",)


append = partial(
    append_ids, columns=("cast(id % 3 AS int) AS kind", "sha2(cast(id AS string), 512) AS noise")
)


def of(policy: Policy = BRISK, **settings: object) -> Policy:
    return replace(policy, compaction=replace(policy.compaction, **settings))  # type: ignore[arg-type]


def compacted(spark: SparkSession, lake: Lake, table: str, policy: Policy) -> tuple[Plan, StepReport]:
    """Plan without Spark, then do it: the rows must be the same, the numbers those that were planned."""
    planned = compact.plan(view_of(lake, table, policy))
    assert isinstance(planned, Plan), planned
    before = rows_hash(spark, table)
    done = maintain_table(maintained_of(lake, table, spark, policy), only=ONLY).steps[0]
    assert done.outcome is Outcome.DONE, done.error
    assert rows_hash(spark, table) == before
    assert done.files == planned.files
    return planned, done


COLUMNS = "id bigint, kind int, noise string"


def test_small_files_of_each_partition_become_one(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS, partitioned="kind")
    for number in range(5):
        append(spark, table, number * 30, 30)
    append(spark, table, 1000, 1)  # of one partition a sixth file
    planned, done = compacted(spark, lake, table, of())
    assert planned.files == 16
    assert done.bytes == planned.bytes
    assert done.after["files"] == 3


def test_few_small_files_are_left(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    for number in range(4):
        append(spark, table, number, 10)
    assert isinstance(compact.plan(view_of(lake, table, of())), Idle)
    assert compacted(spark, lake, table, of(min_files=4))[0].files == 4


def test_after_the_partitioning_changed_old_files_are_taken_together(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS, partitioned="kind")
    for number in range(2):
        append(spark, table, number * 3, 3)  # three files each
    spark.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD kind WITH bucket(2, id)")
    append(spark, table, 100, 30)
    planned, _ = compacted(spark, lake, table, of())
    assert planned.files == 6  # two of the new spec are too few


@pytest.mark.parametrize("version", [2, 3])
def test_files_with_many_deleted_rows(
    spark: SparkSession, lake: Lake, new_table: NewTable, version: int
) -> None:
    table = new_table(
        COLUMNS,
        format_version=version,
        **{"write.delete.granularity": "file", "write.delete.mode": "merge-on-read"},
    )
    append(spark, table, 0, 100)
    append(spark, table, 100, 100)
    spark.sql(f"DELETE FROM {table} WHERE id < 30 OR id BETWEEN 110 AND 119")
    size = max(row[0] for row in spark.sql(f"SELECT file_size_in_bytes FROM {table}.data_files").collect())
    policy = of(target_size=size + 100, small_size=10)
    planned, done = compacted(spark, lake, table, policy)
    assert planned.files == 1
    assert "1 file with too many deleted rows" in planned.why
    assert isinstance(compact.plan(view_of(lake, table, policy)), Idle)
    assert done.bytes == planned.bytes


def test_equality_deletes_count_for_nothing_as_no_one_knows_how_many_rows_they_hit(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 100)
    delete_equal(spark, lake, table, "id", pa.array(range(90), pa.int64()))
    size = spark.sql(f"SELECT file_size_in_bytes FROM {table}.data_files").collect()[0][0]
    assert isinstance(compact.plan(view_of(lake, table, of(target_size=size + 100, small_size=10))), Idle)


def test_large_files_are_split(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS, **{"write.parquet.row-group-size-bytes": 16_384})
    append(spark, table, 0, 2_000)
    size = spark.sql(f"SELECT file_size_in_bytes FROM {table}.data_files").collect()[0][0]
    planned, done = compacted(spark, lake, table, of(target_size=size // 3, small_size=1))
    assert planned.files == 1
    assert done.after["files"] > 1


def test_a_limit_leaves_the_rest_for_the_next_run(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    for number in range(8):
        append(spark, table, number * 50, 50)
    sizes = sorted(
        row[0] for row in spark.sql(f"SELECT file_size_in_bytes FROM {table}.data_files").collect()
    )
    policy = replace(of(), limits=RunLimits(sum(sizes[-5:]) + 1))
    planned, done = compacted(spark, lake, table, policy)
    assert planned.files == 5
    assert "the limit leaves 3 for the next run" in planned.why
    assert done.bytes <= sum(sizes[-5:])
    assert done.after["files"] == 4
    with pytest.raises(UsageError, match="more than the limit of a run"):  # it would never be done
        compact.plan(view_of(lake, table, replace(of(min_files=2), limits=RunLimits(1))))


def test_sorting_mends_what_lies_over_one_another(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    for number in range(6):  # each file reaches over nearly all values
        spark.range(number, 3_000 + number, 6, 1).selectExpr(
            "id", "0 AS kind", "sha2(cast(id AS string), 512) AS noise"
        ).writeTo(table).append()
    size = max(row[0] for row in spark.sql(f"SELECT file_size_in_bytes FROM {table}.data_files").collect())
    policy = replace(
        of(strategy=Strategy.SORT, columns=("id",), target_size=size + 1, small_size=1), verify=Verify.ROWS
    )
    survey = view_of(lake, table, policy).survey
    assert sort_depth(survey, policy.compaction) == pytest.approx(
        3.5
    )  # none lies below the first, five below the last
    assert isinstance(compact.plan(view_of(lake, table, policy)), Idle)  # not deep enough
    policy = of(policy, most_overlap=3.0)
    planned, done = compacted(spark, lake, table, policy)
    assert planned.files == 6
    assert done.after["files"] > 1
    assert sort_depth(view_of(lake, table, policy).survey, policy.compaction) == pytest.approx(1.0)
    assert isinstance(compact.plan(view_of(lake, table, policy)), Idle)


def test_z_order_and_odd_names(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table("`a b` int, `c.d` int, `e'f` string")
    for number in range(5):
        spark.sql(f"INSERT INTO {table} SELECT id % 5, id % 7, 'x' FROM range({number}, 20)")
    planned, _ = compacted(spark, lake, table, of(strategy=Strategy.Z_ORDER, columns=("a b",)))
    assert planned.files >= 5


def test_an_order_that_is_not_there_is_said(lake: Lake, spark: SparkSession, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 10)
    with pytest.raises(UsageError, match="has no sort order"):
        compact.plan(view_of(lake, table, of(strategy=Strategy.SORT)))
    with pytest.raises(UsageError, match="z-order needs columns"):
        compact.plan(view_of(lake, table, of(strategy=Strategy.Z_ORDER)))
    with pytest.raises(UsageError, match="nowhere"):
        compact.plan(view_of(lake, table, of(strategy=Strategy.SORT, columns=("nowhere",))))
    with pytest.raises(UsageError, match="would count as small"):
        compact.plan(view_of(lake, table, of(target_size=10, small_size=10)))
    assert isinstance(compact.plan(view_of(lake, table, of(strategy=Strategy.NONE))), Idle)


def test_default_settings_are_icebergs(lake: Lake, spark: SparkSession, new_table: NewTable) -> None:
    table = new_table(COLUMNS, **{"write.target-file-size-bytes": 1_000_003})
    append(spark, table, 0, 1)
    sizes = compact.sizes_of(view_of(lake, table).survey, BRISK)
    assert (sizes.target, sizes.small, sizes.large) == (1_000_003, 750_002, 1_800_005)
    assert Compaction().delete_ratio == 0.3
