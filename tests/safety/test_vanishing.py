"""Tables and files that go away during the run: one clear sentence, and nothing half registered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import RookeryError
from tests.lakehouse import NewTable
from tests.safety.steps import STEPS, Step, at
from tests.safety.watch import assert_right, assert_whole, folder, make_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLANNED = Step("rookery.collect.analyze:prepare", after=True)
LOADED = Step("rookery.collect.analyze:prepare", after=False)
WAYS = ["here", "on Spark", "by the engine"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where files are read: in this process, by Spark's tasks, or by Iceberg's own reader."""
    if request.param == "on Spark":
        monkeypatch.setattr("rookery.collect.run.LOCAL_BYTES", 0)
    return str(request.param)


@pytest.fixture
def table(spark: SparkSession, new_table: NewTable, way: str) -> str:
    name = new_table("id bigint, word string")
    make_rows(spark, name, 0, 60, files=3)
    if way == "by the engine":
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = 3")  # some rows of every file
    return name


def data_files(lake: Lake, name: str) -> list[Path]:
    files = lake.load(name).inspect.data_files().to_pylist()
    return sorted(Path(file["file_path"].removeprefix("file:")) for file in files)


def one_plain_line(error: RookeryError) -> str:
    text = str(error)
    assert len(text.splitlines()) == 1
    assert "\tat " not in text
    assert "Traceback" not in text
    assert "py4j" not in text.lower()
    assert error.hint
    return text


def test_a_file_deleted(spark: SparkSession, lake: Lake, table: str, way: str) -> None:
    victim = data_files(lake, table)[1]
    saved = victim.read_bytes()
    before = lake.load(table).metadata
    with pytest.raises(RookeryError) as caught, at(PLANNED, victim.unlink):
        rookery.analyze(spark, table, lake=lake)
    text = one_plain_line(caught.value)
    assert victim.name in text
    assert ("reading failed on Spark" in text) == (way != "here")
    assert lake.load(table).metadata == before
    assert rookery.table(table, lake).stats().freshness == "never analyzed"
    assert not list(folder(lake, table).glob("state-*")) if folder(lake, table).exists() else True

    victim.write_bytes(saved)  # when it is back, all is well again
    rookery.analyze(spark, table, lake=lake)
    assert_right(spark, lake, table)


@pytest.mark.parametrize(
    ("moment", "purge"),
    [(LOADED, ""), (PLANNED, ""), (PLANNED, "PURGE")],
    ids=["before planning", "after planning", "purged"],
)
def test_a_table_dropped(
    spark: SparkSession, lake: Lake, table: str, way: str, moment: Step, purge: str
) -> None:
    with pytest.raises(RookeryError) as caught, at(moment, drop(spark, table, purge)):
        rookery.analyze(spark, table, lake=lake)
    one_plain_line(caught.value)
    assert not lake.catalog.table_exists(table.removeprefix("lake."))


@pytest.mark.parametrize("step", ["after the segment", "after the state", "after the statistics file"])
def test_a_table_dropped_later(spark: SparkSession, lake: Lake, new_table: NewTable, step: str) -> None:
    """And made anew under the same name, with other rows: what the old one left is not taken for its own."""
    name = new_table("id bigint, word string", "again")
    make_rows(spark, name, 0, 20)
    with pytest.raises(RookeryError) as caught, at(STEPS[step], drop(spark, name, "PURGE")):
        rookery.analyze(spark, name, lake=lake)
    assert name in one_plain_line(caught.value)
    assert new_table("id bigint, word string", "again") == name
    make_rows(spark, name, 100, 103)
    assert rookery.table(name, lake).stats().freshness == "never analyzed"
    assert lake.load(name).metadata.statistics == []
    rookery.analyze(spark, name, lake=lake)
    assert_right(spark, lake, name)


def drop(spark: SparkSession, name: str, purge: str) -> Callable[[], None]:
    def act() -> None:
        spark.sql(f"DROP TABLE {name} {purge}")

    return act


@pytest.mark.parametrize("step", ["before the segment", "after the state", "after the statistics file"])
def test_a_snapshot_expired(spark: SparkSession, lake: Lake, new_table: NewTable, step: str) -> None:
    """The snapshot that is analysed goes away: whether that is an error or not, the next run is right."""
    name = new_table("id bigint, word string")
    make_rows(spark, name, 0, 20)

    def expire() -> None:
        make_rows(spark, name, 20, 30)
        spark.sql(
            f"CALL lake.system.expire_snapshots(table => '{name.removeprefix('lake.')}', "
            "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1)"
        )

    with at(STEPS[step], expire):
        try:
            rookery.analyze(spark, name, lake=lake)
        except RookeryError as error:
            one_plain_line(error)
    current = lake.load(name)
    assert len(current.metadata.snapshots) == 1
    assert_whole(lake, name)
    assert {file.snapshot_id for file in current.metadata.statistics} <= {
        snapshot.snapshot_id for snapshot in current.metadata.snapshots
    }
    rookery.analyze(spark, name, lake=lake)
    assert_right(spark, lake, name)
