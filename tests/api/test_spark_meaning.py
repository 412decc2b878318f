"""`scan` and `sql` return what Spark returns in whatever session: by settings, functions and variables.

The truth is Spark's own, over a copy of the rows that no source can push a filter into.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyiceberg.expressions import EqualTo, StartsWith

import rookery
from rookery.api.lake import Lake
from rookery.api.session import prunes, unknown_settings
from rookery.model import UsageError
from tests.lakehouse import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COPY = "copied_once"
TEXTS = ["it's", "its", "a\tb", r"a\tb", "5", "05", "é", "${v}", "k", "S"]
SESSIONS: dict[str, tuple[dict[str, str], list[str]]] = {
    "defaults": ({}, ["k = 5", "s = 'it''s'", r"s = 'a\tb'", "f > 16777280", 's = "k"']),
    "ansi off": (
        {"spark.sql.ansi.enabled": "false"},
        ["f = 16777217", "k NOT IN ('05')", "k = '5x'", "s = 5", "k IN ('5', 6)", "d = '2024-01-06x'"],
    ),
    "double quotes": ({"spark.sql.ansi.doubleQuotedIdentifiers": "true"}, ['"k" = 5', 's = "u"']),
    "no escapes": ({"spark.sql.parser.escapedStringLiterals": "true"}, [r"s = 'a\tb'", r"s LIKE 'a\\t%'"]),
    "strings in a row": (
        {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"},
        ["s = 'it''s'", "s = 'it' 's'"],
    ),
    "local times": (
        {"spark.sql.session.timeZone": "Asia/Tokyo"},
        ["t < '2024-01-01 10:00:00'", "t < DATE '2024-01-02'"],
    ),
    "a zone of Java's": ({"spark.sql.session.timeZone": "PST"}, ["t < '2023-12-31 18:00:00'"]),
    "timestamps without a zone": (
        {"spark.sql.timestampType": "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "Asia/Tokyo"},
        ["t < TIMESTAMP '2024-01-01 10:00:00'"],
    ),
    "the old parser of times": (
        {"spark.sql.legacy.timeParserPolicy": "LEGACY"},
        ["d = to_date('2024-01-06')", "d < '2024-01-03'"],
    ),
    "a variable": ({"v": "5", "spark.v": "it"}, ["k = ${v}", "s = '${spark.v}s'", "s = '${v}'"]),
    "case counts": ({"spark.sql.caseSensitive": "true"}, ["k = 5", "s = 'S'"]),
}
CASES = [
    pytest.param(settings, where, id=f"{name}: {where}")
    for name, (settings, predicates) in SESSIONS.items()
    for where in predicates
]


@pytest.fixture(scope="module")
def name(spark: SparkSession, lake: Lake) -> Iterator[str]:
    with tables(spark) as make:
        name = make("k bigint, s string, u string, f float, d date, t timestamp")
        rows = spark.createDataFrame([(i, TEXTS[i % len(TEXTS)]) for i in range(80)], "k bigint, s string")
        rows.selectExpr(
            "k",
            "s",
            "IF(k < 40, s, 'other') u",
            "CAST(16777206 + k AS float) f",
            "date_add(DATE'2024-01-01', CAST(k AS int)) d",
            "timestamp_seconds(1704067200 + k * 3600) t",
        ).repartitionByRange(8, "k").writeTo(name).append()
        rookery.table(name, lake).add_index("bitmap", "s")
        rookery.analyze(spark, name, lake=lake)
        spark.table(name).localCheckpoint().createGlobalTempView(COPY)
        yield name
        spark.catalog.dropGlobalTempView(COPY)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose settings and functions are of no one else's concern; `rookery.sql` attaches it."""
    session = spark.newSession()
    yield session
    rookery.detach(session)


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def configured(session: SparkSession, settings: dict[str, str]) -> SparkSession:
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


def truth(session: SparkSession, name: str | None = None) -> DataFrame:
    """The rows of a table, or those of the one that most tests ask, which are copied once."""
    return session.table(f"global_temp.{COPY}") if name is None else session.table(name).localCheckpoint()


@pytest.mark.parametrize("settings, where", CASES)
def test_predicates_mean_what_the_session_means(
    session: SparkSession, name: str, lake: Lake, settings: dict[str, str], where: str
) -> None:
    configured(session, settings)
    expected = rows(truth(session).where(where))
    assert rows(rookery.table(name, lake).scan(session, where)) == expected
    assert rows(rookery.sql(session, f"SELECT * FROM {name} WHERE {where}", lake)) == expected


@pytest.mark.parametrize("settings", [settings for settings, _ in SESSIONS.values()], ids=list(SESSIONS))
def test_expressions_mean_the_same_in_every_session(
    session: SparkSession, name: str, lake: Lake, settings: dict[str, str]
) -> None:
    configured(session, settings)
    for expression in (
        EqualTo("s", "it's"),
        EqualTo("s", r"a\tb"),
        EqualTo("s", "${v}"),
        StartsWith("s", "a\\"),
    ):
        expected = rookery.table(name, lake).read(expression).num_rows
        assert rookery.table(name, lake).scan(session, expression).count() == expected > 0


@pytest.mark.parametrize("settings", [settings for settings, _ in SESSIONS.values()], ids=list(SESSIONS))
def test_sql_is_pruned_under_any_settings(
    session: SparkSession, name: str, lake: Lake, settings: dict[str, str]
) -> None:
    """`k` is pruned by its bounds, `s` by its index alone."""
    configured(session, settings)
    for where, files in (("k = 5", 1), ("s = 'none'", 0)):
        text = f"SELECT * FROM {name} WHERE {where}"
        rookery.sql(session, text, lake).collect()
        (query,) = rookery.queries(session, last=1).queries
        assert query.text == text
        assert [each.files_read for each in query.tables] == [files]


def test_a_scan_is_pruned_only_under_known_settings(session: SparkSession) -> None:
    assert not list(unknown_settings(session))
    assert prunes(session, "k = 5")
    for key, value in {
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "PST",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",  # as it is by default
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",  # as it is by default
    }.items():
        session.conf.set(key, value)
        assert prunes(session, "k = 5")
    for key, value in {
        "spark.sql.orderByOrdinal": "false",
        "spark.sql.somebody.elses": "1",
    }.items():
        session.conf.set(key, value)
        assert key in list(unknown_settings(session))
        assert not prunes(session, "k = 5")
        session.conf.unset(key)


def test_a_function_of_the_users_own(session: SparkSession, name: str, lake: Lake) -> None:
    where = "startswith(s, 'it')"
    assert prunes(session, where)
    session.udf.register("startswith", lambda text, start: text == "5", "boolean")
    expected = rows(truth(session).where(where))
    assert len(expected) == 8
    assert rows(rookery.table(name, lake).scan(session, where)) == expected
    assert rows(rookery.sql(session, f"SELECT * FROM {name} WHERE {where}", lake)) == expected


def test_columns_that_differ_by_case(session: SparkSession, lake: Lake) -> None:
    session.conf.set("spark.sql.caseSensitive", "true")
    with tables(session) as make:
        name = make("k bigint, K bigint")
        session.range(0, 80, 1, 1).selectExpr("id k", "79 - id K").repartitionByRange(8, "k").writeTo(
            name
        ).append()
        for where in ("K = 5", "k = 5", "K < k AND k < 50"):
            expected = rows(truth(session, name).where(where))
            assert rows(rookery.table(name, lake).scan(session, where)) == expected
            assert rows(rookery.sql(session, f"SELECT * FROM {name} WHERE {where}", lake)) == expected


@pytest.mark.parametrize(
    ("function", "where"),
    [
        ("starts_with", "starts_with(s, 'it')"),  # no function of Spark's, but one of sqlglot's
        ("like", "like(s, 'it')"),
        ("startswith", "startswith/**/(s, 'it')"),
        ("startswith", "`startswith` -- \n (s, 'it')"),
    ],
)
def test_functions_by_any_name_and_spelling(
    session: SparkSession, name: str, lake: Lake, function: str, where: str
) -> None:
    session.udf.register(function, lambda *_: True, "boolean")
    assert rookery.sql(session, f"SELECT * FROM {name} WHERE {where}", lake).count() == 80
    assert rookery.table(name, lake).scan(session, where).count() == 80


@pytest.mark.parametrize(
    "where", ["k = 5 -- first \\\n AND s = 'none'", "k = 5 -- \r OR k = 60", "k = 5 -- \\\r\n OR k = 60"]
)
def test_comments_end_where_they_end_for_spark(
    session: SparkSession, name: str, lake: Lake, where: str
) -> None:
    expected = rows(truth(session).where(where))
    assert expected
    assert rows(rookery.table(name, lake).scan(session, where)) == expected
    assert rows(rookery.sql(session, f"SELECT * FROM {name} WHERE {where}", lake)) == expected
    with pytest.raises(UsageError, match="a comment ends here"):
        rookery.table(name, lake).read(where)


def test_what_clocks_showed_long_ago(session: SparkSession, lake: Lake) -> None:
    with tables(session) as make:
        old = make("t timestamp")
        minutes = "timestamp_seconds(unix_seconds(TIMESTAMP '1935-06-01 00:00:00Z') + id * 60)"
        session.range(1440).selectExpr(f"{minutes} t").repartitionByRange(8, "t").writeTo(old).append()
        rookery.analyze(session, old, lake=lake)
        where = "t = TIMESTAMP '1935-06-01 13:00:00 Europe/Amsterdam'"
        expected = rows(truth(session, old).where(where))
        assert len(expected) == 1
        assert rows(rookery.table(old, lake).scan(session, where)) == expected
        with pytest.raises(UsageError, match="time zone databases"):
            rookery.table(old, lake).count(where)
