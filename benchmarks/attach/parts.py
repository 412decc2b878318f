"""The same text in two sessions: lookups, joins, and the cost of planning where nothing is gained."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

import rookery
from benchmarks.attach import planning, tpch
from benchmarks.attach.sessions import ALONE, Sessions
from benchmarks.harness import WARMING, Effort, Measure, Row, compare_asking
from benchmarks.lake import CATALOG, open_bench
from benchmarks.lookup.building import indexed
from benchmarks.lookup.data import NAME, Lookup, made, where
from benchmarks.tpch.data import make as make_tpch
from rookery.spark.attach.planner import LEAST_BYTES

TITLE = "Plain Spark queries, attached"
PACKAGES = ("rookery", "pyspark", "pyiceberg", "pyarrow", "numpy", "numba")
LOOKUPS, JOINS = 10, 6
KEYS = "made.keys"
FASTER, FASTER_JOIN = 15, 8


def rows(effort: Effort) -> Iterator[Row | Measure]:
    bench = open_bench(effort)
    sessions = Sessions.of(bench)
    lookup = made(bench, effort)
    indexed(lookup)
    make_tpch(bench, effort)
    with rookery.attach(sessions.attached, least_bytes=0 if effort.scale < 1 else LEAST_BYTES):
        yield from _lookups(sessions, lookup)
        yield from _joins(sessions, lookup)
        yield from planning.rows(sessions, effort)
        yield from planning.rows_of_many_files(sessions, bench, effort)
    yield from tpch.rows(sessions, effort)


def _lookups(sessions: Sessions, lookup: Lookup) -> Iterator[Row]:
    def by_sql(spark: SparkSession) -> Callable[[str], object]:
        return lambda key: spark.sql(f"SELECT * FROM {CATALOG}.{NAME} WHERE {where(key)}").collect()

    def by_frame(spark: SparkSession) -> Callable[[str], object]:
        return lambda key: spark.table(f"{CATALOG}.{NAME}").where(where(key)).collect()

    for what, ask in (("lookup, SQL", by_sql), ("lookup, DataFrame", by_frame)):
        ours, theirs = ask(sessions.attached), ask(sessions.alone)
        for key in (*lookup.present(1), *lookup.absent(1)):
            assert ours(key) == theirs(key)
        yield from compare_asking(
            what, lookup.described, ours, ALONE, theirs, lookup.present(WARMING + LOOKUPS), target=FASTER
        )


def _joins(sessions: Sessions, lookup: Lookup) -> Iterator[Row]:
    """A small table of keys, of which a filter leaves three."""
    listed = [(key, number // 3) for number, key in enumerate(lookup.present(3 * (WARMING + JOINS)))]
    frame = sessions.attached.createDataFrame(listed, "k string, part int").coalesce(1)
    frame.writeTo(f"{CATALOG}.{KEYS}").using("iceberg").createOrReplace()

    def ask(spark: SparkSession) -> Callable[[int], object]:
        text = f"SELECT e.* FROM {CATALOG}.{NAME} e JOIN {CATALOG}.{KEYS} s ON e.k = s.k WHERE s.part = "
        return lambda part: sorted(spark.sql(f"{text}{part}").collect())

    ours, theirs = ask(sessions.attached), ask(sessions.alone)
    assert ours(0) == theirs(0)
    questions = list(range(WARMING + JOINS))
    yield from compare_asking(
        "join with three keys", lookup.described, ours, ALONE, theirs, questions, target=FASTER_JOIN
    )
