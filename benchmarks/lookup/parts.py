"""The parts of the benchmark, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.harness import Effort, Measure, Row
from benchmarks.lake import open_bench
from benchmarks.lookup import building, counting, filters, finding, skipping
from benchmarks.lookup.data import made

TITLE = "Lookups by key, and counts by status"
PACKAGES = ("rookery", "pyspark", "pyiceberg", "duckdb", "pylance", "pyarrow", "numpy", "numba")


def rows(effort: Effort) -> Iterator[Row | Measure]:
    lookup = made(open_bench(effort), effort)
    yield from building.rows(lookup, effort)  # leaves the indexes that the others use
    yield from finding.rows(lookup, effort)
    yield from skipping.rows(lookup, effort)
    yield from counting.rows(lookup, effort)
    yield from filters.rows(lookup, effort)
