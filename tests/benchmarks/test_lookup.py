"""The benchmark of lookups runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness import Effort

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_lookup_runs(spark: SparkSession, tiny: Effort) -> None:
    from benchmarks.lookup import rows

    found = {row.what: row for row in rows(tiny)}
    assert found["false negatives"].reached is True
    assert {"read, warm", "scan in Spark", "Bloom index", "data files opened, mean"} <= found.keys()
