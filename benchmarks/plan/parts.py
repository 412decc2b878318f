"""The parts of the benchmark: a table of many files, and one of ten times as many."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.collect.data import wide_table
from benchmarks.harness import Effort, Measure, Row
from benchmarks.lake import open_bench
from benchmarks.plan import memory, planning
from benchmarks.plan.state import known

TITLE = "Planning with many files"
PACKAGES = ("rookery", "pyspark", "pyiceberg", "pyarrow", "numpy", "numba")
FILES = 50_000
GROWTH = (1, 10)  # what is asked of the larger table is in proportion


def rows(effort: Effort) -> Iterator[Row | Measure]:
    bench = open_bench(effort)
    for growth in GROWTH:
        files = effort.of(FILES) * growth
        name = wide_table(bench, files, f"made.plan_{files}")
        known(bench, name)
        plan = planning.Plan(bench, name, files)
        yield from planning.rows(plan, effort, growth)
        yield from memory.rows(plan, effort)
