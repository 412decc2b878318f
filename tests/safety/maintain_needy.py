"""A table that needs every step of the pipeline, and what must be true of it whatever happens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import rookery
from rookery.api.lake import Lake
from rookery.api.maintain import MaintainReport, maintain
from rookery.io import local_path
from rookery.maintain.steps.reachable_files import named
from tests.lakehouse import NewTable
from tests.maintain.tending import DAY, folder_of, missing_files, plant, rows_hash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLICY = """
defaults:
  snapshots: {keep-for: 1s, keep-last: 1}
  orphans: {older-than: 2d}
  statistics-files: {older-than: 1d}
  compaction: {min-files: 2}
  deletes: {min-files: 2}
  manifests: {most-small: 0}
  verify: rows
"""
_SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.int32()), ("word", pa.string())])


@dataclass(frozen=True)
class Needy:
    """A table, and how it was when nothing had been done to it."""

    name: str
    now: float  # by which it is maintained: what runs add is younger, and stays
    rows: tuple[int, object]
    tagged: tuple[int, object]
    kept: frozenset[int]  # snapshots that the retention keeps
    planted: tuple[Path, ...]


def rows(start: int, count: int, kind: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table([list(ids), [kind] * count, [f"w{each % 7}" for each in ids]], schema=_SCHEMA)


def needy(spark: SparkSession, lake: Lake, new_table: NewTable) -> Needy:
    """Make one: small files and a file with deletes of several commits, statistics of the past, strays."""
    name = new_table(
        "id bigint, kind int, word string", partitioned="kind", **{"write.delete.granularity": "partition"}
    )
    lake.load(name).append(rows(0, 100, 1))
    spark.catalog.refreshTable(name)
    rookery.analyze(spark, name, lake=lake)
    tag = lake.load(name)
    tag.manage_snapshots().create_tag(tag.current_snapshot().snapshot_id, "kept").commit()  # type: ignore[union-attr]
    for number in range(1, 4):
        lake.load(name).append(rows(100 * number, 20, 0))
    past = time.time()
    spark.catalog.refreshTable(name)
    for number in (3, 5):
        spark.sql(f"DELETE FROM {name} WHERE kind = 1 AND id = {number}")
    spark.sql(f"DELETE FROM {name} WHERE kind = 0 AND id = 105")
    table, folder = lake.load(name), folder_of(lake, name)
    planted = (
        plant(folder, "data/kind=0/nobodys.parquet", 3 * DAY),
        plant(folder, "metadata/1-of-nothing.stats", 1.5 * DAY),
        plant(folder, "metadata/2-of-nothing.stats", 1.5 * DAY),
    )
    order = [each.snapshot_id for each in table.snapshots()]
    return Needy(
        name,
        past + 1,  # the age of the policy
        rows_hash(spark, name),
        rows_hash(spark, name, "kept"),
        frozenset((order[0], *order[-3:])),
        planted,
    )


def kept_up(
    lake: Lake, patterns: Sequence[str], policy: Path, history: str, now: float | None = None
) -> MaintainReport:
    """Maintain, by a clock that stands still."""
    clock = time.time if now is None else lambda: now
    return maintain(lake, patterns, policy=policy, history=history, clock=clock)


def assert_nothing_lost(spark: SparkSession, lake: Lake, table: Needy) -> None:
    """The rows are there, now and in the past that is kept; so is all that any snapshot names."""
    spark.catalog.refreshTable(table.name)
    assert rows_hash(spark, table.name) == table.rows
    assert rows_hash(spark, table.name, "kept") == table.tagged
    assert missing_files(lake, table.name) == []
    loaded, store = lake.open(table.name)
    assert table.kept <= loaded.snapshots.keys()
    assert loaded.table.metadata.statistics  # Spark and Trino find some
    newest = store.newest(list(loaded.snapshots))
    assert newest
    for _, state in newest:
        store.check(state)


def strays(lake: Lake, name: str) -> set[str]:
    """Files in the table's folder that nothing names."""
    loaded, _ = lake.open(name)
    there = {str(path) for path in folder_of(lake, name).rglob("*") if path.is_file()}
    names = named(loaded)
    known = set(map(local_path, (*names.required, *names.optional)))
    return {path for path in there - known if not path.endswith(".crc")}
