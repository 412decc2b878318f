"""Rows for other programs: JSON lines and CSV, with the values of JSON output, while files are read."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.read import table_reader
from tests.cli.conftest import Rookery
from tests.lakehouse import sqlite_lake, sqlite_words

TEXTS = ["plain", 'a "quoted", one', "two\nlines", "cr\r", "", None, " spaces ", "ä€😀"]


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """The options that name a catalog with the tables db.t, of all types, and db.many, of ten files."""
    catalog = sqlite_lake(tmp_path).catalog
    count = len(TEXTS)
    rows = pa.table(
        {
            "id": pa.array([2**63 - 1 - number for number in range(count)]),
            "text": TEXTS,
            "price": pa.array([Decimal("0.10")] * (count - 1) + [None], pa.decimal128(9, 2)),
            "x": pa.array([0.1, float("nan"), float("-inf"), 1e300, -0.0, 5e-324, None, 2.0]),
            "flag": pa.array([True, False, None] + [True] * (count - 3)),
            "raw": pa.array([b"\x00\xff", b"", None] + [b"x"] * (count - 3)),
            "list": pa.array([[1, None], [], None] + [[2]] * (count - 3), pa.list_(pa.int64())),
            "in": pa.array([{"a": 'say "hi"', "b": 1}] * count),
        }
    )
    catalog.create_table("db.t", rows.schema).append(rows)
    numbers = pa.table({"n": pa.array([0, 1, 2])})
    many = catalog.create_table("db.many", numbers.schema)
    for _ in range(10):
        many.append(numbers)
    return sqlite_words(tmp_path)


def test_lines_are_the_rows_of_json(rookery: Rookery, options: list[str]) -> None:
    expected = json.loads(rookery(*options, "read", "db.t", "--output", "json")[1])
    code, out, err = rookery(*options, "read", "db.t", "--output", "jsonl")
    assert (code, err) == (0, "")
    assert [json.loads(line) for line in out.split("\n")[:-1]] == expected


def test_csv_has_the_values_of_json(rookery: Rookery, options: list[str]) -> None:
    expected = json.loads(rookery(*options, "read", "db.t", "--output", "json")[1])
    code, out, err = rookery(*options, "read", "db.t", "--output", "csv")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert len(rows) == len(expected)
    for row, values in zip(rows, expected, strict=True):
        texts = {
            name: "" if value is None else value if isinstance(value, str) else json.dumps(value)
            for name, value in values.items()
        }
        for name in ("list", "in", "x"):  # JSON, whose spaces may differ
            if texts[name] not in ("", "NaN", "-Infinity"):
                assert json.loads(row.pop(name)) == json.loads(texts.pop(name))
        assert row == texts
    assert rows[0]["id"] == str(2**63 - 1)
    assert rows[0]["price"] == "0.10"
    assert base64.b64decode(rows[0]["raw"]) == b"\x00\xff"


def test_null_is_not_empty_text_in_csv(rookery: Rookery, options: list[str]) -> None:
    words = ["--columns", "id,text", "--output", "csv"]
    lines = rookery(*options, "read", "db.t", *words)[1].splitlines()
    assert f'{2**63 - 1 - 4},""' in lines
    assert f"{2**63 - 1 - 5}," in lines
    code, out, _ = rookery(*options, "read", "db.t", "text IS NULL", "--columns", "text", "--output", "csv")
    assert (code, out) == (0, 'text\n""\n')


def test_no_row(rookery: Rookery, options: list[str]) -> None:
    assert rookery(*options, "read", "db.many", "n < 0", "--output", "csv") == (0, "n\n", "")
    assert rookery(*options, "read", "db.many", "n < 0", "--output", "jsonl") == (0, "", "")


@pytest.mark.parametrize("limit", [0, 1, 7, 30, 31])
def test_limit(rookery: Rookery, options: list[str], limit: int) -> None:
    words = ["read", "db.many", "--limit", limit, "--output", "jsonl"]
    assert len(rookery(*options, *words)[1].splitlines()) == min(limit, 30)


def test_files_are_read_as_rows_are_taken(
    rookery: Rookery, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of the first files are printed before the last file is read, which is missing."""
    monkeypatch.setattr(table_reader, "_AHEAD", 2)
    order = json.loads(rookery(*options, "explain", "db.many", "n >= 0", "--output", "json")[1])["files"]
    assert len(order) == 10
    os.unlink(order[-1]["path"].removeprefix("file://"))
    code, out, err = rookery(*options, "read", "db.many", "--output", "jsonl")
    assert code == 2
    assert len(out.splitlines()) == 27
    assert err.startswith("error: ")
    assert "hint: " in err


@pytest.mark.parametrize("output", ["csv", "jsonl"])
def test_reports_are_no_rows(rookery: Rookery, options: list[str], output: str) -> None:
    code, out, err = rookery(*options, "count", "db.t", "--output", output)
    assert (code, out) == (2, "")
    assert f"cannot be printed as {output}" in err
