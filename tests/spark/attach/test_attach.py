"""An attached session: queries as anyone writes them read fewer files, with the same answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model.cache import Cache
from rookery.prune.cascade import prune
from rookery.spark.attach import attach, detach
from rookery.spark.attach.planner import Settings
from tests.lakehouse import NewTable
from tests.spark.attach.ways import executed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES, ROWS = 8, 100


@pytest.fixture(scope="module")
def events(spark: SparkSession, lake: Lake, new_table: NewTable) -> str:
    """A table of 8 files with 100 rows each: `id` is clustered, `key` is not and has a Bloom index."""
    name = new_table("id bigint, key string, n int, amount double, price decimal(9, 2), at timestamp_ntz")
    spark.range(0, FILES * ROWS, 1, FILES).selectExpr(
        "id",
        "md5(cast(id AS string)) AS key",
        "cast(id % 10 AS int) AS n",
        "id / 8.0D AS amount",
        "cast(id AS decimal(9, 2)) AS price",
        "timestamp_ntz '2024-01-01 00:00:00' AS at",
    ).writeTo(name).option("distribution-mode", "none").append()
    rookery.table(name, lake).add_index("bloom", "key")
    rookery.analyze(spark, name, lake=lake)
    return name


@pytest.fixture(scope="module")
def chosen(spark: SparkSession, lake: Lake, new_table: NewTable) -> str:
    """Keys of the rows 3 and 703, which are in the first file and the last."""
    name = new_table("key string, wanted int")
    spark.sql(f"INSERT INTO {name} SELECT md5(cast(id AS string)), cast(id AS int) FROM range(1000)")
    rookery.analyze(spark, name, lake=lake)
    return name


@pytest.fixture(scope="module")
def few(spark: SparkSession, new_table: NewTable) -> str:
    """The same two keys alone."""
    name = new_table("key string, wanted int")
    spark.sql(f"INSERT INTO {name} VALUES (md5('3'), 3), (md5('703'), 703)")
    return name


@pytest.fixture
def attached(spark: SparkSession) -> Iterator[SparkSession]:
    with attach(spark, least_bytes=0) as session:
        yield session


def files_read(frame: DataFrame, table: str) -> int:
    """How many files of a table a query has read, by the description of its scan."""
    described = re.search(rf"BatchScan {re.escape(table)}\[.*?Rookery\((?:all )?(\d+)", executed(frame))
    assert described is not None
    return int(described.group(1))


def estimated(frame: DataFrame) -> int:
    plan: Any = frame._jdf.queryExecution()  # type: ignore[operator]
    return int(str(plan.optimizedPlan().stats().rowCount().get()))


@pytest.mark.parametrize(
    "where, files",
    [
        ("key = md5('77')", 1),
        ("key IN (md5('1'), md5('750'))", 2),
        ("id = 5", 1),
        ("id BETWEEN 150 AND 250", 2),
        ("price = 40.00BD", 1),
        ("price > 790", 1),
        ("amount < 12.5D", 1),
        ("key = md5('none')", 0),
        ("id < 100 OR id >= 700", 2),
        ("NOT (id >= 100)", 1),
        ("key LIKE '28dd2c7955ce92645%'", FILES),  # md5('77')
        ("id <=> 5L", 1),
        ("5 = id", 1),
        ("concat(key, '') = md5('77')", FILES),  # not a condition on a column
        ("n = 5", FILES),
    ],
)
def test_files_are_skipped(attached: SparkSession, events: str, where: str, files: int) -> None:
    query = attached.sql(f"SELECT id FROM {events} WHERE {where}")
    answer = sorted(row.id for row in query.collect())
    assert files_read(query, events) == files
    detach(attached)
    assert (
        sorted(row.id for row in attached.sql(f"SELECT id FROM {events} WHERE {where}").collect()) == answer
    )


def test_dataframes_aliases_and_views(attached: SparkSession, events: str) -> None:
    frame = attached.table(events).where("id = 7")
    assert [row.id for row in frame.collect()] == [7]
    assert files_read(frame, events) == 1
    nested = attached.sql(f"WITH e AS (SELECT id AS x, n FROM {events}) SELECT * FROM e AS f WHERE f.X = 7")
    assert [row.x for row in nested.collect()] == [7]
    assert files_read(nested, events) == 1


def test_a_join_is_pruned_by_the_keys_of_its_other_side(
    attached: SparkSession, events: str, chosen: str
) -> None:
    text = f"SELECT e.id FROM {events} e JOIN {chosen} c ON e.key = c.key WHERE c.wanted IN (3, 703)"
    query = attached.sql(text)
    assert sorted(row.id for row in query.collect()) == [3, 703]
    assert "dynamicpruning" in executed(query)
    assert files_read(query, events) == 2


def test_a_small_scan_is_not_pruned_by_keys(spark: SparkSession, events: str, chosen: str) -> None:
    text = f"SELECT e.id FROM {events} e JOIN {chosen} c ON e.key = c.key WHERE c.wanted IN (3, 703)"
    with attach(spark) as session:
        query = session.sql(text)
        assert sorted(row.id for row in query.collect()) == [3, 703]
        assert files_read(query, events) == FILES


@pytest.mark.parametrize(
    "where, pruned",
    [
        ("c.wanted >= 0", False),  # all of them
        ("c.wanted >= 990", True),
        ("upper(c.key) LIKE 'A%'", True),  # perhaps few
        ("c.key IN (SELECT key FROM {chosen} WHERE wanted = 3)", True),
        ("c.key IN (SELECT concat(id) FROM range(9) WHERE id > 6)", True),
    ],
)
def test_joins_are_pruned_where_the_keys_may_be_few(
    attached: SparkSession, events: str, chosen: str, where: str, pruned: bool
) -> None:
    where = where.format(chosen=chosen)
    query = attached.sql(f"SELECT e.id FROM {events} e JOIN {chosen} c ON e.key = c.key WHERE {where}")
    query.collect()
    assert ("dynamicpruning" in executed(query)) is pruned


def test_run_time_pruning_can_be_turned_off(spark: SparkSession, events: str, chosen: str) -> None:
    text = f"SELECT e.id FROM {events} e JOIN {chosen} c ON e.key = c.key WHERE c.wanted IN (3, 703)"
    with attach(spark, runtime=False, least_bytes=0):
        query = spark.sql(text)
        assert sorted(row.id for row in query.collect()) == [3, 703]
        assert files_read(query, events) == FILES
        assert "dynamicpruning" not in executed(query)


@pytest.mark.parametrize(
    "where, rows",
    [
        ("n = 5", 80),
        ("n <> 5", 720),
        ("n IN (1, 2, 70)", 160),
        ("n > 1 AND n < 4", 160),
        ("n <= 0", 80),
        ("n = 1 OR n = 3", 160),
        ("n = 1 OR id < 400", 440),
        ("n NOT IN (1, 2, 3)", 560),
        ("n < 2 AND id >= 400", 80),
        ("amount > 90", 80),
        ("amount BETWEEN 10 AND 20", 80),
        ("id < 400", 400),
        ("NOT (id < 400)", 400),
        ("price >= 700", 100),
        ("price < 100.00", 100),
        ("key IS NULL", 0),
        ("key IS NOT NULL", 800),
        ("key LIKE '%00%'", 80),  # of patterns, a tenth of the texts
        ("NOT (n = 5 OR n = 6)", 640),
    ],
)
def test_estimates_are_near_the_truth(spark: SparkSession, events: str, where: str, rows: int) -> None:
    with attach(spark, pruning=False, cbo=True):
        assert estimated(spark.sql(f"SELECT * FROM {events} WHERE {where}")) == pytest.approx(rows, rel=0.15)


def test_a_join_of_two_sides_with_conditions_is_estimated_by_both(spark: SparkSession, events: str) -> None:
    """A tenth of the rows on either side, of which a tenth have a key of the other side."""
    text = f"SELECT * FROM {events} a JOIN {events} b ON a.id = b.id WHERE a.n = 5 AND b.key LIKE '%00%'"
    with attach(spark, pruning=False, cbo=True):
        assert estimated(spark.sql(text)) == pytest.approx(FILES * ROWS / 100, rel=0.3)


def test_estimates_do_not_count_a_condition_twice(spark: SparkSession, events: str) -> None:
    with attach(spark, cbo=True):
        for where, rows in (("id < 100", 100), ("id = 5", 1), ("key = md5('77')", 1)):
            guess = estimated(spark.sql(f"SELECT * FROM {events} WHERE {where}"))
            assert rows <= guess <= 2 * rows + 1


def test_columns_that_spark_cannot_estimate_have_no_statistics(spark: SparkSession, events: str) -> None:
    """Spark 4.1 fails on a range of a local time that has any statistics, such as Iceberg's own."""
    with attach(spark, cbo=True):
        query = spark.sql(f"SELECT count(*) FROM {events} WHERE at > timestamp_ntz '2023-01-01 00:00:00'")
        assert query.collect()[0][0] == FILES * ROWS


@pytest.mark.parametrize(
    "where", ["b", "NOT b", "b = true", "b <> true", "b >= true", "b <=> false", "b IN (true)"]
)
def test_conditions_on_booleans_are_estimated(
    spark: SparkSession, lake: Lake, new_table: NewTable, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    name = new_table("id bigint, b boolean")
    spark.range(0, 40, 1, 2).selectExpr("id", "id % 4 < 2 AS b").writeTo(name).append()
    rookery.analyze(spark, name, lake=lake)
    with attach(spark, cbo=True), caplog.at_level(logging.WARNING):
        for _ in range(2):  # the second reports what the first has failed at
            query = spark.sql(f"SELECT * FROM {name} WHERE {where}")
            assert query.count() == 20
            assert estimated(query) == 20
    assert not caplog.records


def test_doubles_that_are_too_far_apart(
    spark: SparkSession, lake: Lake, new_table: NewTable, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark divides by the distance of the bounds, which is infinite."""
    name = new_table("x double, k int")
    spark.sql(f"INSERT INTO {name} VALUES (-1.7E308D, 1), (1.7E308D, 2), (1.0D, 3), (2.0D, 4), (3.0D, 5)")
    rookery.analyze(spark, name, histogram=["x"], lake=lake)
    with attach(spark, cbo=True), caplog.at_level(logging.WARNING):
        for _ in range(2):
            aside = f"SELECT x, rand() r FROM {name}"  # the condition stays above it
            assert spark.sql(f"SELECT * FROM ({aside}) WHERE x > 1.5D").count() == 3
            assert spark.sql(f"SELECT * FROM {name} WHERE x > 1.5D OR k = 1").count() == 4
            assert spark.sql(f"SELECT * FROM {name} WHERE x <> 1.0D AND x < 2.5D").count() == 2
    assert not caplog.records


@pytest.mark.parametrize("where", ["amount < double('NaN')", "amount >= double('NaN') OR n = 5"])
def test_a_comparison_with_nan_is_estimated(spark: SparkSession, events: str, where: str) -> None:
    """Spark fails to estimate a share of a range up to NaN."""
    expected = spark.sql(f"SELECT * FROM {events} WHERE {where}").count()
    with attach(spark, cbo=True):
        assert spark.sql(f"SELECT * FROM {events} WHERE {where}").count() == expected


def test_many_files_are_skipped_by_their_numbers(
    attached: SparkSession, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rookery.spark.attach.planner._MOST_LISTED", 2)
    for number in (3, 703):
        query = attached.sql(f"SELECT id FROM {events} WHERE key = md5('{number}')")
        assert [row.id for row in query.collect()] == [number]
        assert files_read(query, events) == 1


def test_numbers_are_not_those_of_another_order(
    attached: SparkSession, lake: Lake, new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files with new deletes are in another place once the snapshot of the state has expired."""
    monkeypatch.setattr("rookery.spark.attach.planner._MOST_LISTED", 2)
    monkeypatch.setattr(Cache, "get", lambda self, key, load, size: load())  # as if there was no room
    name = new_table("id bigint, key string", **{"write.distribution-mode": "none"})
    attached.range(0, 60, 1, 6).selectExpr("id", "md5(cast(id AS string)) AS key").writeTo(name).append()
    rookery.analyze(attached, name, lake=lake)
    attached.sql(f"DELETE FROM {name} WHERE id = 5")
    assert [row.id for row in attached.sql(f"SELECT id FROM {name} WHERE key = md5('7')").collect()] == [7]
    attached.sql(
        f"CALL lake.system.expire_snapshots(table => '{name.removeprefix('lake.')}', retain_last => 1, "
        "older_than => timestamp '2100-01-01 00:00:00')"
    )
    attached.sql(f"REFRESH TABLE {name}")
    for number in (7, 15, 25, 35, 45, 55):
        query = attached.sql(f"SELECT id FROM {name} WHERE key = md5('{number}')")
        assert [row.id for row in query.collect()] == [number]
        assert files_read(query, name) <= 2  # the file with new deletes is not described


BROADCAST_ONLY = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"


@pytest.mark.parametrize(
    "text, read, read_by_subquery",
    [
        ("SELECT e.id FROM {events} e LEFT SEMI JOIN {few} c ON e.key = c.key", 2, 2),
        ("SELECT e.id FROM {events} e RIGHT JOIN {few} c ON e.key = c.key", FILES, 2),
        ("SELECT e.id FROM {few} c LEFT JOIN {events} e ON e.key = c.key", FILES, 2),
        ("SELECT e.id FROM {events} e LEFT JOIN {few} c ON e.key = c.key", FILES, FILES),
        ("SELECT e.id FROM {events} e LEFT ANTI JOIN {few} c ON e.key = c.key", FILES, FILES),
        ("SELECT e.id FROM {events} e FULL JOIN {few} c ON e.key = c.key", FILES, FILES),
    ],
)
def test_which_joins_are_pruned_by_keys(
    attached: SparkSession, events: str, few: str, text: str, read: int, read_by_subquery: int
) -> None:
    """Not those that keep rows of the large table without a match.

    Spark broadcasts the side of an outer join whose rows need no match. So the keys of the other one are
    looked up only if that may be by a query of its own.
    """
    text = text.format(events=events, few=f"(SELECT key FROM {few} WHERE wanted > 0)")
    alone = attached.newSession()
    expected = sorted(map(repr, alone.sql(text).collect()))
    for setting, files in (("true", read), ("false", read_by_subquery)):
        attached.conf.set(BROADCAST_ONLY, setting)
        try:
            query = attached.sql(text)
            assert sorted(map(repr, query.collect())) == expected != []
            assert files_read(query, events) == files
        finally:
            attached.conf.unset(BROADCAST_ONLY)


@pytest.mark.parametrize("rows", [50_000, 200_000])
def test_more_keys_than_are_looked_for_prune_by_their_range(
    attached: SparkSession, new_table: NewTable, events: str, rows: int
) -> None:
    """The condition is on another column, of which Spark infers nothing for the keys."""
    name = new_table("id bigint, n bigint")
    attached.sql(f"INSERT INTO {name} SELECT id, id FROM range(600, {600 + rows}, 1, 1)")
    query = attached.sql(
        f"SELECT /*+ BROADCAST(s) */ e.id FROM {events} e JOIN {name} s ON e.id = s.id WHERE s.n >= 650"
    )
    assert len(query.collect()) == 150
    assert files_read(query, events) == 2
    assert "(join keys)" in executed(query)


@pytest.mark.parametrize("kind", ["LEFT SEMI", "LEFT ANTI", "LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_joins_of_every_kind(
    attached: SparkSession, events: str, chosen: str, kind: str, adaptive: str
) -> None:
    text = (
        f"SELECT count(*) FROM {events} e {kind} JOIN (SELECT key FROM {chosen} WHERE wanted IN (3, 703)) c "
        "ON e.key = c.key"
    )
    before = attached.conf.get("spark.sql.adaptive.enabled")
    attached.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        answer = attached.sql(text).collect()
        detach(attached)
        assert attached.sql(text).collect() == answer
    finally:
        attached.conf.set("spark.sql.adaptive.enabled", before)


def test_queries_of_several_threads(attached: SparkSession, events: str) -> None:
    def ask(number: int) -> list[int]:
        return [row.id for row in attached.sql(f"SELECT id FROM {events} WHERE id = {number}").collect()]

    numbers = list(range(0, FILES * ROWS, 50))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, numbers)) == [[number] for number in numbers]


def test_a_planner_that_hangs_is_not_waited_for(
    spark: SparkSession, events: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = Event()
    monkeypatch.setattr("rookery.spark.attach.session.Settings", partial(Settings, timeout_ms=500))
    monkeypatch.setattr(
        "rookery.spark.attach.planner.prune", lambda *given: released.wait() and prune(*given)
    )
    with attach(spark), caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert spark.sql(f"SELECT * FROM {events} WHERE id = 5").count() == 1
        assert "no answer" not in caplog.text
        released.set()
        for number in range(50):  # the first that is asked after the late answer says so
            assert spark.sql(f"SELECT * FROM {events} WHERE id = {number}").count() == 1
            if "no answer within 500 ms" in caplog.text:
                break
    assert "no answer within 500 ms" in caplog.text


@pytest.mark.parametrize("kind", ["scans", "subqueries"])
def test_all_scans_of_a_query_share_the_time_for_answers(
    spark: SparkSession, events: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Each answer alone would come in time."""
    asked = []

    def slow(*given: Any) -> Any:
        asked.append(given)
        Event().wait(0.4)
        return prune(*given)

    monkeypatch.setattr("rookery.spark.attach.session.Settings", partial(Settings, timeout_ms=1000))
    monkeypatch.setattr("rookery.spark.attach.planner.prune", slow)
    branches = [f"SELECT max(id) AS id FROM {events} WHERE id = {number}" for number in range(5, 805, 100)]
    text = f"SELECT {', '.join(f'({each})' for each in branches)}"
    if kind == "scans":
        text = f"SELECT collect_list(id) FROM ({' UNION ALL '.join(branches)})"
    expected = spark.sql(text).collect()
    with attach(spark, runtime=False):
        query = spark.sql(text)
        assert query.collect() == expected
        assert 1 <= len(asked) <= 3
        assert "Rookery(" in executed(query)


def test_another_object_for_the_same_session(spark: SparkSession, events: str) -> None:
    attach(type(spark)(spark.sparkContext, spark._jsparkSession))  # as getActiveSession makes one
    detach(spark)
    query = spark.sql(f"SELECT * FROM {events} WHERE id = 5")
    query.collect()
    assert "Rookery(" not in executed(query)


def test_settings_of_the_optimizer_are_put_back(spark: SparkSession) -> None:
    keys = ("spark.sql.cbo.enabled", "spark.sql.cbo.joinReorder.enabled")
    before = [spark.conf.get(key) for key in keys]
    with attach(spark, cbo=True):
        assert [spark.conf.get(key) for key in keys] == ["true", "true"]
    assert [spark.conf.get(key) for key in keys] == before


def test_attached_twice_is_attached_once(spark: SparkSession, events: str) -> None:
    attach(spark, cbo=True)
    attach(spark, cbo=True)
    detach(spark)
    query = spark.sql(f"SELECT * FROM {events} WHERE id = 5")
    query.collect()
    assert "Rookery(" not in executed(query)
    assert spark.conf.get("spark.sql.cbo.enabled") == "false"
    detach(spark)


def test_sessions_of_one_context_are_independent(attached: SparkSession, events: str) -> None:
    other = attached.newSession()
    query = other.sql(f"SELECT * FROM {events} WHERE id = 5")
    assert len(query.collect()) == 1
    assert "Rookery(" not in executed(query)


def test_a_table_that_was_never_analysed_is_left_to_spark(
    attached: SparkSession, new_table: NewTable, caplog: pytest.LogCaptureFixture
) -> None:
    name = new_table("id bigint")
    attached.sql(f"INSERT INTO {name} VALUES (1), (2)")
    query = attached.sql(f"SELECT * FROM {name} WHERE id = 2")
    assert len(query.collect()) == 1
    assert "Rookery(" not in executed(query)
    assert not caplog.records


def test_new_files_are_read_though_the_state_is_old(
    attached: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    name = new_table("id bigint, key string")
    for start in (0, 100):
        keys = attached.range(start, start + 100).selectExpr("id", "md5(cast(id AS string)) AS key")
        keys.coalesce(1).writeTo(name).append()
        if start == 0:
            rookery.analyze(attached, name, lake=lake)
    query = attached.sql(f"SELECT id FROM {name} WHERE id IN (7, 107)")
    assert sorted(row.id for row in query.collect()) == [7, 107]
    attached.sql(f"DELETE FROM {name} WHERE id = 107")
    query = attached.sql(f"SELECT id FROM {name} WHERE id IN (7, 107)")
    assert [row.id for row in query.collect()] == [7]


def test_earlier_snapshots_and_branches(attached: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("id bigint")
    attached.sql(f"INSERT INTO {name} SELECT id FROM range(10)")
    first = lake.load(name).current_snapshot()
    attached.sql(f"ALTER TABLE {name} CREATE BRANCH side")
    attached.sql(f"INSERT INTO {name}.branch_side VALUES (50)")
    attached.sql(f"INSERT INTO {name} VALUES (100)")
    rookery.analyze(attached, name, lake=lake)
    assert first is not None

    def ids(source: str) -> list[int]:
        return sorted(row.id for row in attached.sql(f"SELECT id FROM {source} WHERE id > 8").collect())

    assert ids(name) == [9, 100]
    assert ids(f"{name} VERSION AS OF {first.snapshot_id}") == [9]
    assert ids(f"{name}.branch_side") == [9, 50]
    assert ids(f"{name} VERSION AS OF 'side'") == [9, 50]


def test_deleted_rows_are_read_where_they_are_asked_for(
    attached: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    name = new_table("id bigint, n int", **{"write.delete.mode": "merge-on-read", "format-version": 2})
    attached.sql(f"INSERT INTO {name} SELECT id, cast(id AS int) FROM range(0, 10, 1, 1)")
    attached.sql(f"DELETE FROM {name} WHERE n = 5")
    rookery.analyze(attached, name, lake=lake)
    assert attached.sql(f"SELECT id FROM {name} WHERE n = 5").count() == 0
    deleted = attached.sql(f"SELECT id, _deleted FROM {name} WHERE n = 5").collect()
    assert [(row.id, row._deleted) for row in deleted] == [(5, True)]
    assert attached.sql(f"SELECT id FROM {name} WHERE n = 5 AND _deleted").count() == 1


def test_row_level_changes_are_right(attached: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("id bigint, n int")
    attached.sql(f"INSERT INTO {name} SELECT id, 0 FROM range(100)")
    rookery.analyze(attached, name, lake=lake)
    attached.sql(f"UPDATE {name} SET n = 1 WHERE id < 10")
    attached.sql(f"DELETE FROM {name} WHERE id >= 90")
    attached.sql(
        f"MERGE INTO {name} t USING (SELECT id + 95 AS id FROM range(10)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = 2 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 3)"
    )
    counts = attached.sql(f"SELECT n, count(*) AS c FROM {name} GROUP BY n ORDER BY n").collect()
    assert [(row.n, row.c) for row in counts] == [(0, 80), (1, 10), (3, 10)]


def test_an_error_of_the_planner_costs_speed_alone(
    spark: SparkSession, events: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with attach(spark) as session, caplog.at_level(logging.WARNING):
        monkeypatch.setattr("rookery.spark.attach.planner.prune", _failing)
        for _ in range(3):
            assert session.sql(f"SELECT * FROM {events} WHERE id = 5").count() == 1
    assert [record.getMessage() for record in caplog.records if "planned without" in record.getMessage()] == [
        "a query is planned without Rookery: no memory left"
    ]


def _failing(*_: object) -> None:
    raise RuntimeError("no memory left")
