"""Scans of one query that are equal are run once; those that skip other files are not equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import rookery
from rookery.api.lake import Lake
from tests.lakehouse import NewTable
from tests.spark.attach.ways import attached_session, executed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES, ROWS = 8, 50


@pytest.fixture(scope="module")
def events(spark: SparkSession, lake: Lake, new_table: NewTable) -> str:
    """`key` has a Bloom index; `day` has a bitmap index: d9 and d0 are in each file, d1 to d8 in one."""
    name = new_table("id bigint, key string, day string")
    spark.range(0, FILES * ROWS, 1, FILES).selectExpr(
        "id",
        "md5(cast(id AS string)) AS key",
        f"concat('d', CASE id % 3 WHEN 0 THEN 0 WHEN 1 THEN 9 ELSE id DIV {ROWS} + 1 END) AS day",
    ).writeTo(name).option("distribution-mode", "none").append()
    rookery.table(name, lake).add_index("bloom", "key")
    rookery.table(name, lake).add_index("bitmap", "day")
    rookery.analyze(spark, name, lake=lake)
    return name


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def attached(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    with attached_session(spark, {"spark.sql.adaptive.enabled": request.param}) as session:
        yield session


def scans(frame: DataFrame) -> list[Any]:
    plan: Any = frame._jdf.queryExecution()  # type: ignore[operator]
    leaves = plan.optimizedPlan().collectLeaves()
    return [leaves.apply(place).scan() for place in range(leaves.size())]


def test_two_equal_aggregates(attached: SparkSession, events: str) -> None:
    half = f"SELECT day, count(*) c FROM {events} WHERE key IN (md5('1'), md5('3')) GROUP BY day"
    query = attached.sql(f"{half} UNION ALL {half}")
    assert sorted((row.day, row.c) for row in query.collect()) == [("d0", 1), ("d0", 1), ("d9", 1), ("d9", 1)]
    assert "ReusedExchange" in executed(query)
    assert "Rookery(1 of 8 files" in executed(query)
    one, other = scans(query)
    assert one.equals(other)
    assert one.toBatch().equals(other.toBatch())


@pytest.mark.parametrize(
    "conditions",
    [
        # Iceberg describes these,
        ("key = md5('7')", "key = md5('77')"),
        # and does not use, nor describe, these: they differ in nothing but the condition that was pushed.
        ("day LIKE '%1'", "day LIKE '%2'"),
        ("day LIKE '%1' AND id >= 0", "day LIKE '%8' AND id >= 0"),
    ],
)
def test_as_many_skipped_files_are_not_the_same_files(
    spark: SparkSession, attached: SparkSession, events: str, conditions: tuple[str, str]
) -> None:
    halves = [f"SELECT day, min(id) i FROM {events} WHERE {where} GROUP BY day" for where in conditions]
    text = " UNION ALL ".join(halves)
    query = attached.sql(text)
    rows = sorted(query.collect())
    assert len(rows) == 2
    assert rows == sorted(spark.sql(text).collect())
    assert "ReusedExchange" not in executed(query)
    assert executed(query).count("Rookery(1 of 8 files") >= 2
    # The filter above a scan makes the plans different too, as long as Iceberg leaves it in place.
    one, other = scans(query)
    assert not one.equals(other)
    assert not one.toBatch().equals(other.toBatch())


def test_equal_conditions_in_another_order(attached: SparkSession, events: str) -> None:
    """A self join, and a subquery that is asked for twice."""
    where = "day LIKE '%1'"
    text = (
        f"SELECT count(*) FROM {events} a JOIN {events} b ON a.key = b.key WHERE a.{where} AND b.{where} "
        f"AND a.id <= (SELECT max(id) FROM {events} WHERE {where}) "
        f"AND b.id <= (SELECT max(id) FROM {events} WHERE {where})"
    )
    rows = attached.sql(text).collect()
    rookery.detach(attached)
    assert attached.sql(text).collect() == rows != [(0,)]
