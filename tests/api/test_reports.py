"""Every call returns a report, which has rows and JSON, or a value of one of a few types."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pytest

import rookery
from rookery.api import puffin_files
from rookery.api.analyze_tables import analyze_tables
from rookery.api.count import count
from rookery.api.doctor import doctor
from rookery.api.history import history
from rookery.api.indexes import index_kinds
from rookery.api.lake import Lake
from rookery.api.plan_estimates import plan_estimates
from rookery.api.policies import check_policies, show_policy
from rookery.api.watch import watch
from rookery.model import Report
from tests.api.public import api_modules, public_calls, public_names, reports
from tests.discover.plain_lake import add_table, analyse
from tests.lakehouse import sqlite_lake
from tests.samples import write_sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMANDS = Path(rookery.__file__).parent / "cli"
HANDLES = {"Lake", "TableHandle", "Attachment", "PyIcebergTable", "OtherTables", "SparkSession"}
NAMES = {"TableName", "list[TableName]", "Iterator[TableName]", "tuple[Table, Store]", "Mapping[str, str]"}
ROWS = {"pa.Table", "pa.RecordBatchReader", "DataFrame", "int", "bytes"}
NO_DATA = {"None", "bool", "str", "timedelta", "RookeryError", "tuple[str, int]", "Iterator[None]"}
VALUES = HANDLES | NAMES | ROWS | NO_DATA | {"Tally | None"}  # the counts that Prometheus' format takes
CONTAINER = re.compile(
    r"^(?:\w+\.)*(?:list|tuple|dict|set|frozenset|Sequence|Mapping|Iterator|Iterable|Collection)\b", re.I
)
LAYOUT = {"list[Sheet]", "Sequence[Sheet]"}
SETTINGS_OF_SESSION = "rookery.api.session.unknown_settings"  # which no command or user calls

REPORTS = {report.__name__ for report in reports()}


def returned(call: Callable[..., Any]) -> str:
    return str(inspect.get_annotations(call).get("return", ""))


def is_report_or_value(call: Callable[..., Any]) -> bool:
    said = returned(call)
    return said.rpartition(".")[2] in REPORTS or said in VALUES


def test_calls_return_reports() -> None:
    calls = public_calls()
    assert {"rookery.analyze", "rookery.api.status.status", "TableHandle.explain"} <= set(calls)
    assert {name: returned(call) for name, call in calls.items() if not is_report_or_value(call)} == {}


def test_no_other_function_of_the_api_returns_a_container() -> None:
    functions = {
        f"{module.__name__}.{name}": found
        for module in api_modules()
        for name, found in vars(module).items()
        if name[0] != "_" and inspect.isfunction(found) and found.__module__ == module.__name__
    }
    others = {name: returned(call) for name, call in functions.items() if name not in public_calls()}
    assert others
    bare = {name: said for name, said in others.items() if CONTAINER.match(said) and said not in LAYOUT}
    assert set(bare) == {SETTINGS_OF_SESSION}


def _lists() -> list[dict[str, int]]:
    raise NotImplementedError


def _says_nothing():  # type: ignore[no-untyped-def]
    raise NotImplementedError


@pytest.mark.parametrize("call", [_lists, _says_nothing])
def test_a_call_that_returns_no_report_is_found(call: Callable[..., Any]) -> None:
    assert not is_report_or_value(call)
    assert CONTAINER.match(returned(_lists))


def imported_by_commands() -> set[str]:
    """What the command line imports from `rookery.api`, by full name."""
    names: set[str] = set()
    for path in COMMANDS.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("rookery.api"):
                continue
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                if node.module == "rookery.api":  # a module, of which attributes are used
                    names |= {
                        f"{full}.{used.attr}"
                        for used in ast.walk(tree)
                        if isinstance(used, ast.Attribute)
                        and isinstance(used.value, ast.Name)
                        and used.value.id == (alias.asname or alias.name)
                    }
                else:
                    names.add(full)
    return names


def test_commands_use_public_names_alone() -> None:
    imported = imported_by_commands()
    assert "rookery.api.puffin_files.payload" in imported
    assert imported - set(public_names()) == set()


def test_reports_are_public_and_of_the_api() -> None:
    public = {id(found) for found in public_names().values()}
    assert [report.__name__ for report in reports() if id(report) not in public] == []
    assert {report.__module__.rpartition(".")[0] for report in reports()} == {"rookery.api"}


@pytest.fixture
def own_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """An analysed table with numbers that JSON lacks, on a lake that can start no Spark."""
    made = sqlite_lake(tmp_path / "lake")
    ids, cities = pa.array(range(100), pa.int64()), pa.array(["Delft", "Gouda\n", "\x1b[1m", None] * 25)
    scores = pa.array([float("nan"), float("-inf"), 0.5, None] * 25, pa.float64())
    add_table(made, "t", pa.table({"id": ids, "city": cities, "score": scores}))
    add_table(made, "u", pa.table({"id": ids}))
    rookery.table("db.t", made).add_index("bloom", "id")
    analyse(made, "t", columns=("id", "city", "score"))
    analyse(made, "u")

    def no_spark(*_: object, **__: object) -> NoReturn:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(Lake, "spark", no_spark)
    return made


POLICY = """
defaults:
  orphans: {older-than: never}
rules:
  - table: db.t
    statistics: {snapshots: 5}
"""


def _policy(folder: Path) -> str:
    (folder / "rookery.yaml").write_text(POLICY)
    return str(folder / "rookery.yaml")


def _watched(lake: Lake, folder: Path) -> Report:
    return watch(lake, ("db.t",), once=True, policy=_policy(folder), history=f"sqlite:///{folder}/h.db")


def _ran(lake: Lake, folder: Path) -> Report:
    url = f"sqlite:///{folder}/h.db"
    lake.maintain("db.t", only=["rewrite manifests"], history=url)
    report = history(url=url)
    assert len(report.runs) == 1
    return report


def _loaded(lake: Lake, folder: Path) -> Report:
    (folder / "a.csv").write_text("id,city\n1,Delft\n")
    return lake.load_files(folder / "a.csv", "db.loaded")


# The calls that need no Spark, by what they return.
CALLS: Mapping[str, Callable[[Lake, Path], Report]] = {
    "AnalyzeReport": lambda lake, _: rookery.analyze(lake.spark, "db.t", dry_run=True, lake=lake),
    "AnalyzedTables": lambda lake, _: analyze_tables(lake, ["db.*"], dry_run=True),
    "CopyReport": lambda _, folder: puffin_files.copy(
        str(write_sample(folder / "a.puffin")), str(folder / "b.puffin")
    ),
    "CountReport": lambda lake, _: count(*lake.open("db.t"), "id < 7"),
    "DescribeReport": lambda lake, _: rookery.table("db.t", lake).describe(),
    "DiscoverReport": lambda lake, _: lake.discover(),
    "DoctorReport": lambda lake, _: doctor(lake, ("python", "catalog", "read")),
    "EstimateReport": lambda lake, _: rookery.table("db.t", lake).estimate(
        "id < 7 AND score < 1", group_by=["city"]
    ),
    "ExplainReport": lambda lake, _: rookery.table("db.t", lake).explain("id = 7 AND city > 'a'"),
    "HistoryReport": _ran,
    "IndexKinds": lambda *_: index_kinds(),
    "IndexReport": lambda lake, _: rookery.table("db.t", lake).indexes(),
    "LoadReport": _loaded,
    "MaintainReport": lambda lake, _: lake.maintain("db.*", dry_run=True),
    "PolicyCheck": lambda _, folder: check_policies(_policy(folder)),
    "PolicyReport": lambda lake, folder: show_policy("db.t", lake, policy=_policy(folder)),
    "PuffinView": lambda _, folder: puffin_files.inspect(str(write_sample(folder / "a.puffin"))),
    "StatsReport": lambda lake, _: rookery.table("db.t", lake).stats(),
    "StatusReport": lambda lake, _: lake.status(columns=True),
    "TableList": lambda lake, _: lake.list_tables(),
    "VerifyReport": lambda _, folder: puffin_files.verify(str(write_sample(folder / "a.puffin"))),
    "WatchReport": _watched,
}
# Those of a session.
CALLS_ON_SPARK: Mapping[str, Callable[[SparkSession, Lake], Report]] = {
    "PlanEstimates": lambda spark, lake: plan_estimates(QUERY, lake, spark=spark, actual=True),
    "QueriesReport": lambda spark, _: rookery.queries(spark),
}
QUERY = "SELECT id FROM range(3) WHERE id > 1"


def test_every_report_is_called_for() -> None:
    assert CALLS.keys() | CALLS_ON_SPARK.keys() == REPORTS


def _are_lines(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def is_whole(report: Report, name: str) -> None:
    """Check the sheets of a report, and that its JSON is all of it, and strict JSON."""
    assert type(report).__name__ == name
    sheets = report.sheets()
    assert sheets
    for sheet in sheets:
        assert sheet.title or sheet.header or sheet.rows
        widths = {len(row) for row in (*([sheet.header] if sheet.header else []), *sheet.rows)}
        assert len(widths) <= 1
        assert all(isinstance(cell, str) for row in sheet.rows for cell in row)
    assert str(report) == "\n".join(map(str, sheets))
    assert report.to_dict() == json.loads(report.json())
    frame = report.to_pandas()
    lines = [value for value in report.to_dict().values() if _are_lines(value)]
    if any(each.keys() == set(frame.columns) for each in (value[0] for value in lines)):
        assert len(frame) in map(len, lines)
    else:
        assert len(frame) == 0 or set(frame.columns) == report.to_dict().keys()
    assert report._repr_html_()
    plain = json.loads(report.json(), parse_constant=pytest.fail)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert dataclasses.is_dataclass(report)
    assert set(plain) == {field.name for field in dataclasses.fields(report)}


@pytest.mark.parametrize("name", CALLS)
def test_report(name: str, own_lake: Lake, tmp_path: Path) -> None:
    is_whole(CALLS[name](own_lake, tmp_path), name)


@pytest.mark.parametrize("name", CALLS_ON_SPARK)
def test_report_of_a_session(name: str, spark: SparkSession, lake: Lake) -> None:
    rookery.attach(spark)
    spark.sql(QUERY).collect()
    is_whole(CALLS_ON_SPARK[name](spark, lake), name)


def test_numbers_that_json_lacks_are_text(own_lake: Lake) -> None:
    add_table(own_lake, "v", pa.table({"score": pa.array([float("-inf"), 0.5], pa.float64())}))
    (column,) = json.loads(rookery.table("db.v", own_lake).stats().json())["columns"]
    assert column["min"] == "-Infinity"
