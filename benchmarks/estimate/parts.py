"""How far estimates are off: the q-error of generated filters, its median and its 95th percentile."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.estimate import attached, joins, made
from benchmarks.estimate.data import Estimated, skewed, tpch
from benchmarks.estimate.errors import Asked, Estimator, quantile
from benchmarks.estimate.filters import pairs
from benchmarks.estimate.peers import make_copies, planning
from benchmarks.harness import Effort, Measure
from benchmarks.lake import Bench, open_bench
from benchmarks.tpch.data import make as make_tpch

TITLE = "Estimates of filters and joins, compared with the true numbers"
PACKAGES = ("rookery", "pyspark", "pyiceberg", "pyarrow", "numpy", "duckdb")
FILTERS, PAIRS = 200, 100  # of each table, of each column set
MEDIAN, NEARLY_ALL, CORRELATED = 1.3, 3.0, 2.0
SHARE = 0.95
UNIT = "×"


def rows(effort: Effort) -> Iterator[Measure]:
    bench = open_bench(effort)
    tables = (*tpch(bench, effort), skewed(bench, effort))
    asked = [Asked.generated(table, FILTERS) for table in tables]
    for each in asked:
        yield from _errors(bench, each)
        yield _seconds(bench, each)
    yield from _correlated(bench, tables[-1])
    make_tpch(bench, effort)
    make_copies(bench, (*(table.name for table in tables), *(f"tpch.{name}" for name in joins.TABLES)))
    with planning(bench) as sessions:
        yield from attached.rows(sessions, asked, [estimator(bench, table) for table in tables])
        yield from attached.correlated(sessions, asked[-1])
        yield from joins.rows(sessions, effort.scale)


def estimator(bench: Bench, table: Estimated) -> Estimator:
    """Return Rookery's; another tool's takes the same filters."""
    handle = bench.handle(table.name)
    return lambda where: handle.estimate(where).rows.value


def _errors(bench: Bench, asked: Asked) -> Iterator[Measure]:
    data = f"{asked.table.name}, {len(asked.wheres)} filters"
    errors = asked.errors(estimator(bench, asked.table))
    yield Measure("q-error, median", data, round(median(errors), 4), UNIT, MEDIAN)
    yield Measure("q-error, 95th percentile", data, round(quantile(errors, SHARE), 4), UNIT, NEARLY_ALL)


def _correlated(bench: Bench, table: Estimated) -> Iterator[Measure]:
    for columns in made.COLUMN_SETS:
        asked = Asked.of(table, pairs(table.filtered, random.Random(2), columns, PAIRS))
        data = f"{table.name}, {len(asked.wheres)} pairs of {' and '.join(columns)}"
        errors = asked.errors(estimator(bench, table))
        yield Measure(
            "q-error of equal pairs, 95th percentile",
            data,
            round(quantile(errors, SHARE), 4),
            UNIT,
            CORRELATED,
        )
        yield Measure("q-error of equal pairs, greatest", data, round(errors[-1], 4), UNIT)


def _seconds(bench: Bench, asked: Asked) -> Measure:
    """The time of an estimate, with the table loaded again each time, and files cached."""
    estimate = estimator(bench, asked.table)
    times = []
    for where in asked.wheres:
        started = time.perf_counter()
        estimate(where)
        times.append(time.perf_counter() - started)
    return Measure("time of an estimate, median", asked.table.name, median(times), "s")
