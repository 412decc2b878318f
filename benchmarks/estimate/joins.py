"""The sizes of the joins of TPC-H's queries: as Spark's optimizer estimates them, and as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from pyspark.sql import SparkSession

from benchmarks.attach.sessions import Sessions
from benchmarks.estimate.errors import q_errors, quantile
from benchmarks.estimate.peers import COPIES, PEER
from benchmarks.harness import Measure
from benchmarks.lake import CATALOG
from benchmarks.tpch import QUERIES
from rookery.spark.attach.session import plan_nodes

MEDIAN = 1.5
SHARE = 0.95
UNIT = "×"
TABLES = ("lineitem", "orders", "customer", "supplier", "part", "partsupp", "nation", "region")
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # which replaces nodes of a plan while it runs
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # what is estimated to be empty may be too large for it
}
_JOINS = ("Join", "CartesianProduct")


@dataclass(frozen=True)
class Joins:
    """The joins of the plans that a session has chosen."""

    errors: tuple[float, ...]  # in ascending order
    without: int  # joins for which Spark has no estimate at all

    def __str__(self) -> str:
        return f"{len(self.errors)} joins" + (f", {self.without} without an estimate" if self.without else "")


def rows(sessions: Sessions, scale: float) -> Iterator[Measure]:
    """Measure the joins of the plans that each session chooses: each knows the order of its own alone."""
    ours, theirs = joins(sessions.attached, "tpch"), joins(sessions.alone, COPIES)
    data = f"TPC-H {scale:g}, Q1 to Q22: {ours}; plans of the peer: {theirs}"
    for what, limit, values in (
        ("median", MEDIAN, [median(each.errors) for each in (ours, theirs)]),
        ("95th percentile", None, [quantile(each.errors, SHARE) for each in (ours, theirs)]),
    ):
        our, their = (round(each, 4) for each in values)
        yield Measure(f"q-error of join sizes, {what}, Spark attached", data, our, UNIT, limit, PEER, their)


def joins(spark: SparkSession, namespace: str) -> Joins:
    """Run every query over the tables of a namespace."""
    before = {key: spark.conf.get(key) for key in _SETTINGS}
    spark.sql(f"USE {CATALOG}.{namespace}")
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    try:
        nodes = [node for text in QUERIES.values() for node in plan_nodes(spark, text, run=True)]
    finally:
        for key, setting in before.items():
            spark.conf.set(key, setting)
    found = [node for node in nodes if any(name in node["name"] for name in _JOINS)]
    known = [node for node in found if node["attached"] is not None]
    errors = q_errors([node["attached"] for node in known], [node["rows"] for node in known])
    return Joins(tuple(sorted(errors)), len(found) - len(known))
