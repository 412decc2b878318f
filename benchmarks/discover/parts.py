"""The parts of the benchmark: TPC-H against the truth of its rows, and the time of many columns."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.discover.tpch import REFERENCES, TABLES, Truth, made, named
from benchmarks.discover.wide import wide_tables
from benchmarks.harness import Effort, Measure
from benchmarks.lake import Bench, forget_all, open_bench
from rookery.api.discover import DiscoverReport

TITLE = "Keys and references, from states alone"
PACKAGES = ("rookery", "pyiceberg", "pyarrow", "numpy", "numba")
COLUMNS, SECONDS = 1_000, 10.0  # compared, and asked for
ROUNDS = 3


def rows(effort: Effort) -> Iterator[Measure]:
    bench = open_bench(effort)
    truth = Truth(made(bench, effort))
    report, seconds = _fastest(bench, *(f"tpch.{table}" for table in TABLES))
    keys = report.foreign_keys or ()
    data = f"TPC-H {effort.scale:g}, confidence ≥ {report.min_confidence:g}"
    found = {named(key) for key in keys} & REFERENCES
    likely = {named(key) for key in keys if key.likely == "high"}
    yield Measure("foreign keys found", data, len(found), f"of {len(REFERENCES)}")
    yield Measure("foreign keys missed", data, len(REFERENCES) - len(found), "keys", 0)
    wrong = sum(not truth.holds(key) for key in keys)
    yield Measure("foreign keys that do not hold in the rows", f"{data}, {len(keys)} named", wrong, "keys", 0)
    extra = len(likely - REFERENCES)
    yield Measure("likely ones that TPC-H does not declare", data, extra, "keys", 0)
    repeated = [key for key in report.unique or () if not truth.is_unique(key.table, key.columns)]
    unique = f"{data}, {len(report.unique or ())} named"
    yield Measure("unique keys that do not hold in the rows", unique, len(repeated), "keys")
    yield Measure("discover, caches empty", f"TPC-H {effort.scale:g}, {report.columns} columns", seconds, "s")
    yield _many(bench, effort)


def _many(bench: Bench, effort: Effort) -> Measure:
    count = wide_tables(bench, effort.of(COLUMNS))
    report, seconds = _fastest(bench, "many.wide*")
    assert report.columns == count, report.not_compared
    data = f"{count:,} columns of one type, {len(report.foreign_keys or ()):,} foreign keys"
    return Measure("discover, caches empty", data, seconds, "s", SECONDS)


def _fastest(bench: Bench, *patterns: str) -> tuple[DiscoverReport, float]:
    times = []
    for _ in range(ROUNDS):
        forget_all()
        bench.lake.clear_cache()
        started = time.perf_counter()
        report = bench.lake.discover(*patterns)
        times.append(time.perf_counter() - started)
    return report, min(times)
