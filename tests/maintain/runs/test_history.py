"""Runs are recorded whole, found again, and those of the dead are told apart."""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import update

from rookery.api.history import history as look_up
from rookery.maintain.runs.database import DatabaseError, history_url, open_engine
from rookery.maintain.runs.history import RUNS, History, tally
from rookery.maintain.runs.processes import is_gone, machine
from rookery.maintain.steps.step import Outcome, StepReport
from rookery.model import UsageError

START = float(int(time.time()))
REWRITE = StepReport(
    "rewrite-data-files",
    Outcome.DONE,
    "12 small files",
    files=12,
    bytes=4096,
    before={"files": 12, "bytes": 4096},
    after={"files": 1, "bytes": 4000},
    seconds=1.5,
    attempts=2,
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'history.db'}"


@pytest.fixture
def history(url: str) -> History:
    ticks = itertools.count(START, 10.0)
    return History(url, clock=lambda: next(ticks))


def test_what_goes_in_comes_out(history: History) -> None:
    run = history.begin("lake.db.orders", "health 0.61 is below 0.8")
    failed = StepReport(
        "refresh-statistics", Outcome.FAILED, "stale", error="no space left", hint="make room"
    )
    history.step(run, REWRITE)
    history.step(run, failed)
    history.end(run, Outcome.FAILED)
    (record,) = history.runs()
    assert (record.id, record.table, record.cause) == (run, "lake.db.orders", "health 0.61 is below 0.8")
    assert (record.outcome, record.host, record.pid) == (Outcome.FAILED, machine(), os.getpid())
    assert record.started.timestamp() == START
    assert record.seconds == 30.0
    assert record.steps == (REWRITE, failed)


def test_newest_first_up_to_a_limit_by_pattern(history: History) -> None:
    for number in range(6):
        history.end(history.begin(f"lake.db{number % 2}.orders", str(number)), Outcome.DONE)
    assert [record.cause for record in history.runs()] == ["5", "4", "3", "2", "1", "0"]
    assert [record.cause for record in history.runs("db1.*", 2)] == ["5", "3"]
    assert [record.cause for record in history.runs("lake.db0.orders")] == ["4", "2", "0"]
    assert history.runs("orders") == []
    assert history.runs(limit=0) == []


def test_limit_counts_over_more_runs_than_are_fetched_at_a_time(history: History) -> None:
    for number in range(1100):
        history.begin("lake.db.rare" if number % 100 == 0 else "lake.db.often", str(number))
    assert [record.cause for record in history.runs("db.rare", 3)] == ["1000", "900", "800"]
    assert len(history.runs()) == 1100


def test_when_a_step_was_last_done(history: History) -> None:
    assert history.last_done("lake.db.orders", REWRITE.step) is None
    run = history.begin("lake.db.orders", "")  # at the start
    history.step(run, REWRITE)  # ten seconds on
    history.step(run, StepReport(REWRITE.step, Outcome.FAILED, ""))
    history.step(run, StepReport(REWRITE.step, Outcome.NOT_NEEDED, ""))
    assert history.last_done("lake.db.orders", REWRITE.step) == START + 10
    assert history.last_done("lake.db.other", REWRITE.step) is None
    assert history.last_done("lake.db.orders", "expire-snapshots") is None


def test_numbers_of_numpy_and_no_numbers(history: History) -> None:
    odd = StepReport(
        "s",
        Outcome.DONE,
        "",
        np.int64(3),
        np.int64(4),
        {"a": np.int64(1), "b": np.float64(0.5)},
        {"c": np.inf},
    )
    history.step(history.begin("t", ""), odd)
    (step,) = history.runs()[0].steps
    assert (step.files, step.bytes, step.before, step.after) == (3, 4, {"a": 1, "b": 0.5}, {"c": None})


def test_errors_are_kept_in_one_line_without_secrets(history: History, tmp_path: Path) -> None:
    said = "refused\n  postgresql://me:hunter2@host/db\n https://host/x?sig=s1gned token=t0ken"
    history.step(history.begin("t", said), StepReport("s", Outcome.FAILED, said, error=said, hint=said))
    history.close()
    (record,) = history.runs()
    (step,) = record.steps
    for text in (record.cause, step.why, step.error, step.hint):
        assert text == "refused postgresql://host/db https://host/x token=***"
    for file in tmp_path.iterdir():
        assert not [word for word in (b"hunter2", b"s1gned", b"t0ken") if word in file.read_bytes()]


def test_counts_in_the_database_are_those_of_the_records(history: History) -> None:
    for table, outcome in [("a", Outcome.DONE), ("a", Outcome.DONE), ("b", Outcome.FAILED)]:
        run = history.begin(table, "")
        history.step(run, REWRITE)
        history.step(run, StepReport("expire-snapshots", Outcome.NOT_NEEDED, "", seconds=9))
        history.end(run, outcome)
    history.begin("a", "still running")
    counted = history.tally()
    assert counted == tally(history.runs())
    assert counted.runs == {("a", "done"): 2, ("b", "failed"): 1}
    assert counted.seconds == {("a", REWRITE.step): 3.0, ("b", REWRITE.step): 1.5}
    assert counted.bytes == {("a", REWRITE.step): 8192, ("b", REWRITE.step): 4096}


class TestInterrupted:
    def begin_and_die(self, url: str) -> int:
        """Begin a run in a process that ends without a word, and return its number."""
        code = "import os, sys; from rookery.maintain.runs.history import History\n"
        code += "History(sys.argv[1]).begin('lake.db.orders', 'x'); os.kill(os.getpid(), 9)"
        dead = subprocess.run([sys.executable, "-c", code, url], check=False)
        assert dead.returncode == -9
        return History(url).runs()[0].id

    def test_a_dead_process(self, url: str) -> None:
        history = History(url)
        mine = history.begin("lake.db.mine", "")
        dead = self.begin_and_die(url)
        assert {run.id: run.outcome for run in history.runs()} == {mine: None, dead: Outcome.INTERRUPTED}
        assert history.tally().runs == {}  # shown, not written
        assert (history.close_interrupted(), history.close_interrupted()) == (1, 0)
        assert history.tally().runs == {("lake.db.orders", "interrupted"): 1}
        assert history.runs()[-1].outcome is None

    def test_another_machine_is_not_judged_by_process(self, url: str) -> None:
        history = History(url)
        dead = self.begin_and_die(url)
        with history.engine.begin() as connection:
            connection.execute(update(RUNS).values(host="elsewhere#1"))
        assert history.runs()[0].outcome is None
        assert history.close_interrupted() == 0
        assert history.close_interrupted("lake.db.other") == 0
        assert history.close_interrupted("lake.db.orders") == 1  # said by whoever holds the lease
        assert (history.runs()[0].id, history.runs()[0].outcome) == (dead, Outcome.INTERRUPTED)

    def test_a_number_given_anew(self) -> None:
        assert not is_gone(machine(), os.getpid())
        assert is_gone(machine(), os.getpid(), since=1.0)  # this process did not run in 1970
        assert not is_gone("elsewhere#1", os.getpid(), since=1.0)


class TestDatabase:
    def test_address(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ROOKERY_HOME", str(tmp_path / "home"))
        monkeypatch.delenv("ROOKERY_HISTORY", raising=False)
        assert history_url() == f"sqlite:///{tmp_path}/home/history.db"
        monkeypatch.setenv("ROOKERY_HISTORY", "sqlite:////var/h.db")
        assert history_url() == "sqlite:////var/h.db"
        assert history_url("sqlite:///x") == "sqlite:///x"

    def test_folder_is_made_and_readers_do_not_wait(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "folder" / "history.db"
        history = History(f"sqlite:///{path}")
        with history.engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000

    def test_a_catalogs_database_keeps_its_mode(self, tmp_path: Path) -> None:
        engine = open_engine(f"sqlite:///{tmp_path / 'c.db'}?timeout=7", own=False)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 7_000

    @pytest.mark.parametrize(
        "url", ["me:hunter2 at host", "://hunter2", "sqlite", "postgresql://:hunter2@[::1"]
    )
    def test_not_an_address(self, url: str) -> None:
        with pytest.raises(UsageError) as caught:
            open_engine(url)
        assert "hunter2" not in str(caught.value)
        assert caught.value.hint

    def test_no_driver(self) -> None:
        with pytest.raises(UsageError) as caught:
            open_engine("nosuchdb://me:hunter2@host/db")
        assert "hunter2" not in str(caught.value)
        assert "nosuchdb" in str(caught.value)

    def test_not_a_database(self, tmp_path: Path) -> None:
        (tmp_path / "h.db").write_text("no database, but a letter to a friend of some length" * 50)
        with pytest.raises(DatabaseError, match="not a database") as caught:
            History(f"sqlite:///{tmp_path / 'h.db'}")
        assert "\n" not in str(caught.value)
        assert caught.value.hint

    def test_no_folder_to_look_in(self, tmp_path: Path) -> None:
        assert look_up(url=f"sqlite:///{tmp_path / 'history.db'}").runs == ()
        with pytest.raises(UsageError, match="no folder"):
            look_up(url=f"sqlite:///{tmp_path / 'nowhere' / 'history.db'}")

    def test_a_folder_in_its_place(self, tmp_path: Path) -> None:
        with pytest.raises(DatabaseError, match="unable to open"):
            History(f"sqlite:///{tmp_path}")

    def test_read_only(self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        History(url).begin("t", "")
        path = url.removeprefix("sqlite:///")
        history = History(f"sqlite:///file:{path}?mode=ro&uri=true")
        assert [run.table for run in history.runs()] == ["t"]
        with pytest.raises(DatabaseError, match="readonly") as caught:
            history.begin("t", "")
        assert caught.value.hint
        assert {file.name.partition("-")[0] for file in tmp_path.iterdir()} == {"history.db"}

    def test_vanished(self, url: str) -> None:
        history = History(url)
        with history.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE rookery_runs")
        with pytest.raises(DatabaseError, match="no such table"):
            history.begin("t", "")

    def test_made_by_many_at_once(self, url: str) -> None:
        module = "rookery.maintain.runs.history"
        code = f"import sys; from {module} import History; History(sys.argv[1]).begin('t', '')"
        makers = [subprocess.Popen([sys.executable, "-c", code, url]) for _ in range(4)]
        assert [maker.wait() for maker in makers] == [0] * 4
        assert len(History(url).runs()) == 4

    def test_steps_are_plain_json(self, history: History, tmp_path: Path) -> None:
        history.step(history.begin("t", ""), REWRITE)
        history.close()
        with sqlite3.connect(tmp_path / "history.db") as connection:
            ((before,),) = connection.execute("SELECT before FROM rookery_steps").fetchall()
        assert json.loads(before) == {"files": 12, "bytes": 4096}
