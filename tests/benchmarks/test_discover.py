"""The benchmark of discovering keys runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness import Effort, Measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_discover_runs(spark: SparkSession, tiny: Effort) -> None:
    from benchmarks.discover import rows

    measures = [row for row in rows(tiny) if isinstance(row, Measure)]
    assert len(measures) == 7
    wrong = next(row for row in measures if row.what == "foreign keys that do not hold in the rows")
    assert wrong.value == 0
