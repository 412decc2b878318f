"""`rookery discover` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.cli.app import run
from tests.discover.plain_lake import add_table, analyse
from tests.lakehouse import sqlite_lake, sqlite_words


@pytest.fixture
def shop(tmp_path: Path) -> list[str]:
    lake = sqlite_lake(tmp_path)
    add_table(lake, "customers", pa.table({"id": range(1, 31), "name": [f"n{n}" for n in range(30)]}))
    add_table(
        lake, "orders", pa.table({"id": range(100, 160), "customer_id": [n % 20 + 1 for n in range(60)]})
    )
    add_table(lake, "later", pa.table({"id": [1]}))
    for name in ("customers", "orders"):
        analyse(lake, name)
    return sqlite_words(tmp_path)


def test_text_fits_80_columns(shop: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["discover", *shop]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "4 columns of 3 tables compared" in lines[0]
    assert any(
        line.split() == ["db.orders.customer_id", "db.customers.id", "100%", "67%", "1", "high"]
        for line in lines
    )
    assert "never analyzed" in out


def test_json_has_all(shop: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["discover", "db.customers", "db.orders", "--output", "json", *shop]) == 0
    report = json.loads(capsys.readouterr().out)
    (key,) = report["foreign_keys"]
    assert (key["containment"], key["confidence"], key["likely"], key["certainty"]) == (1, 1, "high", "exact")
    assert {tuple(key["columns"]) for key in report["unique"]} == {("id",), ("name",)}
    assert report["not_compared"] == []


def test_kinds(shop: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["discover", "--kind", "unique", "--kind", "same-values", "--output", "json", *shop]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["foreign_keys"], report["dependencies"]) == (None, None)
    assert (len(report["unique"]), report["same_values"]) == (3, [])


@pytest.mark.parametrize(
    "more, message",
    [
        (["nope.*"], "no table of"),
        (["db.nope"], "nope"),
        (["--min-confidence", "2"], "2 is not a confidence"),
        (["--kind", "keys"], "keys"),
    ],
)
def test_bad_input(
    shop: list[str], more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["discover", *more, *shop]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "hint:" in err


def test_an_empty_catalog(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sqlite_lake(tmp_path)
    assert run(["discover", *sqlite_words(tmp_path)]) == 2
    assert "has no tables" in capsys.readouterr().err


def test_no_states(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_table(sqlite_lake(tmp_path), "t", pa.table({"id": [1]}))
    assert run(["discover", *sqlite_words(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "0 columns of 1 table compared" in out
    assert "foreign keys: none" in out
