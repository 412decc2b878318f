"""The plan of a query, with what Spark estimates alone and attached, against the rows that it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rookery.api.analyze import analyze
from rookery.api.lake import Lake
from rookery.api.plan_estimates import PlanEstimates, PlanNode, plan_estimates
from rookery.model import UsageError
from tests.lakehouse import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS = 8, 100


@pytest.fixture(scope="module")
def events(spark: SparkSession, lake: Lake, new_table: NewTable) -> str:
    name = new_table("id bigint, n int")
    rows = spark.range(0, FILES * ROWS, 1, FILES).selectExpr("id", "cast(id % 10 AS int) AS n")
    rows.writeTo(name).option("distribution-mode", "none").append()
    analyze(spark, name, lake=lake)
    return name


def nodes(report: PlanEstimates, name: str) -> list[PlanNode]:
    return [node for node in report.nodes if node.name.startswith(name)]


def test_rows_of_a_filter(spark: SparkSession, events: str) -> None:
    report = plan_estimates(f"SELECT * FROM {events} WHERE n = 5", spark=spark, actual=True)
    (filtered,) = nodes(report, "Filter")
    assert (filtered.alone, filtered.attached, filtered.rows) == (0, 80, 80)
    assert (filtered.alone_error, filtered.attached_error) == (80, 1)
    (scan,) = nodes(report, "BatchScan")
    assert (scan.depth, scan.rows) == (1, FILES * ROWS)
    assert str(report).splitlines()[2].split()[-1] == "–"  # its estimate is that of the filter
    assert "rows that match the conditions" in str(report)


def test_rows_below_a_sort_are_counted_once(spark: SparkSession, events: str) -> None:
    report = plan_estimates(f"SELECT * FROM {events} WHERE n = 5 ORDER BY id", spark=spark, actual=True)
    (filtered,) = nodes(report, "Filter")
    (scan,) = nodes(report, "BatchScan")
    assert (filtered.rows, scan.rows) == (80, FILES * ROWS)


def test_joins_and_aggregates(spark: SparkSession, events: str) -> None:
    text = f"SELECT a.n, count(*) FROM {events} a JOIN {events} b ON a.id = b.id WHERE b.n = 3 GROUP BY a.n"
    report = plan_estimates(text, spark=spark, actual=True)
    (join,) = [node for node in report.nodes if "Join" in node.name]
    assert (join.attached, join.rows) == (80, 80)
    (aggregate,) = nodes(report, "HashAggregate")  # of its two halves, the result
    assert aggregate.rows == 1
    assert aggregate.depth < join.depth
    assert "q-error" in str(report)
    assert '"attached": 80.0' in report.json()


def test_nothing_is_run_unless_asked(spark: SparkSession, events: str) -> None:
    report = plan_estimates(f"SELECT * FROM {events} WHERE n = 5", spark=spark)
    assert {node.rows for node in report.nodes} == {None}
    assert "q-error" not in str(report)
    assert "#" not in str(report)


def test_the_session_stays_as_it_is(spark: SparkSession, events: str) -> None:
    settings = spark.conf.getAll
    namespace, _, table = events.rpartition(".")
    spark.sql(f"USE {namespace}")
    try:
        spark.sql("SELECT 5 AS n").createOrReplaceTempView("fives")
        report = plan_estimates(f"SELECT * FROM {table} JOIN fives USING (n)", spark=spark, actual=True)
        assert report.nodes[0].rows == 80
    finally:
        spark.sql(f"USE {namespace.partition('.')[0]}.db")
        spark.catalog.dropTempView("fives")
    assert spark.conf.getAll == settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO {t} VALUES (1, 1)", "not a query"),
        ("WITH a AS (SELECT 1L, 1) INSERT INTO {t} SELECT * FROM a", "not a query"),
        ("DROP TABLE {t}", "not a query"),
        ("SELEKT", "SELEKT"),
        ("SELECT * FROM nothing.at.all", "cannot be found"),
    ],
)
def test_what_is_no_query_changes_nothing(spark: SparkSession, events: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_estimates(text.format(t=events), spark=spark, actual=True)
    assert spark.table(events).count() == FILES * ROWS
