"""Each query both ways: its answer, its time, and the files of lineitem that its scans read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql import Row as Answer

import rookery
from benchmarks.harness import Effort, Measure, Row, compare
from benchmarks.joins.data import Tpch, made
from benchmarks.joins.queries import Query, queries
from benchmarks.joins.scanned import scanned
from benchmarks.lake import open_bench

TITLE = "Joins with a selective side"
PACKAGES = ("rookery", "pyspark", "pyiceberg", "pyarrow", "numpy", "numba")
ROUNDS = 5


def rows(effort: Effort) -> Iterator[Row | Measure]:
    tpch = made(open_bench(effort), effort)
    for query in queries(tpch.scale):
        yield from _rows(tpch, query, effort)


def _rows(tpch: Tpch, query: Query, effort: Effort) -> Iterator[Row | Measure]:
    spark, lake = tpch.bench.spark, tpch.bench.lake

    def ours() -> list[Answer]:
        return rookery.sql(spark, query.text, lake).collect()

    def native() -> list[Answer]:
        return spark.sql(query.text).collect()

    answer = ours()
    assert answer == native(), query.name
    data = f"TPC-H {tpch.scale:g}, {query.filter}, {len(answer)} rows"
    effort = replace(effort, rounds=min(ROUNDS, effort.rounds))
    yield compare(query.name, data, ours, "spark.sql", native, effort)
    frames = rookery.sql(spark, query.text, lake), spark.sql(query.text)
    for frame in frames:
        frame.collect()
    files = tpch.paths("lineitem")
    read, before = (sum(path in files for path in scanned(frame)) for frame in frames)
    what = f"{query.name}, files of lineitem read, of {len(files)}"
    yield Measure(what, data, read, "files", None, "spark.sql", before)
