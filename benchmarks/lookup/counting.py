"""Counts by a status, from bitmaps, where Spark reads the column."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from benchmarks.harness import Effort, Row, compare
from benchmarks.lake import CATALOG
from benchmarks.lookup.data import NAME, START, Lookup

LATE = 0.9  # of the time: after it lies a tenth of the rows


def rows(lookup: Lookup, effort: Effort) -> Iterator[Row]:
    since = START / 1e6 + LATE * lookup.files * lookup.rows
    moment = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M:%S")
    predicates = (
        ("status = 's7'", 50.0),
        ("status = 's7' OR status = 's11'", 50.0),
        (f"status = 's7' AND ts >= TIMESTAMP '{moment}+00:00'", None),
    )
    for predicate, target in predicates:
        yield _row(lookup, predicate, target, effort)


def _row(lookup: Lookup, predicate: str, target: float | None, effort: Effort) -> Row:
    handle = lookup.handle()

    def ours() -> int:
        return handle.count(predicate)

    def spark() -> int:
        text = f"SELECT count(*) AS n FROM {CATALOG}.{NAME} WHERE {predicate}"
        return lookup.bench.spark.sql(text).collect()[0]["n"]

    assert ours() == spark() > 0
    what = f"count where {predicate}"
    return compare(what, lookup.described, ours, "Spark", spark, effort, target=target, peer_rounds=5)
