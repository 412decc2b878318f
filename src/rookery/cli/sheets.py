"""Reports on a terminal: text is wrapped; where that is not enough, the least important columns are left out.

Names are wrapped where they are longer than half of the terminal and leave the other columns no room.
Where all columns are important, they go below each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from rookery.cli.console import visible
from rookery.model import Report, Sheet

_LEAST = 24  # columns of a terminal for text that is wrapped
_LEAST_OF_NAMED = 12  # the same beside a name that is long, where nothing more can be left out
_GAP = 2
_STYLES = {"✓": "green", "·": "yellow", "✗": "bold red"}  # of checks


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A header and rows of text; no cell is cut off, however narrow the terminal is."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[int] = ()  # columns of numbers
    spare: Sequence[int] = ()  # columns that may be left out, the least important first

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw it in the width that there is."""
        natural, room = self._natural(), options.max_width + _GAP  # no gap after the last column
        shown = kept(natural, self.right, self.spare, room)
        whole = {*self.right, 0} if self.spare else self.right
        numbers = [place for place, number in enumerate(shown) if number in whole]
        least = _LEAST_OF_NAMED if self.spare else _LEAST
        widths = [natural[number] for number in shown]
        if self.spare:
            widths[0] = min(widths[0], max(room - sum(widths[1:]), room // 2))
        for part in fitted(widths, numbers, room, least):
            yield self._part({shown[place]: width for place, width in part.items()})

    def left_out(self, room: int) -> list[str]:
        """Return the names of the columns that are not drawn in a width."""
        shown = kept(self._natural(), self.right, self.spare, room + _GAP)
        return [name for number, name in enumerate(self.header) if number not in shown]

    def _natural(self) -> list[int]:
        lines = [self.header, *self.rows] if self.header else self.rows
        return [_GAP + max(map(cell_len, column)) for column in zip(*lines, strict=True)]

    def _part(self, widths: dict[int, int]) -> Table:
        table = Table(
            box=None,
            padding=(0, _GAP, 0, 0),
            pad_edge=False,
            header_style="dim",
            show_header=bool(self.header),
        )
        for number, width in widths.items():
            side = "right" if number in self.right else "left"
            name = self.header[number] if self.header else ""
            table.add_column(name, justify=side, width=width - _GAP, overflow="fold")  # type: ignore[arg-type]
        for row in self.rows:
            table.add_row(*(Text(row[number], _STYLES.get(row[number], "")) for number in widths))
        return table


def kept(natural: Sequence[int], right: Collection[int], spare: Sequence[int], room: int) -> list[int]:
    """Return the columns that fit if texts are wrapped, or else those that are not spare.

    >>> kept([10, 20, 40, 8], {1, 3}, (3, 1), 60), kept([10, 20, 40, 8], {1, 3}, (3, 1), 50)
    ([0, 1, 2], [0, 2])
    """
    least = [width if number in right else min(width, _LEAST) for number, width in enumerate(natural)]
    least[:1] = [min(width, room // 2) for width in natural[:1]]
    shown = list(range(len(natural)))
    for number in spare:
        if sum(least[each] for each in shown) <= room:
            break
        shown.remove(number)
    return shown


def fitted(
    natural: Sequence[int], right: Collection[int], room: int, least: int = _LEAST
) -> list[dict[int, int]]:
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
        if widest is None or widths[widest] <= least:
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


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int], spare: Sequence[int] = ()
) -> FittedTable:
    """Return a table of texts from outside, with their control characters made visible."""
    shown = [[visible(cell) for cell in row] for row in rows]
    return FittedTable([visible(name) for name in header], shown, right, spare)


@dataclass(frozen=True, slots=True)
class ReportText:
    """The sheets of a report, one below the other; the last line names the columns that are left out."""

    sheets: Sequence[Sheet]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw them in the width that there is."""
        left_out: dict[str, None] = {}
        for sheet in self.sheets:
            if sheet.title:
                yield Text(visible(sheet.title), "bold")
            if sheet.header or sheet.rows:
                cells = table(sheet.header, sheet.rows, sheet.right, sheet.spare)
                yield cells
                left_out |= dict.fromkeys(cells.left_out(options.max_width))
            yield from (Text(visible(note), "dim") for note in sheet.notes)
        if left_out:
            names = ", ".join(left_out)
            yield Text(f"not shown in {options.max_width} columns: {names}; --output json has all", "dim")


def as_text(report: Report) -> ReportText:
    """Return a report as it is printed."""
    return ReportText(report.sheets())
