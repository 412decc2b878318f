"""TPC-H in an attached session with Spark's cost-based optimizer, against Spark as it is by default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
        ratios = []
        for name, text in QUERIES.items():
            row = _query(sessions, name, f"TPC-H {scale:g}", text, effort, LEAST)
            ratios.append(row.ratio)
            yield row
    yield Row("geometric mean of Q1 to Q22", f"TPC-H {scale:g}", 1.0, ALONE, geometric_mean(ratios), MEAN)


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
    def ours() -> object:
        return sessions.attached.sql(text).collect()

    def theirs() -> object:
        return sessions.alone.sql(text).collect()

    assert ours() == theirs(), what
    effort = replace(effort, rounds=min(ROUNDS, effort.rounds))
    return compare(what, data, ours, ALONE, theirs, effort, target=target)
