"""`rookery.sql` over pruned tables returns what Spark returns, whatever the joins."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rookery
from rookery.api import sql, sql_plan
from rookery.api.lake import Lake
from rookery.model import StorageError
from tests.lakehouse import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

QUERIES = 30


@pytest.fixture(autouse=True)
def _shared_catalog(_isolated: None, rookery_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOKERY_HOME", str(rookery_home))


@pytest.fixture(scope="module")
def star(spark: SparkSession, lake: Lake) -> Iterator[dict[str, str]]:
    """Three tables in several files each, with nulls in their keys."""
    with tables(spark) as make:
        found = {
            "o": make("k bigint, c int, d date", "orders"),
            "l": make("k bigint, q int, s string", "lines"),
            "c": make("c bigint, n string", "customers"),
        }
        spark.range(0, 400, 1, 1).selectExpr(
            "IF(id % 37 = 0, NULL, id) k",
            "CAST(id % 40 AS int) c",
            "date_add(DATE'2024-01-01', CAST(id AS int)) d",
        ).repartitionByRange(4, "k").writeTo(found["o"]).append()
        spark.range(0, 1600, 1, 1).selectExpr(
            "IF(id % 41 = 0, NULL, id DIV 3) k", "CAST(id % 50 AS int) q", "concat('s', id % 7) s"
        ).repartitionByRange(8, "k").writeTo(found["l"]).append()
        spark.range(0, 44, 1, 1).selectExpr("id c", "concat('n', id % 9) n").repartitionByRange(
            2, "c"
        ).writeTo(found["c"]).append()
        rookery.table(found["l"], lake).add_index("bloom", "k")
        for name in found.values():
            rookery.analyze(spark, name, lake=lake)
        yield found


def same(one: list[Row], two: list[Row]) -> bool:
    return sorted(map(repr, one)) == sorted(map(repr, two))


@pytest.mark.parametrize("eager", [False, True], ids=["as it is", "always staged"])
def test_random_queries(
    spark: SparkSession, star: dict[str, str], eager: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if eager:  # whatever is left is staged, and keys are read of any table
        monkeypatch.setattr(sql, "MOST", 2.0)
        monkeypatch.setattr(sql_plan, "_WORTH", 0)
    chance = random.Random(7 + eager)
    for _ in range(QUERIES // 2):
        text = _query(chance, star)
        assert same(rookery.sql(spark, text).collect(), spark.sql(text).collect()), text


def _query(chance: random.Random, star: dict[str, str]) -> str:
    joins = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
    first = chance.choice(joins)
    visible = ["o"] if "SEMI" in first or "ANTI" in first else ["o", "l"]
    on = [f"o.k = l.k{chance.choice(['', ' AND ' + _condition(chance, chance.choice('ol'))])}"]
    text = f"FROM {star['o']} o {first} {star['l']} l ON {on[0]}"
    if chance.random() < 0.5:
        second = chance.choice(joins[:4])
        text += f" {second} {star['c']} c ON o.c = c.c"
        visible.append("c")
    parts = [_condition(chance, chance.choice(visible)) for _ in range(chance.randrange(3))]
    where = f" WHERE {' AND '.join(parts)}" if parts else ""
    columns = ", ".join(
        {"o": "o.k ok, o.c oc, o.d", "l": "l.k lk, l.q, l.s", "c": "c.c cc, c.n"}[name] for name in visible
    )
    return f"SELECT {columns} {text}{where}"


def _condition(chance: random.Random, table: str) -> str:
    number = chance.randrange(400)
    return chance.choice(
        {
            "o": [f"o.k < {number // 8}", f"o.k = {number}", f"o.c = {number % 45}", "o.k IS NULL",
                  "o.d < '2024-01-09'", f"NOT (o.k > {number})", f"o.k + 0 = {number}"],
            "l": [f"l.k = {number}", f"l.q = {number % 60} AND l.k < 100", "l.k IS NULL",
                  "l.s IN ('s1', 'zz')", "l.s <=> NULL", f"l.k BETWEEN {number} AND {number + 9}"],
            "c": [f"c.c = {number % 50}", "c.n = 'n3'", "c.n IS NULL", "coalesce(c.n, 'n1') = 'n1'"],
        }[table]
    )  # fmt: skip


def test_keys_of_a_small_side_cut_the_large_one(
    spark: SparkSession, star: dict[str, str], lake: Lake
) -> None:
    text = (
        f"SELECT c.n, sum(l.q) FROM {star['c']} c JOIN {star['o']} o ON o.c = c.c "
        f"JOIN {star['l']} l ON l.k = o.k WHERE c.c = 3 AND o.d < '2024-01-20' GROUP BY c.n"
    )
    by_alias = {each.alias: each for each in sql.plan_of(spark, text, lake).tables}
    assert by_alias["l"].keys_from == ("o",)
    assert by_alias["l"].files_left == 1 < by_alias["l"].files
    assert same(rookery.sql(spark, text, lake).collect(), spark.sql(text).collect())


def test_what_is_staged_goes_with_the_last_plan(spark: SparkSession, star: dict[str, str]) -> None:
    frame = rookery.sql(spark, f"SELECT * FROM {star['l']} WHERE k = 5")
    derived = frame.groupBy("s").count()
    del frame
    assert sum(row["count"] for row in derived.collect()) == 3


@pytest.mark.parametrize("failing", [1, 2])
def test_files_that_cannot_be_staged_are_left_to_spark(
    spark: SparkSession, star: dict[str, str], monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    text = f"SELECT o.k FROM {star['o']} o JOIN {star['l']} l ON l.k = o.k WHERE o.k = 5 AND l.k = 5"
    calls: list[object] = []
    honest = sql.left_frame

    def fail(*arguments: Any) -> DataFrame:
        calls.append(arguments)
        if len(calls) == failing:
            raise StorageError("cannot be staged")
        return honest(*arguments)

    monkeypatch.setattr(sql, "left_frame", fail)
    found = rookery.sql(spark, text).collect()
    assert len(calls) == failing
    assert same(found, spark.sql(text).collect())


def test_views_and_strange_names_go_to_spark(spark: SparkSession, star: dict[str, str]) -> None:
    spark.range(3).createOrReplaceTempView("orders")
    assert rookery.sql(spark, "SELECT count(*) FROM orders WHERE id = 1").first()[0] == 1  # type: ignore[index]
    files = rookery.sql(spark, f"SELECT count(*) FROM {star['l']}.files WHERE record_count > 0").first()
    assert files is not None
    assert files[0] == 8
    left = spark._jsparkSession.sessionState().catalog().listLocalTempViews("rookery_*")
    assert left.size() == 0


def test_a_session_that_writes_aside_is_left_alone(
    spark: SparkSession, star: dict[str, str], lake: Lake
) -> None:
    spark.conf.set("spark.wap.branch", "audit")
    try:
        assert sql.plan_of(spark, f"SELECT * FROM {star['l']} WHERE k = 5", lake).tables == ()
    finally:
        spark.conf.unset("spark.wap.branch")


def test_a_scan_of_what_was_written_aside(spark: SparkSession, lake: Lake) -> None:
    with tables(spark) as make:
        name = make("k bigint", **{"write.wap.enabled": "true"})
        spark.range(0, 100, 1, 1).toDF("k").repartitionByRange(4, "k").writeTo(name).append()
        spark.conf.set("spark.wap.branch", "audit")
        try:
            spark.sql(f"INSERT INTO {name} VALUES (5)")
            assert rookery.table(name, lake).scan(spark, "k = 5").count() == 2
            assert rookery.sql(spark, f"SELECT * FROM {name} WHERE k = 5", lake).count() == 2
        finally:
            spark.conf.unset("spark.wap.branch")
        assert rookery.table(name, lake).scan(spark, "k = 5").count() == 1
