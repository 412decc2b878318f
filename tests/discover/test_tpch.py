"""All foreign keys of TPC-H are found, and none is named that does not hold in the rows."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.discover.tpch import COLUMN_SETS, REFERENCES, TABLES, Truth, named
from benchmarks.lake import generated

import rookery
from rookery.api.lake import Lake
from tests.lakehouse import drop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = 0.01  # the least at which no part has one supplier twice, and orders need a sample


def test_foreign_keys_of_tpch(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    namespace = f"tpch{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE NAMESPACE lake.{namespace}")
    names = {table: f"lake.{namespace}.{table}" for table in TABLES}
    try:
        for table, name in names.items():
            spark.read.parquet(str(generated(tmp_path, table, SCALE))).writeTo(name).create()
            column_sets = [COLUMN_SETS[table]] if table in COLUMN_SETS else []
            rookery.analyze(spark, name, lake=lake, column_sets=column_sets)
        report = lake.discover(f"{namespace}.*")
    finally:
        drop(spark, names.values())
        spark.sql(f"DROP NAMESPACE lake.{namespace}")
    truth = Truth(tmp_path)
    keys = report.foreign_keys or ()
    assert report.not_compared == ()
    assert {named(key) for key in keys} >= REFERENCES
    assert [key for key in keys if not truth.holds(key)] == []
    assert {named(key) for key in keys if key.likely == "high"} == REFERENCES
    assert [key for key in report.unique or () if not truth.is_unique(key.table, key.columns)] == []
    assert {key.certainty for key in keys} == {"exact", "sketched"}
