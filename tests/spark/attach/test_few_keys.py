"""Scans that are pruned by few keys of a side that is not broadcast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from tests.lakehouse import tables
from tests.spark.attach.ways import attached_session, files_read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
FILES = 8


@pytest.fixture(scope="module")
def shop(spark: SparkSession, lake: Lake) -> Iterator[dict[str, str]]:
    """Orders in one file, of which each customer has two; their lines in 8 files, clustered by the order."""
    with tables(spark) as make:
        names = {"o": make("k bigint, c int", "orders"), "l": make("k bigint, q int, s string", "lines")}
        spark.range(0, 400, 1, 1).selectExpr("id k", "CAST(id DIV 2 AS int) c").writeTo(names["o"]).append()
        spark.range(0, 8000, 1, FILES).selectExpr("id DIV 20 k", "CAST(id AS int) q", "uuid() s").writeTo(
            names["l"]
        ).option("distribution-mode", "none").append()
        for name in names.values():
            rookery.analyze(spark, name, lake=lake)
        yield names


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with attached_session(spark, NO_BROADCAST, cbo=True) as session:
        yield session


JOIN = "SELECT l.q FROM {l} l JOIN {o} o ON l.k = o.k WHERE o.c "


@pytest.mark.parametrize(
    "text, files",
    [
        (JOIN + "= 20", [1]),
        (JOIN + "IN (20, 77)", [2]),
        (JOIN + "< 30", [FILES]),  # many keys
        ("SELECT o.c FROM {o} o JOIN {l} l ON l.k = o.k WHERE l.q = 5", [1]),
        # To read the orders that are left costs as much as the lines; to read all of a customer does not.
        (JOIN + "= 20 AND o.k IN (SELECT k FROM {l} GROUP BY k HAVING sum(q) > 100)", [1, 1, FILES]),
        ("SELECT l.q FROM {o} o LEFT JOIN {l} l ON l.k = o.k WHERE o.c = 20", [1]),
        ("SELECT l.q FROM {l} l LEFT JOIN (SELECT * FROM {o} WHERE c = 20) o ON l.k = o.k", [FILES]),
        ("SELECT l.q FROM {l} l LEFT SEMI JOIN {o} o ON l.k = o.k AND o.c = 20", [1]),
        ("SELECT l.q FROM {l} l LEFT ANTI JOIN {o} o ON l.k = o.k AND o.c = 20", [FILES]),
    ],
)
def test_few_keys_are_read_for_pruning_alone(
    spark: SparkSession, session: SparkSession, shop: dict[str, str], text: str, files: list[int]
) -> None:
    text = text.format(**shop)
    assert sorted(session.sql(text).collect()) == sorted(spark.sql(text).collect())
    assert files_read(session, text)["lines"] == files


def test_a_scan_that_is_used_twice_is_pruned_once(spark: SparkSession, shop: dict[str, str]) -> None:
    """Spark infers that the keys of both sides are among those of the subquery, whose scan they share.

    Without adaptive execution the left side comes first, where few orders are left.
    """
    text = (
        "SELECT a.k, b.c FROM (SELECT * FROM {o} WHERE c = 20) b RIGHT JOIN {o} a ON a.k = b.k"
        " WHERE a.k IN (SELECT k FROM {l} GROUP BY k HAVING sum(q) > 100)"
    ).format(**shop)
    expected = sorted(spark.sql(text).collect(), key=str)
    with attached_session(spark, NO_BROADCAST | {"spark.sql.adaptive.enabled": "false"}, cbo=True) as session:
        assert sorted(session.sql(text).collect(), key=str) == expected
        assert files_read(session, text)["lines"] == [1, FILES]
    assert len(expected) > 300
