"""Every number of a table's status, whatever has happened to it, against Iceberg's metadata tables."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import TableName
from tests.interop.java import IcebergJava
from tests.lakehouse import NewTable
from tests.maintain.against import CheckedTable
from tests.maintain.histories import History, prepared
from tests.maintain.rows import WEIGHTS
from tests.maintain.seen import Witness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 20


def decks() -> list[list[str]]:
    """All kinds of steps, and some more of the most frequent, dealt out to a table of each version."""
    kinds = [*WEIGHTS, *["analyze"] * 5, *["append"] * 3, "delete", "compact"]
    random.Random(SEED).shuffle(kinds)
    return [kinds[number::3] for number in range(3)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_history(spark: SparkSession, lake: Lake, new_table: NewTable, version: int) -> None:
    """The same ones each time; `python -m tests.maintain.histories` tries others."""
    name = new_table("c int") + "_history"
    with prepared(spark):
        history = History(spark, lake, IcebergJava(spark), name, SEED + version, version)
        try:
            for differences in history.live(decks()[version - 1]):
                assert not differences, "\n".join([history.told(), *differences])
        finally:
            spark.sql(f"DROP TABLE {history.name}")


def watched(spark: SparkSession, lake: Lake, name: str) -> CheckedTable:
    return CheckedTable(spark, lake, name, Witness(spark, name))


def test_an_empty_table(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    checked = watched(spark, lake, new_table("c int"))
    assert checked.differences(time.time()) == []
    assert checked.status.statistics.freshness == "never"
    assert (checked.status.statistics.health, checked.status.score.total) == (1.0, 100.0)
    assert checked.status.breaches == ()


def test_a_table_whose_rows_are_all_deleted(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("c int")
    checked = watched(spark, lake, name)
    spark.sql(f"INSERT INTO {name} VALUES (1), (2)")
    rookery.analyze(spark, name, lake=lake)
    checked.witness.note()
    spark.sql(f"DELETE FROM {name}")
    assert checked.differences(time.time()) == []
    assert (checked.status.statistics.health, checked.status.statistics.rows) == (0.0, 0)


@pytest.mark.parametrize("version", [1, 2])
def test_statistics_of_a_snapshot_that_has_expired(
    spark: SparkSession, lake: Lake, new_table: NewTable, version: int
) -> None:
    """In version 1 snapshots have no numbers: their times tell which are younger."""
    name = new_table("c int", format_version=version)
    checked = watched(spark, lake, name)
    spark.sql(f"INSERT INTO {name} VALUES (1), (2)")
    rookery.analyze(spark, name, lake=lake)
    checked.witness.note()
    spark.sql(f"INSERT INTO {name} VALUES (3)")
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '2100-01-01', "
        "retain_last => 1)"
    )
    assert checked.differences(time.time()) == []
    found = checked.status.statistics
    assert found.causes == ("ingest", "expired snapshot")
    assert (found.snapshots_behind, found.changes.rows_added) == (1, 1)


def test_a_rollback_is_no_expiry(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Not even when the snapshot that was rolled back is gone too."""
    name = new_table("c int")
    checked = watched(spark, lake, name)
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    first = lake.load(name).metadata.current_snapshot_id
    spark.sql(f"INSERT INTO {name} VALUES (2)")
    undone = lake.load(name).metadata.current_snapshot_id
    rookery.analyze(spark, name, lake=lake)
    checked.witness.note()
    spark.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {first})")
    spark.sql(f"INSERT INTO {name} VALUES (3)")
    assert checked.differences(time.time()) == []
    assert checked.status.statistics.causes == ("ingest", "rollback")
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', snapshot_ids => array({undone}L), "
        "retain_last => 5)"
    )
    assert undone not in {each.snapshot_id for each in lake.load(name).metadata.snapshots}
    assert checked.differences(time.time()) == []
    assert checked.status.statistics.causes == ("ingest", "rollback")
    assert checked.status.statistics.snapshots_behind is None


def test_deletes_since_statistics_of_others(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("c int")
    checked = watched(spark, lake, name)
    spark.sql(f"INSERT INTO {name} SELECT id FROM range(0, 10, 1, 1)")
    spark.sql(f"CALL lake.system.compute_table_stats(table => '{name}')")
    checked.witness.note()
    spark.sql(f"DELETE FROM {name} WHERE c = 3")
    assert checked.differences(time.time()) == []
    found = checked.status.statistics
    assert (found.ours, found.changes.files_deleted_from, found.changed_rows) == (False, 1, 1)


def test_the_handle_tells_the_same(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("c int")
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    (told,) = rookery.table(name, lake).status().tables
    assert told.table == str(TableName(*_parts(name)))
    assert [column.name for column in told.columns] == ["c"]
    assert json.dumps(told.breaches) == '["statistics were never collected"]'


def _parts(name: str) -> tuple[str, tuple[str, ...], str]:
    catalog, *namespace, table = name.split(".")
    return catalog, tuple(namespace), table
