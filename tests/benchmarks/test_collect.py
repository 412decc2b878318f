"""The benchmark of analyze runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness import Effort, Measure, Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_collect_runs(spark: SparkSession, tiny: Effort) -> None:
    """The parts that need no second JVM, on a handful of rows."""
    from benchmarks.collect import full, growth
    from benchmarks.lake import open_bench

    bench = open_bench(tiny)
    found = [*full.rows(bench, tiny), *growth.rows(bench, tiny)]
    peers = {row.peer.split(",")[0] for row in found if isinstance(row, Row)}
    assert peers == {"DuckDB approx_count_distinct", "Iceberg compute_table_stats", "the same", "a full run"}
    measures = [row for row in found if isinstance(row, Measure)]
    assert len(measures) == len(full.CHECKED) + 2 * len(growth.COUNTS)
    assert all(row.reached for row in measures)
