"""How far estimates are off: the q-error of generated filters, its median and its 95th percentile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from benchmarks.estimate import made
from benchmarks.estimate.data import Estimated, skewed, tpch
from benchmarks.estimate.filters import filters, pairs
from benchmarks.harness import Effort, Measure
from benchmarks.lake import Bench, open_bench

TITLE = "Estimates of filters, compared with what is true"
PACKAGES = ("rookery", "pyiceberg", "pyarrow", "numpy", "duckdb")
FILTERS, PAIRS = 200, 100  # of each table, of each column set
MEDIAN, NEARLY_ALL, CORRELATED = 1.3, 3.0, 2.0
SHARE = 0.95
UNIT = "×"

Estimator = Callable[[str], float]
"""Returns the estimated rows of a filter."""


def rows(effort: Effort) -> Iterator[Measure]:
    bench = open_bench(effort)
    for table in (*tpch(bench, effort), skewed(bench, effort)):
        wheres = filters(table.filtered, random.Random(1), FILTERS)
        yield from _errors(bench, table, f"{table.name}, {len(wheres)} filters", wheres)
        yield _seconds(bench, table, wheres)
        if table.name.endswith("skewed"):
            yield from _correlated(bench, table)


def q_errors(estimates: Sequence[float], truth: Sequence[int]) -> list[float]:
    """Return by which factor each estimate is off; less than one row counts as one."""
    known = zip((max(each, 1.0) for each in estimates), (max(each, 1) for each in truth), strict=True)
    return [max(about / true, true / about) for about, true in known]


def estimator(bench: Bench, table: Estimated) -> Estimator:
    """Return Rookery's; another tool's takes the same filters."""
    handle = bench.handle(table.name)
    return lambda where: handle.estimate(where).rows.value


def _errors(bench: Bench, table: Estimated, data: str, wheres: Sequence[str]) -> Iterator[Measure]:
    truth = table.true_counts(wheres)
    errors = sorted(q_errors([estimator(bench, table)(where) for where in wheres], truth))
    yield Measure("q-error, median", data, round(median(errors), 4), UNIT, MEDIAN)
    yield Measure("q-error, 95th percentile", data, round(quantile(errors, SHARE), 4), UNIT, NEARLY_ALL)


def _correlated(bench: Bench, table: Estimated) -> Iterator[Measure]:
    for columns in made.TOGETHER:
        wheres = pairs(table.filtered, random.Random(2), columns, PAIRS)
        data = f"{table.name}, {len(wheres)} pairs of {' and '.join(columns)}"
        truth = table.true_counts(wheres)
        errors = sorted(q_errors([estimator(bench, table)(where) for where in wheres], truth))
        yield Measure(
            "q-error of equal pairs, 95th percentile",
            data,
            round(quantile(errors, SHARE), 4),
            UNIT,
            CORRELATED,
        )
        yield Measure("q-error of equal pairs, greatest", data, round(errors[-1], 4), UNIT)


def _seconds(bench: Bench, table: Estimated, wheres: Sequence[str]) -> Measure:
    """The time of an estimate, with the table loaded again each time, and files cached."""
    estimate = estimator(bench, table)
    times = []
    for where in wheres:
        started = time.perf_counter()
        estimate(where)
        times.append(time.perf_counter() - started)
    return Measure("time of an estimate, median", table.name, median(times), "s")


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    return ascending[min(int(share * len(ascending)), len(ascending) - 1)]
