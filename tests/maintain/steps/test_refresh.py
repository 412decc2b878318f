"""Refreshing statistics: what is declared, what the policy asks for, and when."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from rookery.api.analyze import analyze
from rookery.api.indexes import list_indexes
from rookery.api.lake import Lake
from rookery.maintain.policies.policy import Statistics, WantedIndex
from rookery.maintain.steps import refresh
from rookery.maintain.steps.step import Idle, Outcome, Plan
from tests.lakehouse import NewTable, append_ids
from tests.maintain.tending import (
    BRISK,
    run_step,
    view_of,
)

COLUMNS = "id bigint, kind string"
append = partial(append_ids, columns=("cast(id % 3 AS string) AS kind",))


def test_what_is_declared_and_lacks_after_a_rollback_is_collected(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 50)
    analyze(spark, table, lake=lake)
    first = lake.load(table).metadata.current_snapshot_id
    append(spark, table, 50, 50)
    analyze(spark, table, histogram=["id"], top_k=["kind"], column_sets=[["id", "kind"]], lake=lake)
    assert isinstance(refresh.plan(view_of(lake, table)), Idle)
    spark.sql(f"CALL lake.system.rollback_to_snapshot('{table.partition('.')[2]}', {first})")
    planned = refresh.plan(view_of(lake, table))
    assert isinstance(planned, Plan)
    assert planned.why == "3 declared statistics not collected yet"
    assert run_step(spark, lake, table, refresh.NAME, BRISK).outcome is Outcome.DONE
    assert isinstance(refresh.plan(view_of(lake, table)), Idle)


def test_indexes_and_columns_of_the_policy(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 3000)
    policy = replace(
        BRISK,
        statistics=Statistics(columns=("kind",)),
        indexes=(WantedIndex("bitmap", "kind"), WantedIndex("bloom", "id")),
    )
    done = run_step(spark, lake, table, refresh.NAME, policy)
    assert "statistics were never collected" in done.why
    assert "2 indexes missing" in done.why
    assert done.files == 1
    assert {(each.kind, each.column) for each in list_indexes(*lake.open(table)).indexes} == {
        ("bitmap", "kind"),
        ("bloom", "id"),
    }
    assert all(each.built == "built" for each in list_indexes(*lake.open(table)).indexes)
    assert isinstance(refresh.plan(view_of(lake, table, policy)), Idle)

    more = replace(policy, statistics=Statistics(columns=("kind", "id")))
    planned = refresh.plan(view_of(lake, table, more))
    assert isinstance(planned, Plan)
    assert planned.why == "1 column not collected yet"
    run_step(spark, lake, table, refresh.NAME, more)
    assert isinstance(refresh.plan(view_of(lake, table, more)), Idle)

    too_many = replace(more, indexes=(WantedIndex("bitmap", "id"),))
    said = run_step(spark, lake, table, refresh.NAME, too_many)
    assert "no bitmap index on id" in said.why


def test_statistics_are_refreshed_by_the_thresholds_of_the_policy(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 100)
    assert isinstance(refresh.plan(view_of(lake, table)), Plan)
    analyze(spark, table)
    assert isinstance(refresh.plan(view_of(lake, table)), Idle)
    append(spark, table, 100, 10)
    assert isinstance(refresh.plan(view_of(lake, table)), Idle)  # a tenth has changed
    strict = replace(BRISK, statistics=Statistics(snapshots=1))
    assert isinstance(refresh.plan(view_of(lake, table, strict)), Plan)
    after = refresh.plan(view_of(lake, table, done=("rewrite manifests",)))
    assert isinstance(after, Plan)
    assert after.files == 1
    calm = replace(BRISK, statistics=Statistics(after_compaction=False))
    assert isinstance(refresh.plan(view_of(lake, table, calm, done=("rewrite manifests",))), Idle)
    append(spark, table, 110, 50)
    health = refresh.plan(view_of(lake, table))
    assert isinstance(health, Plan)
    assert "is below 0.8" in health.why
