"""Tables whose partitioning changes: what is planned from metadata is what Iceberg's own planners take."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.steps import compact, rewrite_deletes
from rookery.maintain.steps.grouping import delete_groups, rewrite_groups
from rookery.maintain.steps.step import Outcome
from rookery.tables.iceberg import iceberg
from tests.interop.java import IcebergJava
from tests.lakehouse import NewTable
from tests.maintain.tending import BRISK, maintained_of, rows_hash, view_of

DATA, DELETES = "BinPackRewriteFilePlanner", "BinPackRewritePositionDeletePlanner"
PARTS = ("a", "bucket(2, b)", "truncate(1, c)", "d", "b")
ROWS = """SELECT id AS b, CAST(if(id % 3 = 0, NULL, id % 2) AS int) AS a,
 if(id % 5 = 0, NULL, concat('w', id % 4)) AS c, if(id % 2 = 0, NULL, double('NaN')) AS d
 FROM range({}, {}, 1, 1) WHERE id % 7 NOT IN ({}, {})"""


class Evolution:
    """A table that is written, deleted from and partitioned anew, by chance from a seed."""

    def __init__(self, spark: SparkSession, new_table: NewTable, seed: int) -> None:
        self.spark, self.rng = spark, random.Random(seed)
        self.parts: list[str] = self.rng.sample(PARTS, self.rng.randrange(2))
        self.version = self.rng.choice((1, 2, 2))
        self.name = new_table(
            "b bigint, a int, c string, d double",
            partitioned=", ".join(self.parts),
            format_version=self.version,
            **{"write.delete.granularity": self.rng.choice(("file", "partition"))},
        )

    def step(self) -> None:
        kind = self.rng.choice(("write", "write", "write", "delete", "partition", "partition"))
        if kind == "write":
            start = self.rng.randrange(40)
            nulls_only = self.rng.random() < 0.3
            rows = ROWS.format(start, start + self.rng.choice((1, 4, 12)), *self.rng.sample(range(7), 2))
            if nulls_only:
                rows = (
                    f"SELECT b, CAST(NULL AS int), CAST(NULL AS string), CAST(NULL AS double) FROM ({rows})"
                )
            self.spark.sql(f"INSERT INTO {self.name} {rows}")
        elif kind == "delete" and self.version > 1:
            self.spark.sql(f"DELETE FROM {self.name} WHERE b % 4 = {self.rng.randrange(4)}")
        elif kind == "partition" and self.parts and self.rng.random() < 0.5:
            dropped = self.parts.pop(self.rng.randrange(len(self.parts)))
            self.spark.sql(f"ALTER TABLE {self.name} DROP PARTITION FIELD {dropped}")
        elif kind == "partition":
            self.parts.append(self.rng.choice([part for part in PARTS if part not in self.parts]))
            self.spark.sql(f"ALTER TABLE {self.name} ADD PARTITION FIELD {self.parts[-1]}")


def java_groups(
    spark: SparkSession, table: str, planner: str, options: dict[str, str]
) -> list[frozenset[str]]:
    """The files that one of Iceberg's planners takes, group by group."""
    jvm: Any = spark._jvm
    java = IcebergJava(spark).table(table)
    java.refresh()
    chosen = jvm.java.util.HashMap()
    for key, value in options.items():
        chosen.put(key, value)
    made = getattr(jvm.org.apache.iceberg.actions, planner)(java)
    made.init(chosen)
    copy_of = jvm.org.apache.iceberg.relocated.com.google.common.collect.ImmutableList.copyOf
    return [
        frozenset(str(task.file().location()) for task in group.fileScanTasks())
        for group in copy_of(made.plan().groups())
    ]


def as_groups(paths: list[str], numbers: NDArray[np.int64]) -> set[frozenset[str]]:
    """Files of one number together."""
    groups: defaultdict[int, set[str]] = defaultdict(set)
    for path, number in zip(paths, numbers.tolist(), strict=True):
        groups[number].add(path)
    return set(map(frozenset, groups.values()))


@pytest.mark.parametrize("seed", [2, 4, 9, 12])  # of both versions, and all kinds of steps
def test_groups_and_files_are_those_that_iceberg_plans(
    spark: SparkSession, lake: Lake, new_table: NewTable, seed: int
) -> None:
    table = Evolution(spark, new_table, seed)
    for _ in range(14):
        table.step()
    policy = replace(BRISK, compaction=replace(BRISK.compaction, min_files=3))
    found = view_of(lake, table.name, policy).survey
    paths, deletes = found.files["path"].to_pylist(), found.deletes["path"].to_pylist()
    current, everything = iceberg(found.table), {"rewrite-all": "true"}

    groups = as_groups(paths, rewrite_groups(found.files, current.current_spec_id))
    assert groups == set(java_groups(spark, table.name, DATA, everything))
    ratio = {"delete-ratio-threshold": repr(policy.compaction.delete_ratio)}
    planned = java_groups(spark, table.name, DATA, {**compact.sizes_of(found, policy).options(), **ratio})
    taken = {paths[number] for number in compact.choose(found, policy).files}
    assert taken == set().union(*planned)

    groups = as_groups(deletes, delete_groups(found.deletes, current.specs))
    assert groups == set(java_groups(spark, table.name, DELETES, everything))

    before = rows_hash(spark, table.name)
    for only in (compact.NAME, rewrite_deletes.NAME):  # each verifies that what was planned was done
        (done,) = maintain_table(maintained_of(lake, table.name, spark, policy), only=(only,)).steps
        assert done.outcome in (Outcome.DONE, Outcome.NOT_NEEDED), done.error
    assert rows_hash(spark, table.name) == before


@pytest.mark.parametrize("change", ["ADD PARTITION FIELD a", "DROP PARTITION FIELD bucket(2, b)"])
def test_files_of_an_older_spec_are_rewritten_with_those_of_null_partitions(
    spark: SparkSession, lake: Lake, new_table: NewTable, change: str
) -> None:
    """Where the new spec has no fields, with all files."""
    old = "bucket(2, b)" if change.startswith("DROP") else ""
    name = new_table("b bigint, a int", partitioned=old)
    for number in range(5):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, 1)")
    spark.sql(f"ALTER TABLE {name} {change}")
    spark.sql(f"INSERT INTO {name} VALUES (6, NULL)")
    policy = replace(BRISK, compaction=replace(BRISK.compaction, min_files=6))
    (done,) = maintain_table(maintained_of(lake, name, spark, policy), only=(compact.NAME,)).steps
    assert (done.outcome, done.files) == (Outcome.DONE, 6), done.error
