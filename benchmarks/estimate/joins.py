"""The sizes of the joins of TPC-H's queries: as Spark's optimizer estimates them, and as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def rows(sessions: Sessions, scale: float) -> Iterator[Measure]:
    """Measure the joins of the plans that each session chooses: each knows the order of its own alone."""
    ours, theirs = (
        join_errors(spark, namespace)
        for spark, namespace in ((sessions.attached, "tpch"), (sessions.alone, COPIES))
    )
    data = f"TPC-H {scale:g}, {len(ours)} joins of Q1 to Q22 (the peer's plans: {len(theirs)})"
    for what, limit, values in (
        ("median", MEDIAN, [median(each) for each in (ours, theirs)]),
        ("95th percentile", None, [quantile(each, SHARE) for each in (ours, theirs)]),
    ):
        our, their = (round(each, 4) for each in values)
        yield Measure(f"q-error of join sizes, {what}, Spark attached", data, our, UNIT, limit, PEER, their)


def join_errors(spark: SparkSession, namespace: str) -> list[float]:
    """Return the q-errors of every join of every query, in ascending order."""
    before = {key: spark.conf.get(key) for key in _SETTINGS}
    spark.sql(f"USE {CATALOG}.{namespace}")
    for key, value in _SETTINGS.items():
        spark.conf.set(key, value)
    try:
        return sorted(error for text in QUERIES.values() for error in _errors(spark, text))
    finally:
        for key, setting in before.items():
            spark.conf.set(key, setting)


def _errors(spark: SparkSession, text: str) -> Sequence[float]:
    nodes = plan_nodes(spark, text, run=True)
    joins = [node for node in nodes if any(name in node["name"] for name in _JOINS)]
    return q_errors([node["attached"] for node in joins], [node["rows"] for node in joins])
