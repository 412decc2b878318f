"""Eight writers and two analyses at once: no commit is lost, no error is seen, all is right in the end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

import rookery
from rookery.api.lake import Lake
from rookery.model import CatalogError
from rookery.tables.iceberg import commit, jvm
from tests.lakehouse import NewTable
from tests.safety.watch import assert_right, assert_whole, folder, make_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPENDERS = 8
ANALYSES = 2
APPENDS = 3
ROWS = 50


def test_appenders_and_analyses(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    # So many writers on one table need more than the four retries that Iceberg has by default.
    retries = {
        "commit.retry.num-retries": 50,
        "commit.retry.min-wait-ms": 10,
        "commit.retry.max-wait-ms": 500,
    }
    name = new_table("id bigint, word string", **retries)
    make_rows(spark, name, 0, ROWS)
    start, written = Barrier(APPENDERS + ANALYSES), Event()

    def append(number: int) -> None:
        start.wait()
        for turn in range(APPENDS):
            first = ROWS * (1 + number * APPENDS + turn)
            make_rows(spark, name, first, first + ROWS, modulo=number + 3)

    def analyse() -> int:
        start.wait()
        runs = 0
        while not written.is_set() or runs < 2:
            report = rookery.analyze(spark, name, lake=lake)
            runs += 1
            assert all(column.ndv is not None for column in report.columns)
            rookery.table(name, lake).stats()
        return runs

    with ThreadPoolExecutor(APPENDERS + ANALYSES) as pool:
        appenders = [pool.submit(append, number) for number in range(APPENDERS)]
        analyses = [pool.submit(analyse) for _ in range(ANALYSES)]
        try:
            for future in appenders:
                future.result(timeout=240)
        finally:
            written.set()
        assert min(future.result(timeout=240) for future in analyses) >= 2

    commits = 1 + APPENDERS * APPENDS
    table = lake.load(name)
    assert len(table.metadata.snapshots) == commits
    assert spark.table(name).count() == commits * ROWS
    assert_whole(lake, name)
    rookery.analyze(spark, name, lake=lake)
    assert_right(spark, lake, name)
    assert rookery.analyze(spark, name, lake=lake).committed is False


def test_two_first_analyses_at_once(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Of the same snapshot, from nothing: either may win, and the other's files do no harm."""
    name = new_table("id bigint, word string")
    make_rows(spark, name, 0, ROWS)
    together = Barrier(4)

    def analyse() -> None:
        together.wait()
        rookery.analyze(spark, name, lake=lake)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(analyse) for _ in range(4)]:
            future.result(timeout=120)
    assert_right(spark, lake, name)
    loaded, store = rookery.table(name, lake).load()
    store.collect_garbage(str(loaded.table.metadata.table_uuid), loaded.snapshots.keys(), grace=-1)
    assert sorted(path.name.split("-")[0] for path in folder(lake, name).iterdir()) == ["segment", "state"]
    assert_right(spark, lake, name)


class Contested:
    """A Java table of which the first commits of statistics meet with a conflict."""

    def __init__(self, spark: SparkSession, table: Any, conflicts: int) -> None:
        self._spark, self._table, self.conflicts = spark, table, conflicts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def updateStatistics(self) -> Contested:
        self._update = self._table.updateStatistics()
        return self

    def setStatistics(self, file: Any) -> Contested:
        self._update = self._update.setStatistics(file)
        return self

    def commit(self) -> None:
        if self.conflicts > 0:
            self.conflicts -= 1
            gateway: Any = self._spark.sparkContext._gateway
            nothing = gateway.new_array(gateway.jvm.java.lang.Object, 0)
            thrown = gateway.jvm.org.apache.iceberg.exceptions.CommitFailedException("too late", nothing)
            raise Py4JJavaError("commit", thrown)
        self._update.commit()


@pytest.mark.parametrize("conflicts, registered", [(3, True), (5, False)])
def test_a_conflict_is_tried_again(
    spark: SparkSession,
    lake: Lake,
    new_table: NewTable,
    monkeypatch: pytest.MonkeyPatch,
    conflicts: int,
    registered: bool,
) -> None:
    """Again and again, but not for ever; and what was collected is not collected again."""
    name = new_table("id bigint, word string")
    make_rows(spark, name, 0, ROWS)
    before = lake.load(name).metadata
    contested = Contested(spark, jvm.load_java_table(spark, lake.table_name(name)), conflicts)
    with monkeypatch.context() as patch:
        patch.setattr(jvm, "load_java_table", lambda *_: contested)
        patch.setattr(commit, "ATTEMPTS", 5)
        patch.setattr(commit, "_FIRST_PAUSE", 0.001)
        patch.setattr(commit, "_LONGEST_PAUSE", 0.001)
        if registered:
            assert rookery.analyze(spark, name, lake=lake).committed
        else:
            with pytest.raises(CatalogError, match="CommitFailedException: too late") as caught:
                rookery.analyze(spark, name, lake=lake)
            assert "run analyze again" in (caught.value.hint or "")
            assert lake.load(name).metadata == before
    assert contested.conflicts == 0
    report = rookery.analyze(spark, name, lake=lake)
    assert (report.files_read, report.committed) == (0, not registered)
    assert_right(spark, lake, name)
