"""Who sees which statistics: what is said of Spark is what its optimizer then does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.maintain.sights import Sight
from tests.lakehouse import NewTable, tables
from tests.maintain.against import Subject
from tests.maintain.seen import Witness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def new_table(spark: SparkSession) -> Iterator[NewTable]:
    with tables(spark) as make:
        yield make


def test_what_engines_find(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("a int, b string")
    subject = Subject(spark, lake, name, Witness(spark, name))

    def seen() -> dict[str, Sight]:
        assert subject.differences(time.time()) == []  # asks Spark's optimizer too
        return {sight.engine: sight for sight in subject.status.sights}

    def numbers() -> list[tuple[int, int, bool]]:
        return [(sight.columns, sight.of, sight.current) for sight in seen().values()]

    def analyze(*columns: str) -> None:
        rookery.analyze(spark, name, lake=lake, columns=columns)
        subject.witness.note()

    spark.sql(f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")
    assert numbers() == [(0, 2, False), (0, 2, False)]
    repair = f"run `rookery analyze {name}`"
    assert seen()["trino"].hint == repair
    analyze()
    assert numbers() == [(2, 2, True), (2, 2, True)]
    assert [sight.hint for sight in seen().values()] == [None, None]
    spark.sql(f"INSERT INTO {name} VALUES (3, 'z')")
    assert numbers() == [(0, 2, False), (2, 2, False)]
    hints = [sight.hint for sight in seen().values()]
    assert hints == [
        f"{repair}; Spark takes statistics of the current snapshot only",
        f"{repair}; Trino plans with those of an older snapshot",
    ]
    analyze("a")  # of the other column, Trino finds what an ancestor has
    assert numbers() == [(1, 2, False), (2, 2, False)]
    spark.sql(f"ALTER TABLE {name} ADD COLUMN c int")
    assert numbers() == [(1, 3, False), (2, 3, False)]


def test_nested_columns_are_seen_by_nobody(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("a int, s struct<x: int>, l array<int>")
    spark.sql(f"INSERT INTO {name} SELECT 1, named_struct('x', 2), array(3)")
    rookery.analyze(spark, name, lake=lake)
    (told,) = rookery.table(name, lake).status().tables
    assert [(sight.columns, sight.of, sight.current) for sight in told.sights] == [(1, 1, True)] * 2
    assert [column.name for column in told.columns] == ["a", "s.x", "l.element"]
