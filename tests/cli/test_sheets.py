"""Tables at all widths of a terminal: every cell is there."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rookery.cli.sheets import table

HEADER = ("table", "freshness", "score", "files", "what is below its policy")
ROWS = [
    ("lake.sales.orders_of_the_last_ten_years", "current", "100", "1,024", "nothing is below its policy"),
    ("lake.db.t", "stale", "7", "3", "statistics are 3 snapshots behind; 12 of 14 files are small"),
]


def drawn(width: int) -> str:
    file = io.StringIO()
    Console(file=file, width=width, color_system=None).print(table(HEADER, ROWS, {2, 3}))
    return file.getvalue()


@pytest.mark.parametrize("width", [200, 130, 100, 80, 60, 40])
def test_nothing_is_cut_off(width: int) -> None:
    text = drawn(width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert ROWS[0][0] in "".join(line.split("  ")[0] for line in text.splitlines())
    for word in " ".join(cell for row in ROWS for cell in row[1:]).split():
        assert word in text


def test_where_it_fits_a_row_is_a_line() -> None:
    assert len(drawn(200).splitlines()) == 1 + len(ROWS)


def test_text_is_wrapped_and_numbers_are_not() -> None:
    lines = drawn(80).splitlines()
    assert len(lines) > 1 + len(ROWS)
    assert "freshness" in lines[0]
    assert any("1,024" in line for line in lines)


def test_columns_go_below_each_other_where_there_is_no_room() -> None:
    lines = drawn(40).splitlines()
    headers = [line.split() for line in lines if line.startswith("table")]
    assert [header[1:] for header in headers] == [["freshness", "score"], ["files"], ["policy"]]


def test_control_characters_are_shown() -> None:
    file = io.StringIO()
    Console(file=file, width=80, color_system=None).print(table(("a",), [("x\x1b[31m",)], ()))
    assert "\x1b" not in file.getvalue()
