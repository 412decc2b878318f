"""Tables at all widths of a terminal: every cell is there."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rookery.cli.sheets import as_text, table
from rookery.model import Report, Sheet

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


SPARE = Sheet(
    "2 tables",
    HEADER,
    ROWS,
    ("a note",),
    frozenset({2, 3}),
    spare=(3, 2, 1),
)


class _Sheets(Report):
    def sheets(self) -> list[Sheet]:
        return [SPARE]


def report(width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, color_system=None).print(as_text(_Sheets()))
    return [line.rstrip() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [120, 95, 80])
def test_names_are_whole_and_the_least_important_columns_are_left_out(width: int) -> None:
    lines = report(width)
    assert max(map(len, lines)) <= width
    assert any(line.startswith(f"{ROWS[0][0]}  ") for line in lines)
    assert any(line.startswith(f"{ROWS[1][0]}  ") for line in lines)
    shown = lines[1].split("  ")[0:1] + [name for name in HEADER[1:4] if name in lines[1].split()]
    left_out = [name for name in HEADER[1:4] if name not in shown]
    last = f"not shown in {width} columns: {', '.join(left_out)}; --output json has all"
    assert (lines[-1] == last) is bool(left_out)
    assert lines[-2 if left_out else -1] == "a note"
    assert left_out == {120: [], 95: [], 80: ["score", "files"]}[width]
    for word in ROWS[1][4].split():
        assert word in "\n".join(lines)


def test_one_long_name_does_not_take_the_room_of_other_columns() -> None:
    names = ["lake.sales." + "_".join(["very"] * 10) + "_long", "lake.sales.orders"]
    rows = [(name, "30", "never", "statistics were never collected") for name in names]
    cells = table(("table", "score", "statistics", "needs"), rows, {1}, (2,))
    file = io.StringIO()
    Console(file=file, width=80, color_system=None).print(cells)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(line.split()[0] for line in lines[1:3]) == names[0]
    assert [line.rstrip().split("  ")[-1] for line in lines if "never" in line] == [rows[0][-1]] * 2
    assert cells.left_out(80) == ["statistics"]
