"""A watcher on a real catalog, without Spark: what is found, looked at, said and returned."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.api.lake import Lake, connect
from rookery.api.maintenance import leases_of
from rookery.api.watch import LakeSite, WatchReport, watch
from rookery.cli.app import run
from rookery.maintain.runs.history import History
from rookery.maintain.runs.watch import Pace, TableResult, Verdict
from rookery.maintain.steps.step import Outcome, StepReport
from rookery.model import CatalogError, MachineError, MissingTableError, UsageError
from tests.isolation import isolate
from tests.maintain.runs.small_site import ROWS, small_lake

QUIET = "defaults:\n  quiet-hours: ['00:00-24:00']\n"  # so that nothing is done, and no Spark is started


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = isolate(tmp_path, monkeypatch)
    monkeypatch.setenv("ROOKERY_HOME", str(home / "rookery"))
    return home


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return small_lake(tmp_path / "lake", "orders", "items")


def never() -> None:
    raise AssertionError("Spark is not wanted here")


def site_of(lake: Lake, *patterns: str, **more: object) -> LakeSite:
    return LakeSite(lake, patterns, spark=never, **more)  # type: ignore[arg-type]


class TestSite:
    def test_finds_each_table_once(self, lake: Lake) -> None:
        assert list(map(str, site_of(lake).find())) == ["lake.db.items", "lake.db.orders"]
        found = site_of(lake, "db.orders", "*.o*", "db.none*").find()
        assert list(map(str, found)) == ["lake.db.orders"]

    @pytest.mark.parametrize("pattern", ["db.none*", "db.none", "nowhere.orders"])
    def test_refuses_what_means_nothing(self, lake: Lake, pattern: str) -> None:
        site_of(lake, "db.*", "db.orders").check()
        with pytest.raises(UsageError):
            site_of(lake, "db.*", pattern).check()

    def test_refuses_another_catalog(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__URI", "sqlite://")
        with pytest.raises(UsageError, match="belongs to another catalog") as caught:
            site_of(lake, "other.db.orders").check()
        assert "--catalog other" in str(caught.value.hint)

    def test_looks(self, lake: Lake) -> None:
        (_, orders) = site_of(lake).find()
        seen = site_of(lake).look(orders)
        assert (seen.status.table, seen.status.breaches) == (
            "lake.db.orders",
            ("statistics were never collected",),
        )
        assert seen.key == str(lake.load("db.orders").metadata.table_uuid)

    def test_gone(self, lake: Lake) -> None:
        site = site_of(lake)
        (items, _) = site.find()
        lake.catalog.drop_table("db.items")
        with pytest.raises(MissingTableError, match=r"no table lake\.db\.items"):
            site.look(items)

    def test_unreachable(self, tmp_path: Path) -> None:
        site = site_of(connect(uri="http://127.0.0.1:1/", type="rest", token="s3cret"))
        assert not site.answers()
        with pytest.raises(CatalogError) as caught:
            site.find()
        assert "s3cret" not in str(caught.value)

    def test_a_database_that_breaks_later(self, lake: Lake, tmp_path: Path) -> None:
        """PyIceberg raises what SQLAlchemy raises; here it is the catalog that does not answer."""
        site = site_of(lake)
        assert site.answers()
        with sqlite3.connect(tmp_path / "lake" / "catalog.db") as connection:
            connection.execute("ALTER TABLE iceberg_tables RENAME TO away")
            connection.execute("ALTER TABLE iceberg_namespace_properties RENAME TO away_too")
        assert not site.answers()
        with pytest.raises(CatalogError, match="does not answer"):
            site.find()


class TestPolicies:
    def test_taken_up_when_they_change_and_kept_when_they_turn_bad(
        self, lake: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = tmp_path / "rookery.yaml"
        file.write_text("defaults:\n  statistics:\n    health: 0.5\n")
        site = site_of(lake, policy=file)
        (name, _) = site.find()

        def health() -> float:
            site.prepare()
            return site.look(name).policy.statistics.health

        assert health() == 0.5
        file.write_text("defaults:\n  statistics:\n    health: 0.7\n")
        assert health() == 0.7
        file.write_text("defaults:\n  statistics:\n    healht: 0.9\n")
        assert (health(), health()) == (0.7, 0.7)
        assert len([line for line in caplog.messages if "healht" in line]) == 1
        file.unlink()
        assert health() == 0.7
        file.write_text("")
        assert health() == 0.8

    def test_bad_from_the_start(self, lake: Lake, tmp_path: Path) -> None:
        (tmp_path / "bad.yaml").write_text("rules: 3")
        with pytest.raises(UsageError, match=r"bad\.yaml"):
            watch(lake, once=True, policy=tmp_path / "bad.yaml")


class TestWatch:
    def quiet(self, tmp_path: Path) -> Path:
        (tmp_path / "quiet.yaml").write_text(QUIET)
        return tmp_path / "quiet.yaml"

    def test_once(self, lake: Lake, tmp_path: Path) -> None:
        report = watch(lake, once=True, policy=self.quiet(tmp_path))
        assert [(table.table, table.verdict) for table in report.tables] == [
            ("lake.db.items", Verdict.QUIET),
            ("lake.db.orders", Verdict.QUIET),
        ]
        assert not report.has_findings
        assert report.sheets()[0].title == "2 tables: 2 quiet hours"

    def test_unreachable_is_a_finding_and_no_usage_error(self) -> None:
        lake = connect(uri="http://127.0.0.1:1/", type="rest")
        report = watch(lake, once=True, pace=Pace(catalog_timeout=0))
        assert report.has_findings
        assert report.error is not None
        assert "cannot be opened" in report.error

    def test_leases_are_in_the_catalog(self, lake: Lake, tmp_path: Path) -> None:
        history = History(f"sqlite:///{tmp_path / 'h.db'}")
        with leases_of(lake, history).hold("key"), sqlite3.connect(tmp_path / "lake" / "catalog.db") as there:
            assert there.execute("SELECT table_key FROM rookery_leases").fetchall() == [("key",)]
        rest = connect(uri="http://127.0.0.1:1/", type="rest")
        assert leases_of(rest, history).engine is history.engine

    @pytest.mark.parametrize(
        ("verdict", "finding"),
        [(verdict, verdict in (Verdict.FAILED, Verdict.BELOW)) for verdict in Verdict],
    )
    def test_findings(self, verdict: Verdict, finding: bool) -> None:
        assert WatchReport((TableResult("t", verdict),)).has_findings is finding


class TestCommands:
    @pytest.fixture
    def rookery(self, lake: Lake, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
        def call(*words: str) -> tuple[int, str, str]:
            code = run([*words, "--uri", lake.properties["uri"], "--warehouse", lake.properties["warehouse"]])
            return code, *capfd.readouterr()

        return call

    def test_watch_once(self, rookery: Callable[..., tuple[int, str, str]], home: Path) -> None:
        (home / "rookery.yaml").write_text(QUIET)
        code, out, _ = rookery("watch", "db.*", "--once", "--output", "json")
        assert code == 0
        assert [table["verdict"] for table in json.loads(out)["tables"]] == ["quiet hours", "quiet hours"]
        code, out, err = rookery("watch", "db.*", "--once", "--log-format", "json")
        assert (code, out.splitlines()[0]) == (0, "2 tables: 2 quiet hours")
        assert [json.loads(line) for line in err.splitlines()] == []

    def test_log_lines_are_json(self, rookery: Callable[..., tuple[int, str, str]], lake: Lake) -> None:
        lake.catalog.drop_table("db.items")
        lake.catalog.drop_table("db.orders")
        code, _, err = rookery("watch", "--once", "--log-format", "json")
        assert code == 0
        assert [json.loads(line)["message"] for line in err.splitlines()] == ["lake has no tables"]

    @pytest.mark.parametrize(
        "words",
        [
            ["--every", "0s"],
            ["--every", "often"],
            ["--jobs", "0"],
            ["--catalog-timeout", "-1s"],
            ["--log-format", "xml"],
            ["--metrics", "nowhere"],
            ["--webhook", "s3cret"],
            ["--history", "s3cret"],
            ["db.none*"],
            ["db.none"],
            ["--policy", "none.yaml"],
        ],
    )
    def test_bad_input(self, rookery: Callable[..., tuple[int, str, str]], words: list[str]) -> None:
        code, out, err = rookery("watch", "--once", *words)
        assert (code, out) == (2, "")
        assert [line.partition(": ")[0] for line in err.splitlines()] == ["error", "hint"]
        assert "s3cret" not in err

    def test_history(self, rookery: Callable[..., tuple[int, str, str]], home: Path) -> None:
        assert rookery("history")[:2] == (
            0,
            "no runs are recorded\n`rookery maintain` and `rookery watch` record them\n",
        )
        assert not (home / "rookery" / "history.db").exists()
        history = History()
        kept = history.begin("lake.db.orders", "health 0.61 is below 0.8")
        numbers = {"files": 12.0, "bytes": 4096.0}, {"files": 1.0, "bytes": 4000.0}
        history.step(kept, StepReport("expire snapshots", Outcome.NOT_NEEDED, "none is old"))
        history.step(
            kept, StepReport("rewrite data files", Outcome.DONE, "small", 12, 4096, *numbers, 1.25, 2)
        )
        history.step(kept, StepReport("refresh statistics", Outcome.FAILED, "stale", error="no space left"))
        history.end(kept, Outcome.FAILED)
        history.begin("lake.db.items", "asked for")
        code, out, _ = rookery("history")
        assert code == 0
        lines = out.splitlines()
        assert lines[0] == "2 runs"
        assert lines[1].endswith("UTC  lake.db.items: running, asked for")
        assert "UTC  lake.db.orders: failed in " in lines[2]
        assert lines[2].endswith("health 0.61 is below 0.8")
        rewrite = (
            "rewrite data files  done, attempt 2  1.2 s  files 12 → 1, bytes 4.1 kB → 4.0 kB  4.1 kB small"
        )
        assert " ".join(rewrite.split()) == " ".join(lines[4].split())
        assert lines[5].rstrip().endswith("no space left")
        assert len(lines) == 6
        code, out, _ = rookery("history", "db.orders", "--limit", "1", "--output", "json")
        (said,) = json.loads(out)["runs"]
        assert (said["outcome"], said["pid"], len(said["steps"])) == ("failed", os.getpid(), 3)
        assert said["steps"][1]["before"] == {"files": 12, "bytes": 4096}

    def test_history_elsewhere(self, rookery: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'other.db'}"
        History(url).begin("lake.db.x", "")
        assert "lake.db.x" in rookery("history", "--history", url)[1]
        assert rookery("history", "--limit", "0")[0] == 2


class TestProgram:
    @pytest.fixture
    def watching(self, lake: Lake, home: Path) -> Iterator[subprocess.Popen[str]]:
        """`rookery watch` with metrics on a port of its own, in hours that are quiet."""
        (home / "rookery.yaml").write_text(QUIET)
        place = ["--uri", lake.properties["uri"], "--warehouse", lake.properties["warehouse"]]
        words = ["watch", "--metrics", "0", "--log-format", "json", *place]
        program = subprocess.Popen(
            [sys.executable, "-m", "rookery", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        yield program
        program.kill()
        program.communicate()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_offers_metrics_and_stops_cleanly(
        self, watching: subprocess.Popen[str], number: signal.Signals
    ) -> None:
        assert watching.stderr is not None
        (port,) = re.findall(r"127\.0\.0\.1:(\d+)/metrics", json.loads(watching.stderr.readline())["message"])
        text = ""
        for _ in range(1000):  # the tables are looked at while it answers already
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                text = answer.read().decode()
            if text.count("rookery_table_rows{") == 2:
                break
        assert 'rookery_table_rows{catalog="lake",namespace="db",table="orders"} 10.0' in text
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
            assert answer.status == 200
        watching.send_signal(number)
        out, err = watching.communicate(timeout=60)
        assert (watching.returncode, out) == (0, "")
        (answer,) = map(json.loads, err.splitlines())
        assert (answer["level"], answer["message"][:8]) == ("info", "stopping")

    def test_a_port_that_is_taken(self, watching: subprocess.Popen[str], lake: Lake) -> None:
        assert watching.stderr is not None
        (port,) = re.findall(r"127\.0\.0\.1:(\d+)/metrics", json.loads(watching.stderr.readline())["message"])
        with pytest.raises(MachineError, match="metrics cannot be served"):
            watch(lake, metrics=("127.0.0.1", int(port)))


def test_a_table_that_grows_is_seen_to(lake: Lake) -> None:
    site = site_of(lake, "db.orders")
    (name,) = site.find()
    before = site.look(name).status.layout.rows
    lake.load("db.orders").append(pa.concat_tables([ROWS, ROWS]))
    assert site.look(name).status.layout.rows == before + 20
