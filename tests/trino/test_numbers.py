"""Numbers that only a table written by Trino makes go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rookery
from rookery.api.lake import Lake
from tests.lakehouse import NewTable
from tests.trino.client import Trino

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_columns_with_nan_have_no_bounds(trino: Trino, lake: Lake, new_table: NewTable) -> None:
    """Trino writes none for a column that holds NaN in a file: the greatest value is unknown then."""
    name = new_table("x double, y float")
    trino.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    trino.sql(f"INSERT INTO {name} VALUES (500, 500), (-500, -500), (nan(), nan())")
    for column in rookery.table(name, lake).stats().columns:
        assert column.min is None or column.min <= -500, column
        assert column.max is None or column.max >= 500, column


def test_a_column_of_empty_texts(spark: SparkSession, trino: Trino, lake: Lake, new_table: NewTable) -> None:
    """Sketches pass over empty texts; from 0 distinct values Trino would expect no rows."""
    name = new_table("id int, s string")
    trino.sql(f"INSERT INTO {name} VALUES (1, ''), (2, '')")
    rookery.analyze(spark, name, lake=lake)
    shown = trino.show_stats(name).columns
    assert (shown["id"].ndv, shown["s"].ndv) == (2, None)


def test_what_trino_carries_forward_is_not_ours(
    spark: SparkSession, trino: Trino, lake: Lake, new_table: NewTable
) -> None:
    """Its INSERT and optimize register our sketches for the new snapshots; our own state is behind."""
    name = new_table("id bigint, s string")
    handle = rookery.table(name, lake)
    trino.sql(f"INSERT INTO {name} SELECT i, 'a' FROM UNNEST(sequence(1, 10)) AS q(i)")
    handle.add_index("bloom", "id")
    rookery.analyze(spark, name, lake=lake)
    trino.sql(f"INSERT INTO {name} SELECT i, 'b' FROM UNNEST(sequence(11, 70)) AS q(i)")
    trino.sql(f"ALTER TABLE {name} EXECUTE optimize")
    trino.sql(f"ALTER TABLE {name} ADD COLUMN n integer")
    (status,) = handle.status().tables
    told = status.statistics
    assert (told.freshness.value, told.ours, told.snapshots_behind) == ("stale", True, 2)
    assert handle.stats().snapshots_behind == 2
    assert told.covered == 0
    assert told.health < 0.8
    assert status.score.total < 100
    assert any("statistics" in breach for breach in status.breaches), status.breaches
    (trinos,) = [visibility for visibility in status.engine_visibility if visibility.engine == "trino"]
    shown = trino.show_stats(name).columns
    assert trinos.columns == sum(column.ndv is not None for column in shown.values())
    rookery.analyze(spark, name, lake=lake)
    (status,) = handle.status().tables
    assert (status.statistics.freshness.value, status.statistics.covered) == ("current", 1)
    assert [index.covered for index in status.indexes] == [1]
