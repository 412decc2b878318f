"""Files planted at random in and around a table: those that are old and that nothing names go, no others."""

from __future__ import annotations

import random
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import rookery
from rookery.api.lake import Lake
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.policies.policy import DEFAULT
from rookery.maintain.steps.step import Outcome
from tests.lakehouse import NewTable
from tests.maintain.tending import (
    BRISK,
    DAY,
    by_step,
    folder_of,
    maintained_of,
    make_old,
    missing_files,
    plant,
    rows_hash,
)
from tests.safety.maintain_needy import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP = "remove orphan files"
POLICY = replace(BRISK, snapshots=DEFAULT.snapshots)  # orphans of two days
ROUNDS, FILES = 4, 60
FOLDERS = (
    "",
    "data",
    "data/kind=1",
    "data/_kind=1",
    "metadata",
    "data/deep/er/and deeper",
    "data/words with  spaces",
    "data/ünï/çødé ☃",
    "data/per%20cent",
    "data/a+b=c&d",
    "data/_temporary/0",
    "data/.hidden",
    "metadata/.tmp",
    "other.rookery",
    "ours/inside",
    "below/data",
    "below/metadata",
    "below/data/kind=1",
)
NAMES = (
    "part-{}.parquet",
    "{}-m0.avro",
    "snap-{}.avro",
    "{}.stats",
    "state-{}.puffin",
    ".{}.parquet.crc",
    ".{}.tmp",
    "_{}",
    "{} with spaces",
    "ø{}☃.parquet",
    "{}%2F%.parquet",
    "{} #1?.parquet",
    "{}",
)
LEFT_ALONE = re.compile(r"(^|/)[._][^/=]*(/|$)|^below/|^ours/inside/|^other\.rookery/")


class Grown:
    """A table with a past: a tag, a branch, statistics of columns and partitions, another table inside."""

    def __init__(self, spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
        self.name = new_table("id bigint, kind int, word string", partitioned="kind")
        self.folder = folder_of(lake, self.name)
        inside = f"{lake.load(self.name).location()}/ours/inside"
        spark.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('rookery.location'='{inside}')")
        lake.load(self.name).append(rows(0, 10, 1))
        spark.catalog.refreshTable(self.name)
        rookery.analyze(spark, self.name, lake=lake)
        spark.sql(f"CALL lake.system.compute_partition_stats('{self.name.partition('.')[2]}')")
        spark.sql(f"ALTER TABLE {self.name} CREATE TAG kept")
        spark.sql(f"ALTER TABLE {self.name} CREATE BRANCH side")
        spark.sql(f"INSERT INTO {self.name}.branch_side VALUES (-1, 7, 'aside')")
        spark.sql(f"INSERT OVERWRITE {self.name} VALUES (100, 1, 'now'), (101, 1, 'now')")
        spark.sql(f"DELETE FROM {self.name} WHERE id = 101")
        metadata = lake.load(self.name).metadata
        assert metadata.statistics
        assert metadata.partition_statistics
        assert list((self.folder / "ours" / "inside").iterdir())


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def plant_some(chance: random.Random, folder: Path) -> tuple[set[str], set[str]]:
    """Plant files; return those that must go, and all."""
    gone, everything = set(), set()
    for number in range(FILES):
        name = chance.choice(NAMES).format(f"{number}-{chance.randrange(1 << 30):x}")
        path = Path(chance.choice(FOLDERS)) / name
        old = chance.random() < 0.6
        age = chance.uniform(2.1, 40) if old else chance.uniform(0, 1.9)
        plant(folder, str(path), age * DAY, chance.randbytes(chance.randrange(40)))
        everything.add(str(path))
        if old and not LEFT_ALONE.search(str(path)):
            gone.add(str(path))
    return gone, everything


def test_only_what_is_old_and_has_no_name(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    grown = Grown(spark, lake, new_table)
    name, folder = grown.name, grown.folder
    below = lake.catalog.create_table(
        f"{name.split('.')[1]}.below", pa.schema([("id", pa.int64())]), location=f"file://{folder}/below"
    )
    try:
        below.append(pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
        hashes = {version: rows_hash(spark, name, version) for version in (None, "kept", "side")}
        own = files_below(folder)
        for seed in range(ROUNDS):
            chance = random.Random(seed)
            make_old(folder, 30 * DAY)
            gone, planted = plant_some(chance, folder)
            run = maintain_table(maintained_of(lake, name, spark, POLICY), only=[STEP])
            step = by_step(run)[STEP]
            assert step.outcome is Outcome.DONE, step
            assert step.files == len(gone), (seed, step.why)
            left = files_below(folder)
            assert own - left == set(), seed
            assert left & gone == set(), seed
            assert planted - gone <= left, seed
            again = maintain_table(maintained_of(lake, name, None, POLICY), only=[STEP])
            assert again.outcome is Outcome.NOT_NEEDED, seed
            for path in planted - gone:
                (folder / path).unlink()
        assert missing_files(lake, name) == []
        assert {version: rows_hash(spark, name, version) for version in hashes} == hashes
        assert len(below.scan().to_arrow()) == 3
    finally:
        lake.catalog.drop_table(f"{name.split('.')[1]}.below")
    shutil.rmtree(folder, ignore_errors=True)
