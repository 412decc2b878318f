"""Drift on real tables: what was found to lie outside its bounds once, and columns of very many values."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.maintain.status import ColumnStatus
from tests.lakehouse import NewTable
from tests.maintain.against import CheckedTable
from tests.maintain.seen import Witness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Watched:
    """A table with a column, `c`; whatever is done to it, its status is held against the truth."""

    def __init__(self, spark: SparkSession, lake: Lake, name: str) -> None:
        self.spark, self.lake, self.name = spark, lake, name
        self.checked = CheckedTable(spark, lake, name, Witness(spark, name))

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("TABLE_NAME", self.name))

    def append(self, numbers: range) -> None:
        rows = f"range({numbers.start}, {numbers.stop}, {numbers.step}, 1)"
        self.sql(f"INSERT INTO TABLE_NAME SELECT id AS c FROM {rows}")

    def analyze(self) -> None:
        rookery.analyze(self.spark, self.name, lake=self.lake)
        self.checked.witness.note()

    def column(self) -> ColumnStatus:
        assert self.checked.differences(time.time()) == []
        (column,) = self.checked.status.columns
        return column


@pytest.fixture
def watched(spark: SparkSession, lake: Lake, new_table: NewTable) -> Watched:
    return Watched(spark, lake, new_table("c bigint"))


def between(column: ColumnStatus) -> tuple[float, float | None]:
    return column.ndv_low, column.ndv_high


def test_files_that_lie_apart_are_new(watched: Watched) -> None:
    watched.append(range(10))
    watched.analyze()
    watched.append(range(100, 105))
    assert between(watched.column()) == (11, 15)
    watched.append(range(103, 108))  # overlaps the one before: both may hold the same value
    assert between(watched.column()) == (11, 18)


def test_a_file_that_overlaps_what_deletes_have_left_is_not_new(watched: Watched) -> None:
    """The file is known as it was before its deletes: what lies within its bounds may be in it still."""
    watched.append(range(10))
    watched.analyze()
    watched.sql("DELETE FROM TABLE_NAME WHERE c = 3")
    assert between(watched.column()) == (9, 10)
    watched.append(range(5, 6))
    assert between(watched.column()) == (9, 11)


def test_a_compaction_moves_nothing(watched: Watched) -> None:
    for start in (0, 10, 20):
        watched.append(range(start, start + 10))
    watched.analyze()
    watched.sql(
        "CALL lake.system.rewrite_data_files(table => 'TABLE_NAME', options => map('rewrite-all', 'true'))"
    )
    column = watched.column()
    assert between(column) == (30, 30)
    assert (column.drift_low, column.drift_high) == (0, 0)
    assert watched.checked.status.statistics.health == 1.0


def test_sketches_of_very_many_values(watched: Watched) -> None:
    watched.append(range(30_000))
    watched.analyze()
    still = watched.column()
    assert still.ndv_high is not None
    assert 28_000 < still.ndv_low < 30_000 == still.ndv_high  # rows
    watched.append(range(50_000, 70_000))
    watched.sql("DELETE FROM TABLE_NAME WHERE c % 10 = 1")
    moved = watched.column()
    assert moved.ndv_high is not None
    assert moved.ndv_low < 45_000 < moved.ndv_high < 53_000
