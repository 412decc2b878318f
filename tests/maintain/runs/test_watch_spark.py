"""Watchers that really maintain: tables of a real catalog, with Spark, under policies."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rookery.api.lake import Lake
from rookery.api.watch import watch
from rookery.maintain.runs.history import History
from rookery.maintain.runs.watch import Pace, Verdict
from rookery.maintain.steps.step import Outcome
from tests.lakehouse import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLICY = """
defaults:
  compaction:
    min-files: 2
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "rookery.yaml").write_text(POLICY)
    return tmp_path / "rookery.yaml"


@pytest.fixture
def history(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'history.db'}"


def filled(spark: SparkSession, name: str) -> str:
    for number in range(3):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, 'c{number}')")
    return name


def test_a_table_is_brought_within_its_policy(
    spark: SparkSession, lake: Lake, own_table: NewTable, policy: Path, history: str
) -> None:
    name = filled(spark, own_table("id bigint, city string"))
    rows = sorted(map(tuple, spark.table(name).collect()))
    (result,) = watch(lake, [name], once=True, policy=policy, history=history).tables
    assert (result.verdict, result.breaches, result.error) == (Verdict.DONE, (), None)
    assert result.cause == "statistics were never collected; 3 small files"
    assert sorted(map(tuple, spark.table(name).collect())) == rows
    (run,) = History(history).runs()
    assert (run.table, run.outcome) == (name, Outcome.DONE)
    done = {step.step: step for step in run.steps if step.outcome is Outcome.DONE}
    assert {"rewrite data files", "refresh statistics"} <= set(done)
    assert (done["rewrite data files"].before["files"], done["rewrite data files"].after["files"]) == (3, 1)
    (again,) = watch(lake, [name], once=True, policy=policy, history=history).tables
    assert again.verdict is Verdict.WITHIN
    assert len(History(history).runs()) == 1


def test_a_schedule_refreshes_what_health_would_let_pass(
    spark: SparkSession, lake: Lake, own_table: NewTable, tmp_path: Path, history: str
) -> None:
    name = filled(spark, own_table("id bigint, city string"))
    lenient = tmp_path / "lenient.yaml"
    lenient.write_text("defaults:\n  compaction: {strategy: none}\n  statistics: {health: 0.1}\n")
    (first,) = watch(lake, [name], once=True, policy=lenient, history=history).tables
    spark.sql(f"INSERT INTO {name} VALUES (99, 'z')")
    (left,) = watch(lake, [name], once=True, policy=lenient, history=history).tables
    assert (first.verdict, left.verdict) == (Verdict.DONE, Verdict.WITHIN)
    lenient.write_text(lenient.read_text().replace("health: 0.1", "health: 0.1, every: 1s"))
    (due,) = watch(lake, [name], once=True, policy=lenient, history=f"{history}2").tables
    assert (due.verdict, due.cause) == (Verdict.DONE, "every 1s")
    (run,) = History(f"{history}2").runs()
    assert [step.step for step in run.steps if step.outcome is Outcome.DONE][:1] == ["refresh statistics"]
    (current,) = watch(lake, [name], once=True, policy=lenient, history=f"{history}2").tables
    assert current.verdict is Verdict.WITHIN


def test_two_watchers_maintain_each_table_once(
    spark: SparkSession, lake: Lake, own_table: NewTable, policy: Path, history: str
) -> None:
    names = [filled(spark, own_table("id bigint, city string")) for _ in range(3)]
    pattern = names[0].rpartition(".")[0] + ".*"
    found: list[Verdict] = []

    def go() -> None:
        report = watch(lake, [pattern], once=True, policy=policy, history=history, pace=Pace(jobs=2))
        found.extend(table.verdict for table in report.tables)

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(run.table for run in History(history).runs()) == sorted(names)
    assert found.count(Verdict.DONE) == 3
    assert set(found) <= {Verdict.DONE, Verdict.TAKEN, Verdict.WITHIN}


def test_a_session_that_died_is_started_again(rookery_home: Path, own_table: NewTable) -> None:
    """In a process of its own, since the tests share theirs."""
    name = own_table("id bigint")
    done = subprocess.run(
        [sys.executable, "-m", "tests.maintain.runs.restarted", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["True", "False", "True", "0"]), done.stderr[-2000:]
