"""How tables lie: sizes, deletes that apply to nothing, and files that overlap, against the truth."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rookery.api.lake import Lake
from rookery.maintain.facts.layout import Sizes, sizes_of
from rookery.maintain.policies.policy import DEFAULT
from rookery.tables.iceberg.table_properties import number_of
from tests.lakehouse import NewTable
from tests.maintain.against import CheckedTable
from tests.maintain.seen import Witness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET = "write.target-file-size-bytes"


def told(spark: SparkSession, lake: Lake, name: str) -> CheckedTable:
    checked = CheckedTable(spark, lake, name, Witness(spark, name))
    assert checked.differences(time.time()) == []
    return checked


def test_the_policy_goes_before_the_table_and_that_before_the_default() -> None:
    assert sizes_of(512 << 20, DEFAULT) == Sizes(512 << 20, 384 << 20, int((512 << 20) * 1.8))
    assert sizes_of(1000, DEFAULT) == Sizes(1000, 750, 1800)
    policy = replace(DEFAULT, compaction=replace(DEFAULT.compaction, target_size=200, small_size=0))
    assert sizes_of(1000, policy) == Sizes(200, 0, 360)
    for nonsense in ("", "many", "-5", "1e3", "²"):
        assert number_of({TARGET: nonsense}, TARGET, 7) == 7


def test_sizes_and_partitions(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("id bigint, part int, text string", partitioned="part")
    for rows, part in ((10, 0), (10, 0), (10, 0), (100, 0), (2_000, 1)):
        spark.sql(f"INSERT INTO {name} SELECT id, {part}, sha2(string(id), 256) FROM range(0, {rows}, 1, 1)")
    found = told(spark, lake, name).status.layout
    assert (found.small_files, found.right_files, found.large_files) == (3, 1, 1)
    assert (found.partitions, found.files_in_largest, found.crowded_files) == (2, 4, 3)
    assert found.skew > 1.5


def test_deletes_that_apply_to_nothing(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("id bigint")
    spark.sql(f"INSERT INTO {name} SELECT id FROM range(0, 100, 1, 1)")
    spark.sql(f"DELETE FROM {name} WHERE id % 3 = 0")
    before = told(spark, lake, name).status.layout
    assert [(kind.kind, kind.files, kind.rows) for kind in before.deletes] == [("position deletes", 1, 34)]
    assert (before.dangling_deletes, before.delete_heavy_files) == (0, 1)
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true', "
        "'remove-dangling-deletes', 'false'))"
    )
    after = told(spark, lake, name).status.layout
    assert (after.dangling_deletes, after.delete_heavy_files) == (1, 0)


def test_position_deletes_under_vectors(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """A vector takes in what position deletes say of its file; they apply to that file no more."""
    name = new_table("id bigint, part int", **{"write.delete.granularity": "partition"})
    spark.sql(f"INSERT INTO {name} SELECT id, id % 2 FROM range(0, 100, 1, 2)")
    spark.sql(f"DELETE FROM {name} WHERE id % 7 = 0")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='3')")
    spark.sql(f"DELETE FROM {name} WHERE id % 5 = 0")
    found = told(spark, lake, name).status.layout
    assert [(kind.kind, kind.files) for kind in found.deletes] == [
        ("deletion vectors", 2),
        ("position deletes", 1),
    ]
    assert found.dangling_deletes == 1


def test_how_deep_files_overlap(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("id bigint, word string")
    spark.sql(f"ALTER TABLE {name} WRITE LOCALLY ORDERED BY id DESC NULLS LAST, word")
    for start, end in ((0, 10), (10, 20), (20, 30)):
        spark.sql(f"INSERT INTO {name} SELECT id, 'x' FROM range({start}, {end}, 1, 1)")
    apart = told(spark, lake, name).status.layout.sort
    assert apart is not None
    assert (apart.order, apart.column) == ("id DESC NULLS LAST, word ASC NULLS FIRST", "id")
    assert (apart.depth, apart.depth_most, apart.files) == (1.0, 1, 3)
    spark.sql(f"INSERT INTO {name} SELECT id, 'x' FROM range(5, 25, 1, 1)")
    crossed = told(spark, lake, name).status.layout.sort
    assert crossed is not None
    assert (crossed.depth, crossed.depth_most, crossed.files) == (7 / 4, 2, 4)
