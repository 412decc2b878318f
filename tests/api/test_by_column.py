"""Reports as Python users handle them: by column, as dictionaries and as data frames."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

import rookery
from rookery.api.lake import Lake
from rookery.api.progress import TextProgress, in_notebook
from rookery.api.statistics import StatsReport
from rookery.model import MachineError, UsageError
from tests.lakehouse import sqlite_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = sqlite_lake(tmp_path_factory.mktemp("lake"))
    rows = pa.table({"amount": [1, 2], "Country": ["NL", "BE"]})
    lake.catalog.create_table("db.orders", rows.schema).append(rows)
    return lake


@pytest.fixture
def stats(lake: Lake) -> StatsReport:
    return rookery.table("db.orders", lake).stats()


def test_a_column_by_its_name(stats: StatsReport) -> None:
    assert stats["amount"].max == 2
    assert stats["country"] is stats["Country"]
    assert list(stats) == ["amount", "Country"]
    assert "amount" in stats
    assert "other" not in stats


def test_a_column_that_is_not_there(stats: StatsReport) -> None:
    with pytest.raises(KeyError, match="there is no column 'amuont'") as caught:
        stats["amuont"]
    assert isinstance(caught.value, UsageError)
    assert caught.value.__notes__ == ["hint: did you mean amount?"]
    with pytest.raises(KeyError) as caught:
        stats["xyz"]
    assert caught.value.__notes__ == ["hint: the columns are amount, Country"]


def test_as_a_data_frame(stats: StatsReport, lake: Lake, tmp_path: Path) -> None:
    frame = stats.to_pandas().set_index("name")
    assert (frame.loc["amount", "min"], frame.loc["amount", "max"]) == (1, 2)
    assert list(lake.list_tables().to_pandas().table) == ["lake.db.orders"]
    empty = sqlite_lake(tmp_path / "empty").list_tables().to_pandas()
    assert (len(empty), "rows" in empty.columns) == (0, True)
    assert lake.load_files(_csv(tmp_path), "db.new").to_pandas().name.to_list() == ["id"]


def _csv(folder: Path) -> Path:
    (folder / "a.csv").write_text("id\n1\n")
    return folder / "a.csv"


def test_without_pandas(stats: StatsReport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MachineError, match="pandas is not installed") as caught:
        stats.to_pandas()
    assert caught.value.hint == "pip install pandas"


def test_progress_in_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    assert in_notebook("db.t") is None
    now = iter([10.0, 10.0, 10.1, 10.6, 10.6, 10.7, 10.7])
    show = TextProgress("db.t", lambda: next(now))
    for files in range(4):
        show(files, 3, files * 1000, 3000)
    lines = capsys.readouterr().out.split("\r")[1:]
    assert lines == [
        "db.t: read 0 of 3 files, 0 bytes of 3.0 kB",
        "db.t: read 2 of 3 files, 2.0 kB of 3.0 kB",
        "db.t: read 3 of 3 files, 3.0 kB of 3.0 kB\n",
    ]


def test_names_to_complete() -> None:
    for module in (rookery, rookery.spark):
        assert dir(module) == sorted(module.__all__)
        assert all(getattr(module, name) is not None for name in dir(module))
