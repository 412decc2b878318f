"""Who sees which statistics: what is said of Spark is what its optimizer then does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.maintain.facts.engine_visibility import EngineVisibility
from tests.lakehouse import NewTable
from tests.maintain.against import CheckedTable
from tests.maintain.seen import Witness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_what_engines_find(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("a int, b string")
    checked = CheckedTable(spark, lake, name, Witness(spark, name))

    def seen() -> dict[str, EngineVisibility]:
        assert checked.differences(time.time()) == []  # asks Spark's optimizer too
        return {visibility.engine: visibility for visibility in checked.status.engine_visibility}

    def numbers() -> list[tuple[int, int, bool]]:
        return [(visibility.columns, visibility.of, visibility.current) for visibility in seen().values()]

    def analyze(*columns: str) -> None:
        rookery.analyze(spark, name, lake=lake, columns=columns)
        checked.witness.note()

    spark.sql(f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")
    assert numbers() == [(0, 2, False), (0, 2, False)]
    repair = f"run `rookery analyze {name}`"
    assert seen()["trino"].hint == repair
    analyze()
    assert numbers() == [(2, 2, True), (2, 2, True)]
    assert [visibility.hint for visibility in seen().values()] == [None, None]
    spark.sql(f"INSERT INTO {name} VALUES (3, 'z')")
    assert numbers() == [(0, 2, False), (2, 2, False)]
    hints = [visibility.hint for visibility in seen().values()]
    assert hints == [
        f"{repair}; Spark uses only statistics of the current snapshot",
        f"{repair}; Trino plans with those of an older snapshot",
    ]
    analyze("a")  # and Trino does not look for the other column in an ancestor's file
    assert numbers() == [(1, 2, False), (1, 2, False)]
    assert seen()["trino"].hint == f"{repair}; Trino uses only the nearest statistics file"
    spark.sql(f"ALTER TABLE {name} ADD COLUMN c int")
    assert numbers() == [(1, 3, False), (1, 3, False)]


def test_nested_columns_are_seen_by_nobody(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("a int, s struct<x: int>, l array<int>")
    spark.sql(f"INSERT INTO {name} SELECT 1, named_struct('x', 2), array(3)")
    rookery.analyze(spark, name, lake=lake)
    (told,) = rookery.table(name, lake).status().tables
    assert [
        (visibility.columns, visibility.of, visibility.current) for visibility in told.engine_visibility
    ] == [(1, 1, True)] * 2
    assert [column.name for column in told.columns] == ["a", "s.x", "l.element"]


def test_a_dropped_column(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Registered statistics of a column that is gone break Spark's optimizer; it is said, and mended."""
    name = new_table("a int, b string, c int")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x', 7), (2, 'y', 8)")
    spark.sql(f"CALL lake.system.compute_table_stats(table => '{name.removeprefix('lake.')}')").collect()
    rookery.analyze(spark, name, lake=lake, columns=["a"])  # takes along what others have written
    spark.sql(f"ALTER TABLE {name} DROP COLUMN c")
    handle = rookery.table(name, lake)

    def visibility() -> EngineVisibility:
        return handle.status().tables[0].engine_visibility[0]

    def join() -> int:
        spark.catalog.refreshTable(name)
        return spark.sql(f"SELECT * FROM {name} l JOIN {name} r ON l.a = r.a").count()

    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        assert visibility().broken
        assert any("dropped columns" in breach for breach in handle.status().tables[0].breaches)
        with pytest.raises(Exception, match="INTERNAL_ERROR"):
            join()
        rookery.analyze(spark, name, lake=lake, columns=["a"])
        assert not visibility().broken
        assert join() == 2
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
    assert (visibility().columns, visibility().of) == (2, 2)
