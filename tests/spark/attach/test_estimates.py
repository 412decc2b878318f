"""What Spark plans by in an attached session: with options turned off, after deletes, with a stale state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rookery
from rookery.api.lake import Lake
from tests.lakehouse import NewTable
from tests.spark.attach.ways import attached_session, files_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES, ROWS = 4, 100
CBO = {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.enabled": "true"}


def fill(spark: SparkSession, name: str) -> None:
    """Append 4 files: `id` is clustered, the other columns are not."""
    spark.range(0, FILES * ROWS, 1, FILES).selectExpr(
        "id", "md5(cast(id AS string)) AS key", "cast(id % 10 AS int) AS n", "(id % 100) / 4.0D AS amount"
    ).writeTo(name).option("distribution-mode", "none").append()


@pytest.fixture(scope="module")
def events(spark: SparkSession, lake: Lake, new_table: NewTable) -> str:
    name = new_table("id bigint, key string, n int, amount double")
    fill(spark, name)
    rookery.analyze(spark, name, lake=lake)
    return name


def session_alone(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for key, value in CBO.items():
        session.conf.set(key, value)
    return session


def plan(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution()  # type: ignore[operator]


def estimated(frame: DataFrame) -> int:
    """The rows that Spark estimates by the settings of the frame's own session."""
    session: Any = frame.sparkSession
    active = session._jvm.org.apache.spark.sql.classic.SparkSession
    active.setActiveSession(session._jsparkSession)
    try:
        return int(str(plan(frame).optimizedPlan().stats().rowCount().get()))
    finally:
        active.clearActiveSession()


@pytest.mark.parametrize(
    "where",
    ["n = 5", "n > 8", "amount > 24.0D", "n = 5 OR amount < 1.0D", "key LIKE '%00%'", "n IS NULL", "id >= 0"],
)
def test_without_statistics_estimates_are_those_of_spark(
    spark: SparkSession, events: str, where: str
) -> None:
    text = f"SELECT * FROM {events} WHERE {where}"
    alone = session_alone(spark).sql(text)
    with attached_session(spark, statistics=False, cbo=True) as session:
        assert estimated(session.sql(text)) == estimated(alone)


def test_without_statistics_files_are_skipped_all_the_same(spark: SparkSession, events: str) -> None:
    text = f"SELECT id FROM {events} WHERE key = md5('277')"
    with attached_session(spark, statistics=False, cbo=True) as session:
        assert files_read(session, text) == {events.rpartition(".")[2]: [1]}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("cbo", [True, False])
@pytest.mark.parametrize("when", ["before", "after"])
def test_deleted_rows_are_not_estimated(
    spark: SparkSession, lake: Lake, new_table: NewTable, version: int, cbo: bool, when: str
) -> None:
    """They are deleted before or after the analysis."""
    name = new_table("id bigint, key string, n int, amount double", format_version=version)
    fill(spark, name)
    if when == "after":
        rookery.analyze(spark, name, lake=lake)
    spark.sql(f"DELETE FROM {name} WHERE n = 5")
    if when == "before":
        rookery.analyze(spark, name, lake=lake)
    assert spark.sql(f"SELECT * FROM {name}.delete_files").count() > 0
    alone = session_alone(spark)
    assert estimated(alone.table(name)) == FILES * ROWS
    with attached_session(spark, cbo=cbo) as session:
        assert estimated(session.table(name)) == FILES * ROWS * 9 // 10
        assert session.table(name).count() == FILES * ROWS * 9 // 10
        if cbo:
            assert estimated(session.table(name).where("id >= 200")) == pytest.approx(180, rel=0.1)


def test_a_stale_state_with_a_file_that_was_removed(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    name = new_table("id bigint, key string, n int, amount double")
    fill(spark, name)
    rookery.table(name, lake).add_index("bloom", "key")
    rookery.analyze(spark, name, lake=lake)
    spark.sql(f"DELETE FROM {name} WHERE id >= {(FILES - 1) * ROWS}")
    assert spark.table(f"{name}.files").count() == FILES - 1
    short = name.rpartition(".")[2]
    with attached_session(spark, cbo=True) as session:
        for number, files in ((77, 1), (377, 0)):
            text = f"SELECT id FROM {name} WHERE key = md5('{number}')"
            assert session.sql(text).collect() == spark.sql(text).collect()
            assert files_read(session, text) == {short: [files]}
        assert estimated(session.table(name)) == (FILES - 1) * ROWS
        few = session.table(name).where("n = 5")
        assert estimated(few) == pytest.approx((FILES - 1) * ROWS // 10, rel=0.15)
        assert few.count() == (FILES - 1) * ROWS // 10


def test_a_join_is_broadcast_where_few_rows_are_estimated(spark: SparkSession, events: str) -> None:
    """Spark alone takes a range to match all rows."""
    text = f"SELECT a.id FROM {events} a JOIN {events} b ON a.key = b.key WHERE b.n > 8"
    alone = session_alone(spark)
    with attached_session(spark, cbo=True) as session:
        joins, rows = [], []
        for each in (alone, session):
            each.conf.set("spark.sql.autoBroadcastJoinThreshold", "6000")
            query = each.sql(text)
            joins.append(str(plan(query).executedPlan()))  # before it is run, and adapted
            rows.append(sorted(query.collect()))
    assert "SortMergeJoin" in joins[0]
    assert "BroadcastHashJoin" not in joins[0]
    assert "BroadcastHashJoin" in joins[1]
    assert "SortMergeJoin" not in joins[1]
    assert rows[0] == rows[1] != []


@pytest.mark.parametrize("more, last", [(0, "n"), (1, "id")])
def test_joins_over_few_rows_keep_their_order(spark: SparkSession, events: str, more: int, last: str) -> None:
    """By their rows, the join with one row comes first, and the one that multiplies them last."""
    joins = f"{events} a JOIN {events} b ON a.n = b.n JOIN {events} c ON b.id = c.id"
    text = f"SELECT a.id FROM {joins} WHERE c.amount < 1"
    with attached_session(spark, cbo=True, least_rows=3 * FILES * ROWS + more) as session:
        query = session.sql(text)
        uppermost = next(line for line in str(plan(query).optimizedPlan()).splitlines() if "Join" in line)
        assert f"({last}#" in uppermost
        assert sorted(query.collect()) == sorted(spark.sql(text).collect())
        assert "Hint" not in str(plan(query).executedPlan())


def test_joins_with_a_table_of_unknown_rows_are_reordered(spark: SparkSession, events: str) -> None:
    with attached_session(spark, cbo=True, least_rows=1 << 60) as session:
        session.range(100, numPartitions=1).createOrReplaceTempView("numbers")
        text = f"SELECT a.id FROM {events} a JOIN {events} b ON a.n = b.n JOIN numbers ON b.id = numbers.id"
        hints = "leftHint" in str(plan(session.sql(text)).optimizedPlan())
        assert not hints
