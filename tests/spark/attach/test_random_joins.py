"""Joins of every kind return, attached, what Spark returns alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from tests.lakehouse import tables
from tests.spark.attach.ways import WAYS, attached_session, files_read, sessions_of_all_ways

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

QUERIES = 30


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


@pytest.fixture(scope="module")
def sessions(spark: SparkSession) -> Iterator[dict[str, SparkSession]]:
    with sessions_of_all_ways(spark) as made:
        yield made


def same(one: list[Row], two: list[Row]) -> bool:
    return sorted(map(repr, one)) == sorted(map(repr, two))


@pytest.mark.parametrize("seed", [7, 8])
def test_random_queries(
    spark: SparkSession, sessions: dict[str, SparkSession], star: dict[str, str], seed: int
) -> None:
    """Two at once in each session."""
    chance = random.Random(seed)
    texts = [_query(chance, star) for _ in range(QUERIES // 2)]
    expected = [spark.sql(text).collect() for text in texts]
    for way, session in sessions.items():
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(partial(_answer, session), texts))
        for text, answer, rows in zip(texts, answers, expected, strict=True):
            assert same(answer, rows), (way, text)


def _answer(session: SparkSession, text: str) -> list[Row]:
    return session.sql(text).collect()


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


@pytest.mark.parametrize("way", WAYS)
def test_keys_of_a_small_side_cut_the_large_one(
    spark: SparkSession, sessions: dict[str, SparkSession], star: dict[str, str], way: str
) -> None:
    """Of three tables only with costs: without them, Spark does not know how few rows two of them have."""
    two = (
        f"SELECT sum(l.q) FROM {star['o']} o JOIN {star['l']} l ON l.k = o.k "
        "WHERE o.c = 3 AND o.d < '2024-01-20'"
    )
    three = (
        f"SELECT c.n, sum(l.q) FROM {star['c']} c JOIN {star['o']} o ON o.c = c.c "
        f"JOIN {star['l']} l ON l.k = o.k WHERE c.c = 3 AND o.d < '2024-01-20' GROUP BY c.n"
    )
    session = sessions[way]
    for text in (two, three) if way == "cost-based" else (two,):
        assert files_read(session, text)["lines"] == [1]
        (query,) = rookery.queries(session, last=1).queries
        (lines,) = [each for each in query.tables if each.table == star["l"]]
        assert "(join keys)" in lines.skipped_by
    for text in (two, three):
        assert same(session.sql(text).collect(), spark.sql(text).collect())


def test_views_and_metadata_tables(sessions: dict[str, SparkSession], star: dict[str, str]) -> None:
    session = sessions["attached"]
    session.range(3).createOrReplaceTempView("orders")
    assert session.sql("SELECT count(*) FROM orders WHERE id = 1").collect() == [(1,)]
    text = f"SELECT count(*) FROM {star['l']}.files WHERE record_count > 0"
    assert session.sql(text).collect() == [(8,)]


@pytest.mark.parametrize("setting", ["spark.wap.branch", "spark.wap.id"])
def test_a_session_that_writes_aside_is_left_alone(
    spark: SparkSession, star: dict[str, str], setting: str
) -> None:
    with attached_session(spark, {setting: "audit"}) as session:
        assert files_read(session, f"SELECT * FROM {star['l']} WHERE k = 5") == {}
        session.conf.unset(setting)
        assert files_read(session, f"SELECT * FROM {star['l']} WHERE k = 5") == {"lines": [1]}


def test_what_was_written_aside(spark: SparkSession, lake: Lake) -> None:
    with tables(spark) as make:
        name = make("k bigint", **{"write.wap.enabled": "true"})
        spark.range(0, 100, 1, 1).toDF("k").repartitionByRange(4, "k").writeTo(name).append()
        rookery.analyze(spark, name, lake=lake)
        with attached_session(spark, {"spark.wap.branch": "audit"}) as session:
            session.sql(f"INSERT INTO {name} VALUES (5)")
            assert rookery.table(name, lake).scan(session, "k = 5").count() == 2
            assert session.sql(f"SELECT * FROM {name} WHERE k = 5").count() == 2
            session.conf.unset("spark.wap.branch")
            assert rookery.table(name, lake).scan(session, "k = 5").count() == 1
            assert session.sql(f"SELECT * FROM {name} WHERE k = 5").count() == 1
