"""Others at work on the same tables during a run: writers, watchers, and whoever drops or alters a table."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rookery.api.lake import Lake
from rookery.cli.app import run as rookery
from rookery.maintain.runs.history import History
from rookery.maintain.steps.step import Outcome
from tests.lakehouse import NewTable
from tests.maintain.tending import by_step, missing_files, rows_hash
from tests.safety.maintain_needy import POLICY, kept_up, rows
from tests.safety.maintain_points import in_step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
COLUMNS = "id bigint, kind int, word string"
COMMITS, A_DELETE = 24, 8
MOST_ATTEMPTS = 50


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "rookery.yaml").write_text(POLICY)
    return tmp_path / "rookery.yaml"


@pytest.fixture
def history(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'history.db'}"


def small_files(spark: SparkSession, lake: Lake, name: str, count: int = 6) -> str:
    """Append so many, of ten rows each."""
    for number in range(count):
        lake.load(name).append(rows(number * 10, 10, number % 2))
    spark.catalog.refreshTable(name)
    return name


class Writer(threading.Thread):
    """Commits so many times: appends, and now and then a delete; again when others were quicker."""

    def __init__(self, spark: SparkSession, lake: Lake, table: str) -> None:
        super().__init__()
        self._spark, self._lake, self._table = spark, lake, table
        self.begun = threading.Event()
        self.added: list[pa.Table] = []
        self.deleted: list[int] = []
        self.failed: Exception | None = None

    def run(self) -> None:
        try:
            for number in range(COMMITS):
                self._again(lambda number=number: self._write(number))
                self.begun.set()
        except Exception as error:  # noqa: BLE001  # the test says it
            self.failed = error
        finally:
            self.begun.set()

    def _again(self, write: Callable[[], None]) -> None:
        for attempt in range(1, MOST_ATTEMPTS + 1):
            try:
                return write()
            except Exception:
                if attempt == MOST_ATTEMPTS:
                    raise
        raise AssertionError

    def _write(self, number: int) -> None:
        if number % A_DELETE == A_DELETE - 1:
            self._spark.sql(f"DELETE FROM {self._table} WHERE id = {number}")
            self.deleted.append(number)
        else:
            more = rows(1000 + number * 10, 10, number % 2)
            self._lake.load(self._table).append(more)
            self.added.append(more)


def test_a_writer_all_the_while(
    spark: SparkSession, lake: Lake, new_table: NewTable, policy: Path, history: str
) -> None:
    name = small_files(spark, lake, new_table(COLUMNS, partitioned="kind"))
    before = lake.load(name).scan().to_arrow()
    writer = Writer(spark, lake, name)

    def begin() -> None:
        writer.start()
        writer.begun.wait()

    with in_step("rewrite data files", begin):
        (run,) = kept_up(lake, [name], policy, history).tables
    writer.join()
    assert writer.failed is None
    steps = by_step(run)
    rewrite = steps["rewrite data files"]
    assert rewrite.outcome is Outcome.DONE, rewrite
    assert "others have committed at the same time" in rewrite.why or rewrite.attempts > 1
    assert run.outcome is Outcome.DONE, [step for step in run.steps if step.error]

    spark.catalog.refreshTable(name)
    expected = set(pa.concat_tables([before, *writer.added])["id"].to_pylist()) - set(writer.deleted)
    found = sorted(row.id for row in spark.table(name).collect())
    assert found == sorted(expected)
    assert missing_files(lake, name) == []
    settled = kept_up(lake, [name], policy, history).tables[0]
    assert settled.outcome in (Outcome.DONE, Outcome.NOT_NEEDED)
    assert sorted(row.id for row in spark.table(name).collect()) == sorted(expected)


def test_two_watchers(
    spark: SparkSession,
    lake: Lake,
    new_table: NewTable,
    rookery_home: Path,
    tmp_path: Path,
    history: str,
) -> None:
    """Two processes, each with a Spark of its own."""
    patient = tmp_path / "patient.yaml"
    patient.write_text("defaults:\n  compaction: {min-files: 2}\n")
    names = [small_files(spark, lake, new_table(COLUMNS)) for _ in range(3)]
    rows_before = {name: rows_hash(spark, name) for name in names}
    pattern = names[0].rpartition(".")[0] + ".*"
    words = ["watch", pattern, "--once", "--policy", str(patient), "--history", history, "--output", "json"]
    watchers = [
        subprocess.Popen(
            [sys.executable, "-m", "rookery", *words],
            env={**os.environ, "ROOKERY_HOME": str(rookery_home)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # its JVM is of the group, and ends with it
        )
        for _ in range(2)
    ]
    try:
        said = [watcher.communicate(timeout=300) for watcher in watchers]
    finally:
        for watcher in watchers:
            with suppress(ProcessLookupError):
                os.killpg(watcher.pid, signal.SIGKILL)
    assert [watcher.returncode for watcher in watchers] == [0, 0], said
    verdicts: dict[str, list[str]] = {name: [] for name in names}
    for out, _ in said:
        for table in json.loads(out)["tables"]:
            verdicts[table["table"]].append(table["verdict"])
    for name in names:
        assert verdicts[name].count("maintained") == 1, verdicts
        assert set(verdicts[name]) <= {"maintained", "taken", "within policy"}
    runs = History(history).runs()
    assert sorted(run.table for run in runs) == sorted(names)
    assert {run.outcome for run in runs} == {Outcome.DONE}
    for name in names:
        spark.catalog.refreshTable(name)
        assert rows_hash(spark, name) == rows_before[name]


def test_a_table_dropped_meanwhile(
    spark: SparkSession,
    lake: Lake,
    new_table: NewTable,
    policy: Path,
    history: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    doomed, other = (small_files(spark, lake, new_table(COLUMNS, name)) for name in ("a", "b"))
    before = rows_hash(spark, other)
    pattern = doomed.rpartition(".")[0] + ".*"
    with in_step("rewrite data files", lambda: lake.catalog.drop_table(doomed.partition(".")[2])):
        code = rookery(["maintain", pattern, "--policy", str(policy), "--history", history])
    out, _ = capfd.readouterr()
    assert code == 1
    assert f"{doomed}: failed" in out
    assert f"no table {doomed}" in out
    assert f"{other}: done" in out
    outcomes = {run.table: run.outcome for run in History(history).runs()}
    assert outcomes == {doomed: Outcome.FAILED, other: Outcome.DONE}
    assert rows_hash(spark, other) == before


@pytest.mark.parametrize(
    ("step", "change"),
    [
        ("rewrite data files", "SET TBLPROPERTIES ('write.target-file-size-bytes'='1000')"),
        ("rewrite data files", "RENAME COLUMN word TO term"),
        ("rewrite data files", "DROP COLUMN word"),
        ("refresh statistics", "DROP COLUMN word"),
        ("refresh statistics", "ALTER COLUMN kind TYPE bigint"),
    ],
    ids=["property", "rename", "drop", "drop late", "widen late"],
)
def test_a_table_altered_meanwhile(
    spark: SparkSession,
    lake: Lake,
    new_table: NewTable,
    policy: Path,
    history: str,
    step: str,
    change: str,
) -> None:
    """Rows are the same through it all, by ids that do not change; nothing is taken for a loss."""
    name = small_files(spark, lake, new_table(COLUMNS), 3)
    with in_step(step, lambda: spark.sql(f"ALTER TABLE {name} {change}")):
        (run,) = kept_up(lake, [name], policy, history).tables
    assert run.outcome is Outcome.DONE, [step for step in run.steps if step.error]
    assert by_step(run)[step].attempts == (2 if step == "refresh statistics" and "DROP" in change else 1)
    (again,) = kept_up(lake, [name], policy, history).tables
    assert again.outcome in (Outcome.DONE, Outcome.NOT_NEEDED), again
    spark.catalog.refreshTable(name)
    assert sorted(row.id for row in spark.table(name).collect()) == list(range(30))
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:  # what is registered names no column that is gone, upon which it would fail
        spark.sql(f"EXPLAIN COST SELECT count(*) FROM {name} WHERE id > 3").collect()
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
    assert missing_files(lake, name) == []


def test_a_table_replaced_by_another_of_its_name(
    spark: SparkSession, lake: Lake, new_table: NewTable, policy: Path, history: str
) -> None:
    """What was planned for the one is not done to the other."""
    name = small_files(spark, lake, new_table(COLUMNS), 3)

    def replace() -> None:
        spark.sql(f"DROP TABLE {name}")
        spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg")
        spark.sql(f"INSERT INTO {name} VALUES (1, 1, 'only')")

    with in_step("rewrite data files", replace):
        kept_up(lake, [name], policy, history)
    spark.catalog.refreshTable(name)
    assert [tuple(row) for row in spark.table(name).collect()] == [(1, 1, "only")]
    assert missing_files(lake, name) == []
