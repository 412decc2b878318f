"""Rewriting deletes and manifests: fewer files, the same rows, and no delete that still applies is lost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.policies.policy import Deletes, Manifests, Policy, Verify
from rookery.maintain.steps import rewrite_deletes, rewrite_manifests
from rookery.maintain.steps.step import Idle, Outcome, Plan, StepReport
from rookery.model import RookeryError
from rookery.tables.iceberg.dangling_deletes import remove_deletes
from rookery.tables.java_errors import ConflictError
from tests.lakehouse import NewTable, append_ids
from tests.maintain.tending import BRISK, delete_equal, maintained_of, rows_hash, view_of

COLUMNS = "id bigint, kind int"
POLICY = replace(BRISK, verify=Verify.ROWS)


append = partial(append_ids, columns=("cast(id % 3 AS int) AS kind",))


def tended(spark: SparkSession, lake: Lake, table: str, step: str, policy: Policy = POLICY) -> StepReport:
    """Take one step; the rows must be the same, the files those that were planned."""
    module = rewrite_deletes if step == rewrite_deletes.NAME else rewrite_manifests
    planned = module.plan(view_of(lake, table, policy))
    assert isinstance(planned, Plan), planned
    before = rows_hash(spark, table)
    done = maintain_table(maintained_of(lake, table, spark, policy), only=[step]).steps[0]
    assert done.outcome is Outcome.DONE, done.error
    assert rows_hash(spark, table) == before
    assert done.files == planned.files
    assert isinstance(module.plan(view_of(lake, table, policy)), Idle)
    return done


def deletes(spark: SparkSession, table: str) -> int:
    return spark.table(f"{table}.delete_files").count()


def test_small_position_deletes_become_few(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS, partitioned="kind", **{"write.delete.granularity": "partition"})
    append(spark, table, 0, 90)
    for number in range(5):
        spark.sql(f"DELETE FROM {table} WHERE id IN ({number * 3}, {number * 3 + 1}, {number * 3 + 2})")
    spark.sql(f"DELETE FROM {table} WHERE id = 50")
    assert deletes(spark, table) == 16
    done = tended(spark, lake, table, rewrite_deletes.NAME)
    assert "16 small position delete files" in done.why
    assert deletes(spark, table) == 3


def test_few_are_left_alone(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 90)
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    assert isinstance(rewrite_deletes.plan(view_of(lake, table)), Idle)
    none = new_table(COLUMNS)
    append(spark, none, 0, 1)
    assert isinstance(rewrite_deletes.plan(view_of(lake, none)), Idle)


@pytest.mark.parametrize("partitioned", ["", "kind"], ids=["whole", "parts"])
def test_deletes_of_files_that_are_gone_are_removed(
    spark: SparkSession, lake: Lake, new_table: NewTable, partitioned: str
) -> None:
    table = new_table(COLUMNS, partitioned=partitioned, **{"write.delete.granularity": "file"})
    append(spark, table, 0, 9)
    append(spark, table, 100, 9)
    spark.sql(f"DELETE FROM {table} WHERE id IN (0, 1, 2, 100, 101)")
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', where => 'id < 10', "
        "options => map('rewrite-all', 'true'))"
    )  # leaves the deletes of what it rewrote behind
    attached = view_of(lake, table).survey
    loose = attached.dangling.num_rows
    assert loose > 0
    left = deletes(spark, table) - loose
    done = tended(spark, lake, table, rewrite_deletes.NAME)
    assert done.files == loose
    assert deletes(spark, table) == left > 0


def test_they_stay_where_the_policy_says_so(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS, partitioned="kind", **{"write.delete.granularity": "file"})
    append(spark, table, 0, 9)
    spark.sql(f"DELETE FROM {table} WHERE id IN (0, 1, 2)")
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    )
    assert isinstance(rewrite_deletes.plan(view_of(lake, table)), Plan)
    policy = replace(BRISK, deletes=Deletes(dangling=False))
    assert isinstance(rewrite_deletes.plan(view_of(lake, table, policy)), Idle)


def test_a_delete_for_the_whole_table_stays_though_its_spec_has_no_data(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    """Such a delete is no partition's, and taking it for one would bring rows back."""
    table = new_table(COLUMNS, partitioned="kind", **{"write.delete.granularity": "file"})
    append(spark, table, 0, 9)
    spark.sql(f"DELETE FROM {table} WHERE id IN (0, 1, 2)")
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    )
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD kind")
    delete_equal(spark, lake, table, "id", pa.array([4, 5], pa.int64()))
    assert spark.table(table).count() == 4
    done = tended(spark, lake, table, rewrite_deletes.NAME)
    assert done.files == 3  # of the files that were rewritten
    assert deletes(spark, table) == 1
    assert spark.table(table).count() == 4


def test_deletion_vectors(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS, partitioned="kind", format_version=3)
    append(spark, table, 0, 9)
    spark.sql(f"DELETE FROM {table} WHERE id IN (0, 1)")
    assert isinstance(rewrite_deletes.plan(view_of(lake, table)), Idle)  # two vectors, which apply
    assert deletes(spark, table) == 2


def test_what_has_changed_since_it_was_looked_at_is_not_touched(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 9)
    seen = lake.open(table)[0].snapshot()
    assert seen is not None
    append(spark, table, 9, 9)
    with pytest.raises(ConflictError, match="has changed since"):
        remove_deletes(spark, lake.table_name(table), seen.id, [("file:/nowhere", -1)])


def test_many_small_manifests_become_few(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS, partitioned="kind", **{"commit.manifest-merge.enabled": "false"})
    for number in range(4):
        append(spark, table, number * 9, 9)
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
    for number in range(3):
        append(spark, table, 100 + number * 9, 9)
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    policy = replace(POLICY, manifests=Manifests(most_small=2))
    assert isinstance(rewrite_manifests.plan(view_of(lake, table)), Idle)
    done = tended(spark, lake, table, rewrite_manifests.NAME, policy)
    assert done.files == 7  # those of data, of both specs; of deletes there is but one
    assert (done.before["manifests"], done.after["manifests"]) == (8, 3)


def test_java_says_in_one_line_what_is_wrong(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    from rookery.spark.procedures import call

    table = new_table(COLUMNS)
    append(spark, table, 0, 3)
    with pytest.raises(
        RookeryError, match=r"rewrite_manifests .* failed: IllegalArgumentException: Invalid spec id 9"
    ):
        call(spark, lake.open(table)[0], "rewrite_manifests", spec_id=9)
