"""Other engines that write the table and carry statistics along: what our state covers is current, no more.

Trino's INSERT merges the sketches of new rows into those that are registered, and registers the result for
its own snapshot; columns without registered statistics stay without. Iceberg's own action, told the columns,
ends in the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.maintain.policies.policy import DEFAULT, Policy
from rookery.maintain.status import TableStatus
from rookery.maintain.steps import refresh
from rookery.maintain.steps.step import Idle, Plan
from tests.lakehouse import NewTable
from tests.maintain.tending import view_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def analysed(spark: SparkSession, lake: Lake, new_table: NewTable) -> str:
    """A table of 100 rows with statistics and an index."""
    name = new_table("id bigint, word string")
    insert(spark, name, 0, 100)
    rookery.table(name, lake).add_index("bloom", "id")
    rookery.analyze(spark, name, lake=lake)
    return name


def insert(spark: SparkSession, name: str, start: int, rows: int, more: str = "") -> None:
    spark.sql(
        f"INSERT INTO {name} SELECT id, concat('w', id % 7){more} FROM range({start}, {start + rows}, 1, 1)"
    )


def carry_along(spark: SparkSession, name: str) -> None:
    """Register statistics of the same columns for the current snapshot, as another engine does."""
    spark.sql(
        f"CALL lake.system.compute_table_stats(table => '{name}', columns => array('id', 'word'))"
    ).collect()


def status_of(name: str, lake: Lake) -> TableStatus:
    (found,) = rookery.table(name, lake).status().tables
    return found


def planned(name: str, lake: Lake, policy: Policy = DEFAULT) -> Plan | Idle:
    return refresh.plan(view_of(lake, name, policy))


def test_inserts_of_another_engine(spark: SparkSession, lake: Lake, analysed: str) -> None:
    for number in range(1, 4):
        insert(spark, analysed, 100 * number, 200)
        carry_along(spark, analysed)
    status, stats = status_of(analysed, lake), rookery.table(analysed, lake).stats()
    age = status.statistics
    assert (age.freshness, age.ours, age.snapshots_behind) == ("stale", True, 3)
    assert age.snapshots_behind == stats.snapshots_behind
    assert age.covered == stats.columns[0].coverage == pytest.approx(1 / 7)
    assert "foreign statistics" in age.causes
    assert {column.freshness for column in status.columns} == {"stale"}
    assert [(index.freshness, index.files_covered) for index in status.indexes] == [("stale", 1)]
    assert status.score.total < 80
    assert any("health" in breach for breach in status.breaches)
    # What engines see is told beside it.
    seen = [
        (visibility.columns, visibility.of, visibility.current, visibility.foreign)
        for visibility in status.engine_visibility
    ]
    assert seen == [(2, 2, True, True)] * 2
    assert isinstance(planned(analysed, lake), Plan)
    rookery.analyze(spark, analysed, lake=lake)
    status = status_of(analysed, lake)
    assert (status.statistics.freshness, status.statistics.covered) == ("current", 1.0)
    assert [index.freshness for index in status.indexes] == ["current"]
    assert not any(visibility.foreign for visibility in status.engine_visibility)
    assert status.breaches == ()
    assert isinstance(planned(analysed, lake), Idle)


def test_a_rewrite_of_another_engine(spark: SparkSession, lake: Lake, analysed: str) -> None:
    """No row has changed, yet no file is described: scans and the next refresh start from nothing."""
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{analysed}', options => map('rewrite-all', 'true'))"
    )
    carry_along(spark, analysed)
    status = status_of(analysed, lake)
    assert (status.statistics.freshness, status.statistics.health) == ("stale", 1.0)
    assert status.statistics.covered == 0.0
    assert status.score.total < 90
    assert any("files were rewritten" in breach for breach in status.breaches)
    assert isinstance(planned(analysed, lake), Plan)
    patient = replace(DEFAULT, statistics=replace(DEFAULT.statistics, after_compaction=False))
    found = planned(analysed, lake, patient)
    assert isinstance(found, Plan)
    assert found.why == "indexes do not cover all files"


def test_a_column_that_came_with_another_engine(spark: SparkSession, lake: Lake, analysed: str) -> None:
    spark.sql(f"ALTER TABLE {analysed} ADD COLUMN late int")
    insert(spark, analysed, 100, 1, ", 5")
    carry_along(spark, analysed)
    status = status_of(analysed, lake)
    assert status.statistics.health > 0.9
    assert "schema change" in status.statistics.causes
    assert any("columns were added" in breach for breach in status.breaches)
    by_name = {column.name: column for column in status.columns}
    assert (by_name["late"].freshness, by_name["late"].spark) == ("never", False)
    assert [(visibility.columns, visibility.of) for visibility in status.engine_visibility] == [
        (2, 3),
        (2, 3),
    ]
    rookery.analyze(spark, analysed, lake=lake)
    assert status_of(analysed, lake).breaches == ()


def test_statistics_of_others_alone_count_as_theirs(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    name = new_table("id bigint, word string")
    insert(spark, name, 0, 100)
    carry_along(spark, name)
    age = status_of(name, lake).statistics
    assert (age.freshness, age.ours, age.causes) == ("current", False, ("foreign statistics",))
