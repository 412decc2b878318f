"""Spark, Trino and Rookery on one table: what is registered is what Trino shows, and `status` says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from tests.interop.java import IcebergJava
from tests.lakehouse import NewTable
from tests.maintain.histories import prepared
from tests.trino.client import Trino
from tests.trino.histories import SharedHistory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version, seed", [(1, 31), (2, 32), (2, 33), (3, 34)])
def test_histories_written_by_both(
    spark: SparkSession, trino: Trino, lake: Lake, new_table: NewTable, version: int, seed: int
) -> None:
    """The same ones each time; `python -m tests.trino.histories` tries others."""
    name = new_table("c int") + "_history"
    with prepared(spark):
        history = SharedHistory(spark, lake, IcebergJava(spark), name, seed, version, trino=trino)
        try:
            for differences in history.live(history.by_chance(10)):
                assert not differences, "\n".join([history.told(), *differences])
        finally:
            spark.sql(f"DROP TABLE {name}")


def _visibility(name: str, lake: Lake) -> tuple[int, int, bool]:
    (status,) = rookery.table(name, lake).status().tables
    (visibility,) = [each for each in status.engine_visibility if each.engine == "trino"]
    return visibility.columns, visibility.of, visibility.current


def _ndvs(trino: Trino, name: str) -> list[float | None]:
    return [column.ndv for column in trino.show_stats(name).columns.values()]


def test_the_nearest_file_alone(spark: SparkSession, trino: Trino, lake: Lake, new_table: NewTable) -> None:
    name = new_table("a int, b string")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")
    rookery.analyze(spark, name, lake=lake)
    assert (_ndvs(trino, name), _visibility(name, lake)) == ([2, 2], (2, 2, True))
    spark.sql(f"INSERT INTO {name} VALUES (3, 'z')")
    assert (_ndvs(trino, name), _visibility(name, lake)) == ([2, 2], (2, 2, False))
    rookery.analyze(spark, name, lake=lake, columns=["a"])
    assert (_ndvs(trino, name), _visibility(name, lake)) == ([3, None], (1, 2, False))
    rookery.analyze(spark, name, lake=lake)
    assert (_ndvs(trino, name), _visibility(name, lake)) == ([3, 3], (2, 2, True))


def test_what_trino_takes_over_is_not_current(
    spark: SparkSession, trino: Trino, lake: Lake, new_table: NewTable
) -> None:
    name = new_table("a int, b string")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")
    rookery.analyze(spark, name, lake=lake)
    spark.sql(f"INSERT INTO {name} VALUES (3, 'z')")
    trino.sql(f"ANALYZE {name} WITH (columns = ARRAY['a'])")
    assert (_ndvs(trino, name), _visibility(name, lake)) == ([3, 2], (2, 2, False))


def _state_files(location: str) -> dict[str, bytes]:
    folder = Path(f"{location.removeprefix('file:').rstrip('/')}.rookery")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("writer", ["spark", "trino"])
def test_trinos_maintenance_leaves_our_files(
    spark: SparkSession, trino: Trino, lake: Lake, new_table: NewTable, writer: str
) -> None:
    name = new_table("id bigint, s string") if writer == "spark" else new_table("c int") + "_trino"
    if writer == "trino":
        trino.sql(f"CREATE TABLE {name} (id bigint, s varchar)")
    handle = rookery.table(name, lake)
    for start in (0, 100, 200):
        source = f"UNNEST(sequence(BIGINT '{start}', {start + 99})) AS q(i)"
        trino.sql(f"INSERT INTO {name} SELECT i, 'k' || CAST(i % 50 AS varchar) FROM {source}")
    handle.add_index("bloom", "id")
    rookery.analyze(spark, name, lake=lake)
    kept = _state_files(lake.load(name).location())
    for step in (
        "optimize",
        "expire_snapshots(retention_threshold => '0s')",
        "remove_orphan_files(retention_threshold => '0s')",
        "drop_extended_stats",
    ):
        trino.sql(f"ALTER TABLE {name} EXECUTE {step}")
        found = _state_files(lake.load(name).location())
        assert found == kept, step
        assert handle.count("id = 150") == 1, step
        registered = lake.load(name).metadata.statistics
        assert all(Path(file.statistics_path.removeprefix("file://")).is_file() for file in registered), step
        ndvs = [None, None] if step == "drop_extended_stats" else [300, 50]
        assert (_ndvs(trino, name), _visibility(name, lake)[0]) == (ndvs, 2 - ndvs.count(None)), step
    rookery.analyze(spark, name, lake=lake)
    assert (_ndvs(trino, name), _visibility(name, lake)) == ([300, 50], (2, 2, True))
    if writer == "trino":
        trino.sql(f"DROP TABLE {name}")
