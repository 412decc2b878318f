"""Clearing away: what nothing names, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from rookery.api.analyze import analyze
from rookery.api.lake import Lake
from rookery.maintain.policies.policy import CleanUp
from rookery.maintain.steps import clean_up
from rookery.maintain.steps.step import Idle
from tests.lakehouse import NewTable, append_ids
from tests.maintain.tending import (
    BRISK,
    DAY,
    folder_of,
    plant,
    run_step,
    view_of,
)

COLUMNS = "id bigint, kind string"
append = partial(append_ids, columns=("cast(id % 3 AS string) AS kind",))


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
    done = run_step(None, lake, table, clean_up.NAME, BRISK)  # no Spark is needed
    assert done.files == 3
    assert done.bytes == 3 * len(b"nobody knows me")
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in (named, *others))
    assert isinstance(clean_up.plan(view_of(lake, table)), Idle)
    never = replace(BRISK, statistics_files=CleanUp(None))
    plant(folder, "metadata/1-a.stats", 2 * DAY)
    assert isinstance(clean_up.plan(view_of(lake, table, never)), Idle)


def test_states_of_the_past_are_cleared_away_and_the_newest_stays(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 10)
    analyze(spark, table)
    _, store = lake.open(table)
    kept = Path(store.location.removeprefix("file:").replace("//", "/"))
    (state,) = kept.glob("state-*.puffin")
    unfinished = plant(kept, ".segment-0.puffin.0.tmp", 2 * DAY)
    done = run_step(None, lake, table, clean_up.NAME, BRISK)
    assert done.files == 1
    assert not unfinished.exists()
    assert state.exists()
