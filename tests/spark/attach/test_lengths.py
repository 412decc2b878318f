"""Lengths of text and binary values: those that Spark computes, and what they change in its plans."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.collect.lengths import FileLengths
from tests.lakehouse import NewTable
from tests.spark.attach.ways import attached_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id bigint, word string, text string, raw binary, nested struct<note: string>"
TEXTS = ("word", "text", "raw")
ROWS = 3000
SMALL_ROW_GROUPS = {
    "write.parquet.row-group-size-bytes": "20000",
    "write.parquet.row-group-check-min-record-count": "100",
    "write.parquet.row-group-check-max-record-count": "100",
}
PLAIN = {"write.parquet.dict-size-bytes": "64"}


def fill(spark: SparkSession, name: str, start: int, wide: int = 1) -> None:
    """Append a file: few words, most of them short; distinct texts; bytes in a third of the rows."""
    spark.range(start, start + ROWS, 1, 1).selectExpr(
        "id",
        f"if(id % 50 = 0, repeat('w', {40 * wide}), concat('ü', id % 3)) AS word",
        f"repeat(md5(cast(id AS string)), {wide}) AS text",
        "if(id % 3 = 0, encode(repeat('b', cast(id % 90 AS int)), 'utf-8'), null) AS raw",
        "struct(if(id % 2 = 0, 'note', null) AS note) AS nested",
    ).writeTo(name).append()


def set_properties(spark: SparkSession, name: str, properties: dict[str, str]) -> None:
    said = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({said})")


def exact(spark: SparkSession, name: str) -> dict[str, tuple[int, int]]:
    parts = ", ".join(f"avg(octet_length({each})), max(octet_length({each}))" for each in TEXTS)
    row = spark.sql(f"SELECT {parts} FROM {name}").first()
    assert row is not None
    return {each: (math.ceil(row[2 * n]), row[2 * n + 1]) for n, each in enumerate(TEXTS)}


def statistics(frame: DataFrame) -> Any:
    """What Spark's optimizer knows of a plan, by the settings of its own session."""
    session: Any = frame.sparkSession
    active = session._jvm.org.apache.spark.sql.classic.SparkSession
    active.setActiveSession(session._jsparkSession)
    try:
        plan: Any = frame._jdf
        return plan.queryExecution().optimizedPlan().stats()
    finally:
        active.clearActiveSession()


def size(frame: DataFrame) -> int:
    return int(str(statistics(frame).sizeInBytes()))


def lengths(session: SparkSession, name: str, where: str = "true") -> dict[str, tuple[int, int]]:
    """The average and the greatest length of each text column in the statistics of a plan."""
    session.catalog.refreshTable(name)  # another session has written to it
    found = {}
    columns = statistics(session.table(name).where(where)).attributeStats().iterator()
    while columns.hasNext():
        pair = columns.next()
        known = pair._2()
        if known.avgLen().isDefined():
            found[pair._1().name()] = (int(known.avgLen().get()), int(known.maxLen().get()))
    return found


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with attached_session(spark, cbo=True) as attached:
        yield attached


@pytest.mark.parametrize("version", [2, 3])
def test_lengths_are_those_of_spark(
    spark: SparkSession, session: SparkSession, lake: Lake, new_table: NewTable, version: int
) -> None:
    """As files are added with dictionaries and without, as rows are deleted, and as files are removed."""
    name = new_table(COLUMNS, format_version=version)
    fill(spark, name, 0)
    rookery.analyze(spark, name, lake=lake)
    assert lengths(session, name) == exact(spark, name)
    set_properties(spark, name, SMALL_ROW_GROUPS)
    fill(spark, name, ROWS, wide=2)
    set_properties(spark, name, PLAIN)
    fill(spark, name, 2 * ROWS, wide=3)
    report = rookery.analyze(spark, name, lake=lake)
    assert report.files_read == 2
    assert report.chunks["pages"] > 2 * len(COLUMNS.split(","))  # of several row groups
    assert lengths(session, name) == exact(spark, name)
    spark.sql(f"DELETE FROM {name} WHERE id < {ROWS} AND id % 50 <> 0")
    assert spark.table(f"{name}.delete_files").count() > 0
    rookery.analyze(spark, name, lake=lake)
    assert lengths(session, name) == exact(spark, name)
    spark.sql(f"DELETE FROM {name} WHERE id >= {2 * ROWS}")
    expected = exact(spark, name)
    assert expected["text"][1] == 64  # the file with the longest is gone
    assert lengths(session, name) == expected  # by a state that has it
    rookery.analyze(spark, name, lake=lake)
    assert lengths(session, name) == expected


def test_only_the_files_that_are_left_count(
    spark: SparkSession, session: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    name = new_table(COLUMNS)
    fill(spark, name, 0)
    fill(spark, name, ROWS, wide=9)
    rookery.analyze(spark, name, lake=lake)
    assert lengths(session, name, f"id < {ROWS}")["text"] == (32, 32)
    assert lengths(session, name, f"id >= {ROWS}")["text"] == (288, 288)


def test_states_without_lengths(
    spark: SparkSession,
    session: SparkSession,
    lake: Lake,
    new_table: NewTable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As an earlier version has written them: they are known of files that are added since, then of all."""
    name = new_table(COLUMNS)
    fill(spark, name, 0)
    with monkeypatch.context() as earlier:
        earlier.setattr(FileLengths, "tables", lambda *_: {})
        rookery.analyze(spark, name, lake=lake)
    assert lengths(session, name) == {}
    assert size(session.table(name)) == size(spark.table(name))
    fill(spark, name, ROWS, wide=3)
    assert rookery.analyze(spark, name, lake=lake).files_read == 1
    assert lengths(session, name)["text"] == (96, 96)
    rookery.analyze(spark, name, lake=lake, full=True)
    assert lengths(session, name) == exact(spark, name)


@pytest.fixture(scope="module")
def wide(spark: SparkSession, lake: Lake, new_table: NewTable) -> str:
    """1.5 MB of text, which compresses to a few kilobytes."""
    name = new_table("id bigint, text string, code string")
    frame = spark.range(0, 1000, 1, 1)
    frame.selectExpr("id", "repeat('long', 375) AS text", "'ab' AS code").writeTo(name).append()
    rookery.analyze(spark, name, lake=lake)
    return name


@pytest.mark.parametrize(
    ("columns", "where", "low", "high"),
    [
        ("*", "true", 1_500_000, 1_700_000),
        ("*", "id >= 500", 750_000, 850_000),
        ("text", "id < 500 OR text = 'x'", 750_000, 1_700_000),
        ("*", "text = 'x' OR code = 'x' OR id >= 0", 1_500_000, 1_700_000),
        ("id, code", "id >= 0", 1000 * (8 + 8 + 2), 1000 * (8 + 8 + 8 + 12)),
    ],
)
def test_sizes_follow_the_lengths(
    spark: SparkSession, session: SparkSession, wide: str, columns: str, where: str, low: int, high: int
) -> None:
    text = f"SELECT {columns} FROM {wide} WHERE {where}"
    assert low <= size(session.sql(text)) <= high
    if "text" in columns or columns == "*":
        with attached_session(spark, cbo=True, statistics=False) as without:
            assert size(without.sql(text)) < 100_000


def test_sizes_without_the_cost_based_optimizer_do_not(spark: SparkSession, wide: str) -> None:
    with attached_session(spark, cbo=False) as session:
        assert size(session.table(wide)) == size(spark.table(wide))


@pytest.mark.parametrize(("column", "broadcast"), [("text", False), ("code", True)])
def test_a_wide_table_is_not_broadcast(spark: SparkSession, wide: str, column: str, broadcast: bool) -> None:
    """Its true size is above the threshold. Spark alone assumes texts of 20 bytes."""
    text = f"SELECT a.{column}, b.{column} AS other FROM {wide} a JOIN {wide} b ON a.id = b.id"
    plans = []
    for statistics_of_rookery in (False, True):
        settings = {"spark.sql.autoBroadcastJoinThreshold": "500000"}
        with attached_session(spark, settings, cbo=True, statistics=statistics_of_rookery) as session:
            query: Any = session.sql(text)
            plans.append(str(query._jdf.queryExecution().executedPlan()))
            assert query.count() == 1000
    assert ["BroadcastHashJoin" in plan for plan in plans] == [True, broadcast]
    assert ["SortMergeJoin" in plan for plan in plans] == [False, not broadcast]
