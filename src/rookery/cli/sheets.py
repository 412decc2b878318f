"""Reports on a terminal: text is wrapped; where that is not enough, columns go below each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from rookery.cli.console import visible
from rookery.model import Report, Sheet

_LEAST = 24  # columns of a terminal for text that is wrapped
_GAP = 2
_STYLES = {"✓": "green", "·": "yellow", "✗": "bold red"}  # of checks


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A header and rows of text; nothing is cut off, however narrow the terminal is."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[int] = ()  # columns of numbers

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw it in the width that there is."""
        lines = [self.header, *self.rows] if self.header else self.rows
        natural = [_GAP + max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        for part in fitted(natural, self.right, options.max_width):
            yield self._part(part)

    def _part(self, widths: dict[int, int]) -> Table:
        table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="dim", show_header=bool(self.header))
        for number, width in widths.items():
            side = "right" if number in self.right else "left"
            name = self.header[number] if self.header else ""
            table.add_column(name, justify=side, width=width - _GAP, overflow="fold")  # type: ignore[arg-type]
        for row in self.rows:
            table.add_row(*(Text(row[number], _STYLES.get(row[number], "")) for number in widths))
        return table


def fitted(natural: Sequence[int], right: Collection[int], room: int) -> list[dict[int, int]]:
    """Return which columns are side by side in the available width, with their widths.

    The widest texts are wrapped. Where that is not enough, the columns are split into parts, each of which
    begins with the first column.

    >>> fitted([5, 60, 40], {0}, 60)
    [{0: 5, 1: 27, 2: 28}]
    >>> fitted([10, 20, 20, 20], {1, 2, 3}, 55)
    [{0: 10, 1: 20, 2: 20}, {0: 10, 3: 20}]
    """
    widths = {number: width if number in right else min(width, room) for number, width in enumerate(natural)}
    texts = [number for number in widths if number not in right]
    while sum(widths.values()) > room:
        widest = max(texts, key=lambda number: widths[number], default=None)
        if widest is None or widths[widest] <= _LEAST:
            return _split(natural, right, room)
        widths[widest] -= 1
    return [widths]


def _split(natural: Sequence[int], right: Collection[int], room: int) -> list[dict[int, int]]:
    first = min(natural[0], max(room // 2, _GAP + 1))
    parts = [{0: first}]
    for number, width in list(enumerate(natural))[1:]:
        left = room - sum(parts[-1].values())
        wraps = number not in right and left >= max(_LEAST, width // 2)
        if len(parts[-1]) > 1 and width > left and not wraps:
            parts.append({0: first})
            left = room - first
        parts[-1][number] = min(width, max(left, _GAP + 1))
    return parts


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int]) -> FittedTable:
    """Return a table of texts from outside, with their control characters made visible."""
    shown = [[visible(cell) for cell in row] for row in rows]
    return FittedTable([visible(name) for name in header], shown, right)


def as_text(report: Report) -> RenderableType:
    """Return the sheets of a report, one below the other."""
    return Group(*(part for sheet in report.sheets() for part in _sheet(sheet)))


def _sheet(sheet: Sheet) -> Iterator[RenderableType]:
    if sheet.title:
        yield Text(visible(sheet.title), "bold")
    if sheet.header or sheet.rows:
        yield table(sheet.header, sheet.rows, sheet.right)
    yield from (Text(visible(note), "dim") for note in sheet.notes)
