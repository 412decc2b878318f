"""`rookery status`: what it prints, and when it leaves with 1 or 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rookery.api.lake import Lake
from rookery.cli.app import run
from tests.isolation import isolate
from tests.lakehouse import sqlite_words
from tests.maintain.runs.small_site import small_lake

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Two tables of ten rows that nobody has analysed, in a catalog of their own; no Spark."""
    isolate(tmp_path, monkeypatch)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return small_lake(tmp_path / "lake", "one", "two")


@pytest.fixture
def status(lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    where = sqlite_words(tmp_path / "lake")

    def call(*words: str) -> tuple[int, str, str]:
        code = run([*where, "status", *words])
        return code, *capsys.readouterr()

    return call


def test_what_is_below_its_policy_is_a_finding(status: Command) -> None:
    code, out, err = status()
    assert (code, err) == (1, "")
    assert "2 tables, 2 below policy" in out
    assert out.count("statistics were never collected") == 2


def test_one_table_is_told_in_full(status: Command) -> None:
    code, out, _ = status("db.one")
    assert code == 1
    assert "10 rows in 1 file" in out
    assert "below policy: statistics were never collected" in out
    assert "columns of" not in out


def test_columns(status: Command) -> None:
    _, out, _ = status("db.one", "--columns")
    assert "columns of" in out
    assert "city" in out


def test_an_empty_table_is_below_nothing(lake: Lake, status: Command) -> None:
    lake.catalog.create_table("db.empty", lake.load("db.one").schema())
    code, out, err = status("db.empty")
    assert (code, err) == (0, "")
    assert "nothing is below its policy" in out
    assert status("db.*")[0] == 1


def test_json(status: Command) -> None:
    code, out, _ = status("db.*", "--columns", "--output", "json")
    report = json.loads(out)
    assert code == 1
    assert [table["table"].rpartition(".")[2] for table in report["tables"]] == ["one", "two"]
    one = report["tables"][0]
    assert one["statistics"]["freshness"] == "never"
    assert (one["layout"]["rows"], one["layout"]["files"]) == (10, 1)
    columns = {column["name"]: column for column in one["columns"]}
    assert columns["id"]["ndv"] is None
    assert (columns["id"]["ndv_low"], columns["id"]["ndv_high"]) == (1, 10)
    assert report["failed"] == []


def test_without_columns_there_are_none(status: Command) -> None:
    report = json.loads(status("db.one", "--output", "json")[1])
    assert report["tables"][0]["columns"] == []


def test_prometheus(status: Command) -> None:
    code, out, _ = status("--output", "prometheus")
    assert code == 1
    found = {
        sample.labels["table"]
        for family in text_string_to_metric_families(out)
        for sample in family.samples
        if "table" in sample.labels
    }
    assert found == {"one", "two"}


def test_a_pattern_that_matches_nothing(status: Command) -> None:
    code, out, err = status("nowhere.*")
    assert (code, out) == (2, "")
    assert "no table of" in err
    assert "hint: try '*' to see all" in err


def test_a_table_that_is_not_there(status: Command) -> None:
    code, out, err = status("db.nothing")
    assert (code, out) == (2, "")
    assert "hint:" in err


def test_a_table_that_cannot_be_read_hides_no_other(lake: Lake, status: Command) -> None:
    metadata = lake.load("db.two").metadata_location
    Path(metadata.removeprefix("file://")).write_text("{")
    code, out, err = status("db.*")
    assert (code, err) == (1, "")
    assert "db.two:" in out
    assert "statistics were never collected" in out
    report = json.loads(status("db.*", "--output", "json")[1])
    assert [table["table"].rpartition(".")[2] for table in report["tables"]] == ["one"]
    assert [failure["table"].rpartition(".")[2] for failure in report["failed"]] == ["two"]


def test_a_manifest_list_that_is_gone(lake: Lake, status: Command) -> None:
    snapshot = lake.load("db.two").current_snapshot()
    assert snapshot is not None
    os.remove(snapshot.manifest_list.removeprefix("file://"))
    report = json.loads(status("db.*", "--output", "json")[1])
    assert [table["table"].rpartition(".")[2] for table in report["tables"]] == ["one"]
    assert [failure["table"].rpartition(".")[2] for failure in report["failed"]] == ["two"]


@pytest.mark.parametrize("output", ["text", "json", "prometheus"])
def test_no_spark_is_imported(lake: Lake, tmp_path: Path, output: str) -> None:
    words = [*sqlite_words(tmp_path / "lake"), "status", "--columns", "--output", output]
    program = (
        "import sys; from rookery.cli.app import run\n"
        f"code = run({words!r})\n"
        "assert 'pyspark' not in sys.modules\n"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert "one" in done.stdout
