"""Expiring snapshots, refreshing statistics and clearing away: nothing that is known of a table is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from rookery.api.indexes import list_indexes
from rookery.api.lake import Lake
from rookery.api.statistics import analyze
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.policies.policy import CleanUp, Policy, Snapshots, Statistics, WantedIndex
from rookery.maintain.steps import clean_up, expire, refresh
from rookery.maintain.steps.step import Idle, Outcome, Plan, StepReport
from tests.lakehouse import NewTable
from tests.maintain.tending import (
    BRISK,
    DAY,
    estimated_rows,
    folder_of,
    look_of,
    maintained_of,
    missing_files,
    plant,
    rows_hash,
)

COLUMNS = "id bigint, kind string"
LAST = replace(BRISK, snapshots=Snapshots(timedelta(milliseconds=1), 1))


def append(spark: SparkSession, table: str, start: int, rows: int) -> None:
    spark.range(start, start + rows, 1, 1).selectExpr("id", "cast(id % 3 AS string) AS kind").writeTo(
        table
    ).append()


def take(spark: SparkSession | None, lake: Lake, table: str, step: str, policy: Policy) -> StepReport:
    done = maintain_table(maintained_of(lake, table, spark, policy), only=[step]).steps[0]
    assert done.outcome is not Outcome.FAILED, done.error
    return done


def registered(lake: Lake, table: str) -> set[int]:
    return {file.snapshot_id for file in lake.load(table).metadata.statistics}


def test_what_is_declared_and_lacks_after_a_rollback_is_collected(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 50)
    analyze(spark, table, lake=lake)
    first = lake.load(table).metadata.current_snapshot_id
    append(spark, table, 50, 50)
    analyze(spark, table, histogram=["id"], top_k=["kind"], column_sets=[["id", "kind"]], lake=lake)
    assert isinstance(refresh.plan(look_of(lake, table)), Idle)
    spark.sql(f"CALL lake.system.rollback_to_snapshot('{table.partition('.')[2]}', {first})")
    planned = refresh.plan(look_of(lake, table))
    assert isinstance(planned, Plan)
    assert planned.why == "3 declared statistics not collected yet"
    assert take(spark, lake, table, refresh.NAME, BRISK).outcome is Outcome.DONE
    assert isinstance(refresh.plan(look_of(lake, table)), Idle)


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

    planned = expire.plan(look_of(lake, table, LAST))
    assert isinstance(planned, Plan)
    assert planned.details["kinds"]["statistics"] == 1
    done = take(spark, lake, table, expire.NAME, LAST)

    assert "registered first" in done.why
    assert registered(lake, table) == {current}
    assert estimated_rows(spark, table, "kind = '1'") == 200
    assert missing_files(lake, table) == []
    assert len(list(folder_of(lake, table).glob("metadata/*.stats"))) == 1
    state = look_of(lake, table).survey.state
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

    planned = expire.plan(look_of(lake, table, LAST))
    assert isinstance(planned, Plan)
    kinds = planned.details["kinds"]
    assert all(kinds[kind] for kind in ("data", "position", "manifests", "lists", "statistics")), kinds
    done = take(spark, lake, table, expire.NAME, LAST)

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
    assert isinstance(expire.plan(look_of(lake, table, LAST)), Plan)
    for_ever = replace(BRISK, snapshots=Snapshots(None, 1))
    assert isinstance(expire.plan(look_of(lake, table, for_ever)), Idle)
    assert isinstance(
        expire.plan(look_of(lake, table, replace(BRISK, snapshots=Snapshots(timedelta(1), 1)))), Idle
    )
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('gc.enabled' = 'false')")
    idle = expire.plan(look_of(lake, table, LAST))
    assert isinstance(idle, Idle)
    assert "gc.enabled" in idle.why


def test_indexes_and_columns_of_the_policy(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 3000)
    policy = replace(
        BRISK,
        statistics=Statistics(columns=("kind",)),
        indexes=(WantedIndex("bitmap", "kind"), WantedIndex("bloom", "id")),
    )
    done = take(spark, lake, table, refresh.NAME, policy)
    assert "statistics were never collected" in done.why
    assert "2 indexes missing" in done.why
    assert done.files == 1
    assert {(each.kind, each.column) for each in list_indexes(*lake.open(table)).indexes} == {
        ("bitmap", "kind"),
        ("bloom", "id"),
    }
    assert all(each.built == "built" for each in list_indexes(*lake.open(table)).indexes)
    assert isinstance(refresh.plan(look_of(lake, table, policy)), Idle)

    more = replace(policy, statistics=Statistics(columns=("kind", "id")))
    planned = refresh.plan(look_of(lake, table, more))
    assert isinstance(planned, Plan)
    assert planned.why == "1 column not collected yet"
    take(spark, lake, table, refresh.NAME, more)
    assert isinstance(refresh.plan(look_of(lake, table, more)), Idle)

    too_many = replace(more, indexes=(WantedIndex("bitmap", "id"),))
    said = take(spark, lake, table, refresh.NAME, too_many)
    assert "no bitmap index on id" in said.why


def test_statistics_are_refreshed_by_the_thresholds_of_the_policy(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 100)
    assert isinstance(refresh.plan(look_of(lake, table)), Plan)
    analyze(spark, table)
    assert isinstance(refresh.plan(look_of(lake, table)), Idle)
    append(spark, table, 100, 10)
    assert isinstance(refresh.plan(look_of(lake, table)), Idle)  # a tenth has changed
    strict = replace(BRISK, statistics=Statistics(snapshots=1))
    assert isinstance(refresh.plan(look_of(lake, table, strict)), Plan)
    after = refresh.plan(look_of(lake, table, done=("rewrite manifests",)))
    assert isinstance(after, Plan)
    assert after.files == 1
    calm = replace(BRISK, statistics=Statistics(after_compaction=False))
    assert isinstance(refresh.plan(look_of(lake, table, calm, done=("rewrite manifests",))), Idle)
    append(spark, table, 110, 50)
    health = refresh.plan(look_of(lake, table))
    assert isinstance(health, Plan)
    assert "is below 0.8" in health.why


def test_an_empty_table_needs_nothing(lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    run = maintain_table(maintained_of(lake, table, None))
    assert {step.outcome for step in run.steps} == {Outcome.NOT_NEEDED}


def test_statistics_files_that_nothing_names_are_cleared_away(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 10)
    analyze(spark, table)
    folder = folder_of(lake, table)
    (named,) = folder.glob("metadata/*.stats")
    plant(folder, f"metadata/{named.name}", 9 * DAY, named.read_bytes())
    old = [
        plant(folder, "metadata/1-a.stats", 2 * DAY),
        plant(folder, "metadata/b.puffin", 2 * DAY),
        plant(folder, "metadata/.1-c.stats.0.tmp", 2 * DAY),
    ]
    others = [
        plant(folder, "metadata/1-young.stats", DAY / 2),
        plant(folder, "metadata/m.avro", 2 * DAY),
        plant(folder, "data/x.puffin", 2 * DAY),
    ]
    done = take(None, lake, table, clean_up.NAME, BRISK)  # no Spark is needed
    assert done.files == 3
    assert done.bytes == 3 * len(b"nobody knows me")
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in (named, *others))
    assert isinstance(clean_up.plan(look_of(lake, table)), Idle)
    never = replace(BRISK, statistics_files=CleanUp(None))
    plant(folder, "metadata/1-a.stats", 2 * DAY)
    assert isinstance(clean_up.plan(look_of(lake, table, never)), Idle)


def test_states_of_the_past_are_cleared_away_and_the_newest_stays(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 10)
    analyze(spark, table)
    _, store = lake.open(table)
    kept = Path(store.location.removeprefix("file:").replace("//", "/"))
    (state,) = kept.glob("state-*.puffin")
    torso = plant(kept, ".segment-0.puffin.0.tmp", 2 * DAY)
    done = take(None, lake, table, clean_up.NAME, BRISK)
    assert done.files == 1
    assert not torso.exists()
    assert state.exists()
