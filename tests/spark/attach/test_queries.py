"""The log of queries of an attached session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import UsageError
from rookery.prune.cascade import prune
from tests.lakehouse import NewTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES, ROWS = 8, 100


@pytest.fixture(scope="module")
def events(spark: SparkSession, lake: Lake, new_table: NewTable) -> str:
    name = new_table("id bigint, key string")
    rows = spark.range(0, FILES * ROWS, 1, FILES).selectExpr("id", "md5(cast(id AS string)) AS key")
    rows.writeTo(name).option("distribution-mode", "none").append()
    rookery.table(name, lake).add_index("bloom", "key")
    rookery.analyze(spark, name, lake=lake)
    return name


@pytest.fixture
def attached(spark: SparkSession) -> Iterator[SparkSession]:
    with rookery.attach(spark, cbo=True, least_bytes=0) as session:
        yield session


def test_what_was_read_and_estimated(attached: SparkSession, events: str) -> None:
    text = f"SELECT * FROM {events} WHERE key = md5('77')"
    attached.sql(text).collect()
    attached.table(events).where("id < 10").collect()
    frame, sql = rookery.queries(attached, last=2).queries
    assert (sql.text, sql.error, sql.rows) == (text, None, 1)
    (scan,) = sql.tables
    assert (scan.table, scan.files, scan.files_read) == (events, FILES, 1)
    assert 0 < scan.bytes_read < scan.bytes
    assert scan.skipped_by == "inverted theta 7"
    assert (scan.estimated_rows, scan.rows) == (1, 1)
    assert frame.text == ""
    assert frame.tables[0].rows == 10
    assert frame.tables[0].estimated_rows == pytest.approx(10, abs=2)


def test_joins_and_subqueries(attached: SparkSession, events: str) -> None:
    attached.sql(
        f"SELECT count(*) FROM {events} a JOIN {events} b ON a.key = b.key "
        f"WHERE b.id < 3 AND a.id <= (SELECT max(id) FROM {events} WHERE id < 50)"
    ).collect()
    (query,) = rookery.queries(attached, last=1).queries
    assert len(query.tables) == 3
    assert any("(join keys)" in each.skipped_by for each in query.tables)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_sort_runs_what_is_below_it_twice(attached: SparkSession, events: str, adaptive: str) -> None:
    """It samples its input first, and Spark counts those rows too."""
    before = attached.conf.get("spark.sql.adaptive.enabled")
    attached.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        attached.sql(f"SELECT * FROM {events} WHERE id >= 100 ORDER BY key").collect()
        attached.sql(f"SELECT key, count(*) FROM {events} WHERE id < 50 GROUP BY key ORDER BY key").collect()
    finally:
        attached.conf.set("spark.sql.adaptive.enabled", before)
    grouped, sort = rookery.queries(attached, last=2).queries
    assert (sort.rows, sort.tables[0].rows) == (700, 700)
    assert (grouped.rows, grouped.tables[0].rows) == (50, 50)


@pytest.mark.parametrize(
    "end", ["LIMIT 5", "ORDER BY key LIMIT 5", "LIMIT 5 OFFSET 2", "LIMIT 795 OFFSET 795"]
)
def test_rows_up_to_a_limit(attached: SparkSession, events: str, end: str) -> None:
    rows = attached.sql(f"SELECT * FROM {events} {end}").collect()
    assert rookery.queries(attached, last=1).queries[0].rows == len(rows)


def test_a_query_that_fails_is_listed(attached: SparkSession, events: str) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        attached.sql(f"SELECT 1 / (id - 5) FROM {events} WHERE id = 5").collect()
    (query,) = rookery.queries(attached, last=1).queries
    assert query.error is not None
    assert query.rows is None
    assert "failed" in str(rookery.queries(attached, last=1))


def test_the_report_is_text_and_json(attached: SparkSession, events: str) -> None:
    assert str(rookery.queries(attached)) == "no queries over analyzed tables yet"
    attached.sql(f"SELECT id FROM {events} WHERE id = 5").collect()
    report = rookery.queries(attached)
    assert "1 of 1" in str(report)
    assert '"files_read": 1' in report.json()


def scan_of(frame: DataFrame) -> Any:
    plan: Any = frame._jdf.queryExecution().executedPlan()  # type: ignore[operator]
    while plan.children().nonEmpty():
        plan = plan.children().head()
    return plan


def test_metrics_of_the_scan(attached: SparkSession, events: str) -> None:
    frame = attached.sql(f"SELECT id FROM {events} WHERE key = md5('77')")
    frame.collect()
    metrics = scan_of(frame).metrics()
    assert metrics.apply("skippedDataFiles").value() == FILES - 1
    assert metrics.apply("resultDataFiles").value() == 1
    size = metrics.apply("totalDataFileSize").value()
    assert 0 < size == rookery.queries(attached, last=1).queries[0].tables[0].bytes_read


def test_the_planning_time_of_a_scan_includes_rookerys(
    attached: SparkSession, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*given: Any) -> Any:
        Event().wait(0.7)
        return prune(*given)

    frame = attached.sql(f"SELECT id FROM {events} WHERE key = md5('78')")
    monkeypatch.setattr("rookery.spark.attach.planner.prune", slow)
    frame.collect()
    ours = rookery.queries(attached, last=1).queries[0].tables[0].planning_ms
    assert ours >= 700
    assert scan_of(frame).metrics().apply("totalPlanningDuration").value() >= int(ours)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_the_plan_that_the_ui_shows(attached: SparkSession, events: str, adaptive: str) -> None:
    before = attached.conf.get("spark.sql.adaptive.enabled")
    attached.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        attached.sql(f"SELECT count(*) FROM {events} WHERE key = md5('77')").collect()
    finally:
        attached.conf.set("spark.sql.adaptive.enabled", before)
    java: Any = attached._jsparkSession
    java.sparkContext().listenerBus().waitUntilEmpty()
    store = java.sharedState().statusStore()
    last = store.executionsList().last().executionId()
    nodes = store.planGraph(last).allNodes()
    shown = [nodes.apply(place) for place in range(nodes.size())]
    (scan,) = (node for node in shown if events in node.desc())
    assert f"Rookery(1 of {FILES} files, " in scan.desc()
    metrics = [scan.metrics().apply(place) for place in range(scan.metrics().size())]
    (skipped,) = (each for each in metrics if each.name() == "number of skipped data files")
    assert store.executionMetrics(last).apply(skipped.accumulatorId()) == str(FILES - 1)


def test_a_session_that_is_not_attached(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="not attached"):
        rookery.queries(spark)


@pytest.mark.parametrize("last", [0, -1])
def test_how_many_queries_is_a_positive_number(spark: SparkSession, last: int) -> None:
    with pytest.raises(UsageError, match="not a number of queries"):
        rookery.queries(spark, last=last)


@pytest.mark.parametrize("call", [rookery.attach, rookery.queries])
def test_what_is_no_session(call: Callable[[Any], object]) -> None:
    with pytest.raises(UsageError, match="a str is not a Spark session"):
        call("spark")


def test_a_session_of_spark_connect() -> None:
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    for call in (rookery.attach, rookery.queries):
        with pytest.raises(UsageError, match="Spark Connect session cannot be attached"):
            call(remote)


@pytest.mark.parametrize("call", ["attach(1)", "detach(1)", "queries(1)"])
def test_without_pyspark(call: str) -> None:
    program = f"""
import sys
sys.modules["pyspark"] = None
import rookery
try:
    rookery.{call}
except rookery.RookeryError as error:
    print(error.message, "|", error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "is not installed | pip install 'rookery[spark]'" in done.stdout


def test_sessions_of_rookery_are_attached(spark: SparkSession, lake: Lake) -> None:
    """A session that was detached stays so; another one is attached by `lake.spark()`."""
    assert lake.spark() is spark
    with pytest.raises(UsageError):
        rookery.queries(spark)
    other = spark.newSession()
    session = type(spark)
    before = session._activeSession
    try:
        session._activeSession = other
        assert lake.spark(attach=False) is other
        with pytest.raises(UsageError):
            rookery.queries(other)
        assert lake.spark() is other
        assert rookery.queries(other).queries == ()
        rookery.detach(other)
    finally:
        session._activeSession = before
