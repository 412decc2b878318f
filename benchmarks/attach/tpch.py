"""TPC-H in an attached session with Spark's cost-based optimizer, against Spark as it is by default."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

import rookery
from benchmarks.attach.sessions import ALONE, Sessions
from benchmarks.harness import Effort, Measure, Row, compare
from benchmarks.tpch import QUERIES
from benchmarks.tpch.selective import queries
from rookery.spark.attach.planner import LEAST_BYTES

ROUNDS = 5
SELECTIVE = {
    "Q3": 1.9,
    "Q10": 1.7,
    "Q12": 1.9,
    "Q18, above 100 for 300": 1.4,
}  # pruned by keys read beforehand
LEAST, MEAN = 0.95, 1.1


def rows(sessions: Sessions, effort: Effort) -> Iterator[Row | Measure]:
    scale = effort.scale
    least_bytes = 0 if effort.scale < 1 else LEAST_BYTES
    sessions.use("tpch")
    with rookery.attach(sessions.attached, cbo=True, least_bytes=least_bytes):
        for query in queries(scale):
            # A range of the join's own key prunes both sides in Spark alone.
            target = 1.0 if "BETWEEN 2" in query.filter else SELECTIVE.get(query.name)
            yield _query(sessions, query.name, f"TPC-H {scale:g}, {query.filter}", query.text, effort, target)
        rows, differences = [], []
        for name, text in QUERIES.items():
            row, again = _query_and_noise(sessions, name, f"TPC-H {scale:g}", text, effort)
            rows.append(row)
            differences.append(abs(again / row.peer_seconds - 1))
            yield row
    mean = geometric_mean([row.ratio for row in rows])
    yield Row("geometric mean of Q1 to Q22", f"TPC-H {scale:g}", 1.0, ALONE, mean, MEAN)
    for which, difference in (("median", median(differences)), ("greatest", max(differences))):
        what = f"Spark alone against itself, Q1 to Q22, {which} difference"
        yield Measure(what, f"TPC-H {scale:g}, in the same turns", difference, "share")


def geometric_mean(ratios: list[float]) -> float:
    """Return the mean of ratios.

    >>> geometric_mean([2.0, 0.5, 8.0])
    2.0
    """
    product = 1.0
    for ratio in ratios:
        product *= ratio
    return round(product ** (1 / len(ratios)), 6)


def _query(sessions: Sessions, what: str, data: str, text: str, effort: Effort, target: float | None) -> Row:
    ours, theirs = _deeds(sessions, what, text)
    effort = replace(effort, rounds=min(ROUNDS, effort.rounds))
    return compare(what, data, ours, ALONE, theirs, effort, target=target)


def _query_and_noise(
    sessions: Sessions, what: str, data: str, text: str, effort: Effort
) -> tuple[Row, float]:
    """Compare as `_query` does, with a third turn of Spark alone: its best time says how far noise goes."""
    ours, theirs = _deeds(sessions, what, text)
    best = [float("inf")] * 3
    for turn in range(1 + min(ROUNDS, effort.rounds)):
        for side, deed in enumerate((ours, theirs, theirs)):
            gc.collect()
            started = time.perf_counter()
            deed()
            if turn:  # the first warms
                best[side] = min(best[side], time.perf_counter() - started)
    return Row(what, data, best[0], ALONE, best[1], LEAST), best[2]


def _deeds(sessions: Sessions, what: str, text: str) -> tuple[Callable[[], object], Callable[[], object]]:
    def ours() -> object:
        return sessions.attached.sql(text).collect()

    def theirs() -> object:
        return sessions.alone.sql(text).collect()

    assert ours() == theirs(), what
    return ours, theirs
