"""`rookery policy show` and `check`: what they print, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import rookery
from rookery.api.policies import check_policies, show_policy
from rookery.cli.app import run
from rookery.maintain.policies.settings import SETTINGS
from rookery.model import GroupedUsageError
from tests.isolation import isolate

FILE = """\
defaults:
  snapshots: {keep-last: 3}
rules:
  - namespace: sales
    snapshots:
      keep-for: 2w
  - tables: "*.ord*"
    compaction: {target-size: 64MiB}
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table with properties of its own, and a policy file in the working directory."""
    home = isolate(tmp_path, monkeypatch)
    (home / "rookery.yaml").write_text(FILE)
    catalog = rookery.connect().catalog
    catalog.create_namespace("sales")
    properties = {"rookery.snapshots.keep-last": "0", "rookery.location": str(tmp_path / "beside")}
    catalog.create_table("sales.orders", pa.schema([("id", pa.int64())]), properties=properties)
    return "sales.orders"


def test_show_names_every_source(table: str) -> None:
    report = show_policy(table)
    said = {view.setting: (view.value, view.source) for view in report.settings}
    assert list(said) == [setting.key for setting in SETTINGS]
    assert said["snapshots.keep-for"] == ("2w", 'rookery.yaml:6 (namespace "sales")')
    assert said["snapshots.keep-last"] == ("0", "table property rookery.snapshots.keep-last")
    assert said["compaction.target-size"] == ("64MiB", 'rookery.yaml:8 (tables "*.ord*")')
    assert said["verify"] == ("count", "default")
    assert report.risks == ("snapshots.keep-last is 0: no snapshot is kept for its number",)


def test_show_prints(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "show", table]) == 0
    printed = capsys.readouterr()
    lines = {line.split()[0]: line.split()[1:] for line in printed.out.splitlines() if line.strip()}
    assert lines["snapshots.keep-for"] == ["2w", "rookery.yaml:6", "(namespace", '"sales")']
    assert "requires --yes" in printed.out
    assert printed.err == ""
    assert run(["policy", "show", table, "--output", "json"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert {"setting": "verify", "value": "count", "source": "default"} in settings


def test_show_takes_another_file(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.yaml").write_text("defaults: {verify: rows}")
    assert run(["policy", "show", table, "--policy", str(tmp_path / "other.yaml"), "--output", "json"]) == 0
    sources = {view["setting"]: view["source"] for view in json.loads(capsys.readouterr().out)["settings"]}
    assert sources["verify"] == f"{tmp_path}/other.yaml:1 (defaults)"
    assert sources["snapshots.keep-for"] == "default"


def test_show_needs_no_spark(table: str) -> None:
    code = (
        "import sys; from rookery.cli.app import run; code = run(['policy', 'show', 'sales.orders']); "
        "sys.exit(code or 'pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_show_of_an_unknown_property(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    with rookery.connect().load(table).transaction() as change:
        change.set_properties({"rookery.snapshot.keep-for": "1d"})
    assert run(["policy", "show", table]) == 2
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "error: lake.sales.orders: there is no table property 'rookery.snapshot.keep-for'",
        "hint: did you mean rookery.snapshots.keep-for?",
    ]
    assert printed.out == ""


def test_check(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["policy", "check"]) == 0
    assert capsys.readouterr().out.strip() == "rookery.yaml is valid: 2 rules, 3 settings"
    Path("bad.yaml").write_text(FILE + "    verify: row\n")
    assert run(["policy", "check", "bad.yaml"]) == 2
    assert capsys.readouterr() == (
        "",
        "error: bad.yaml:9: verify: 'row' is not known\nhint: it is one of count, rows\n",
    )
    assert run(["policy", "show", table, "--policy", "bad.yaml"]) == 2


def test_check_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path, monkeypatch)
    report = check_policies()
    assert (report.file, report.rules) == (None, 0)
    assert report.sheets()[0].title.startswith("there is no policy file")


def test_check_reports_all_errors(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.yaml").write_text(
        "default: {}\n"
        "defaults:\n"
        "  verify: row\n"
        "  snapshots: {keep-for: soon, keep-lst: 3}\n"
        "rules:\n"
        "  - snapshots: {keep-last: -x}\n"
        "  - namespace: sales\n"
        "    indexes: [btree(id)]\n"
        "  - table: sales.orders\n"
        "    compaction: {target-size: 1MB, small-size: 2MB}\n"
        "  - table: sales.orders\n"
        "    verify: rows\n"
    )
    assert run(["policy", "check", "bad.yaml"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert [line.split(": ")[1] for line in lines if line.startswith("error: ")] == [
        f"bad.yaml:{line}" for line in (1, 3, 4, 4, 6, 6, 8, 10)
    ]
    assert sum(line.startswith("hint: ") for line in lines) == 8
    with pytest.raises(GroupedUsageError) as caught:
        check_policies("bad.yaml")
    assert len(caught.value.errors) == 8
    assert run(["maintain", table, "--dry-run", "--policy", "bad.yaml"]) == 2


def test_rules_that_match_nothing_are_warnings(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    schema = pa.schema([("id", pa.int64()), ("price", pa.float64())])
    rookery.connect().catalog.create_table("sales.items", schema)
    Path("odd.yaml").write_text(
        "defaults:\n"
        "  statistics: {columns: [id, price]}\n"
        "rules:\n"
        "  - namespace: sale\n"
        "    verify: rows\n"
        "  - tables: 'sales.*'\n"
        "    indexes: [bloom(id), bitmap(status)]\n"
        "  - catalog: other\n"
        "    verify: rows\n"
    )
    assert run(["policy", "check", "odd.yaml"]) == 0
    assert capsys.readouterr() == (
        "odd.yaml is valid: 3 rules, 4 settings\n"
        "warning: odd.yaml:2: statistics.columns: there is no column 'price' in lake.sales.orders\n"
        'warning: odd.yaml:4: namespace "sale" matches no table of lake\n'
        "warning: odd.yaml:7: indexes: there is no column 'status' in lake.sales.items and in 1 other table\n"
        'warning: odd.yaml:8: catalog "other" matches no table of lake\n',
        "",
    )
    assert run(["policy", "check", "odd.yaml", "--output", "json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert [warning["line"] for warning in warnings] == [2, 4, 7, 8]


def test_check_where_there_is_no_catalog_to_compare_with(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["policy", "check", "--uri", "http://127.0.0.1:1"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "rookery.yaml is valid: 2 rules, 3 settings"
    assert printed[1].startswith("not compared with tables: ")
    monkeypatch.setenv("PYICEBERG_CATALOG__OTHER__URI", "http://127.0.0.1:1")
    Path("other.yaml").write_text("rules:\n  - catalog: other\n    verify: rows\n")
    assert check_policies("other.yaml").warnings == ()
