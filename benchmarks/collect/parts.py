"""The parts of the benchmark, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.collect import full, growth, memory, planning
from benchmarks.harness import Effort, Measure, Row
from benchmarks.lake import open_bench

TITLE = "Statistics on Spark"
PACKAGES = ("rookery", "pyspark", "pyiceberg", "duckdb", "pyarrow", "numpy", "numba")


def rows(effort: Effort) -> Iterator[Row | Measure]:
    bench = open_bench(effort)
    yield from full.rows(bench, effort)
    yield from growth.rows(bench, effort)
    yield from memory.rows(bench, effort)  # leaves the state that planning finds
    yield from planning.rows(bench, effort)
