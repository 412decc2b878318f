"""Reports: what commands return. A report knows how to lay itself out as sheets, whatever draws them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

_UNITS = ("kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A title, a table under it, and lines below; cells are text."""

    title: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    right: frozenset[int] = field(default_factory=frozenset)  # columns of numbers

    def html(self) -> str:
        """The sheet as HTML, for notebooks."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.header)
        body = "".join("<tr>" + "".join(map(self._cell, range(len(row)), row)) + "</tr>" for row in self.rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if self.header else ""
        return f"<p><b>{escape(self.title)}</b></p>{table}{notes}"

    def _cell(self, column: int, text: str) -> str:
        style = ' style="text-align:right"' if column in self.right else ""
        return f"<td{style}>{escape(text)}</td>"


class SheetReport:
    """A report that is drawn as sheets; notebooks show it as HTML."""

    __slots__ = ()
    has_findings = False

    def sheets(self) -> Sequence[Sheet]:
        """Lay the report out."""
        raise TypeError(f"{type(self).__name__} does not say how it looks")

    def _repr_html_(self) -> str:
        return "".join(sheet.html() for sheet in self.sheets())


def thousands(value: float | None) -> str:
    """Say a number with thousands set apart, or a dash for none.

    >>> thousands(1234567.8), thousands(None)
    ('1,234,568', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def in_bytes(count: float | None) -> str:
    """Say a number of bytes as people do.

    >>> in_bytes(12), in_bytes(123_456), in_bytes(None)
    ('12 bytes', '123.5 kB', '–')
    """
    if count is None:
        return "–"
    if count < 1000:
        return f"{count:.0f} bytes"
    power = min(int(math.log10(count)) // 3, len(_UNITS))
    return f"{count / 1000**power:.1f} {_UNITS[power - 1]}"
