"""Reports: what calls return. A report is data that converts to tables (sheets) for any renderer."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from rookery.model.errors import MachineError

if TYPE_CHECKING:
    import pandas

_LINES = re.compile(r"tuple\[(\w+), \.\.\.\]")
_UNITS = ("kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A title, a table under it, and lines below; cells are text. Title and header are optional."""

    title: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    right: frozenset[int] = field(default_factory=frozenset)  # columns of numbers
    # Columns that a narrow terminal leaves out, the least important first; the first column is then a name.
    spare: tuple[int, ...] = ()

    def __str__(self) -> str:
        """The sheet as plain text.

        >>> print(Sheet("t", ("name", "n"), (("a", "12"), ("bcde", "3")), right=frozenset({1})))
        t
        name   n
        a     12
        bcde   3
        """
        lines = [self.header, *self.rows] if self.header else self.rows
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        laid_out = [
            "  ".join(
                cell.rjust(width) if number in self.right else cell.ljust(width)
                for number, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join((*([self.title] if self.title else []), *laid_out, *self.notes))

    def html(self) -> str:
        """The sheet as HTML, for notebooks."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.header)
        body = "".join("<tr>" + "".join(map(self._cell, range(len(row)), row)) + "</tr>" for row in self.rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        head = f"<thead><tr>{head}</tr></thead>" if head else ""
        table = f"<table>{head}<tbody>{body}</tbody></table>" if head or body else ""
        title = f"<p><b>{escape(self.title)}</b></p>" if self.title else ""
        return f"{title}{table}{notes}"

    def _cell(self, column: int, text: str) -> str:
        style = ' style="text-align:right"' if column in self.right else ""
        return f"<td{style}>{escape(text)}</td>"


class Report:
    """The result of a call: a dataclass that converts to JSON, and to tables for print and notebooks."""

    __slots__ = ()
    has_findings = False

    def json(self) -> str:
        """The report as indented JSON; NaN and infinities are text, as JSON has no numbers for them."""
        import msgspec  # which `import rookery` need not pay for

        return msgspec.json.format(msgspec.json.encode(self.to_dict()), indent=2).decode()

    def to_dict(self) -> dict[str, Any]:
        """The report as a dictionary, with what its JSON contains."""
        plain: dict[str, Any] = _finite(self._plain())
        return plain

    def to_pandas(self) -> pandas.DataFrame:
        """The report's lines as a data frame, such as a row per column; a row in all if it has no lines."""
        try:
            import pandas  # which is optional
        except ModuleNotFoundError as error:
            raise MachineError("the package pandas is not installed", hint="pip install pandas") from error
        plain, lines = self._plain(), self._lines()
        if lines is None:
            return pandas.DataFrame([plain])
        name, columns = lines
        return pandas.DataFrame(plain[name], columns=columns)

    def _plain(self) -> dict[str, Any]:
        import msgspec  # which `import rookery` need not pay for

        plain: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return plain

    def _lines(self) -> tuple[str, list[str]] | None:
        """The first field that holds dataclasses, and the names of their fields."""
        known = vars(sys.modules[type(self).__module__])
        for each in fields(self):  # type: ignore[arg-type]  # every report is a dataclass
            match = _LINES.fullmatch(str(each.type))
            line = known.get(match[1]) if match else None
            if is_dataclass(line):
                return each.name, [part.name for part in fields(line)]
        return None

    def details(self) -> Sequence[str]:
        """Return lines for those who look for the cause of something: shown with `--debug`."""
        return ()

    def sheets(self) -> Sequence[Sheet]:
        """Return the report as tables."""
        raise TypeError(f"{type(self).__name__} has no rows to show")

    def __str__(self) -> str:
        return "\n".join(map(str, self.sheets()))

    def _repr_html_(self) -> str:
        return "".join(sheet.html() for sheet in self.sheets())


def number_text(value: float) -> str:
    """Return numbers that JSON lacks as text, as Spark's to_json does.

    >>> number_text(math.nan), number_text(-math.inf)
    ('NaN', '-Infinity')
    """
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return number_text(value)
        case dict():
            return {key: _finite(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_finite(each) for each in value]
    return value


def counted(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun.

    >>> counted(1, "file"), counted(1234, "file"), counted(2, "index", "indexes")
    ('1 file', '1,234 files', '2 indexes')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def thousands(value: float | None) -> str:
    """Format a number with thousands separators, or a dash for None.

    >>> thousands(1234567.8), thousands(None)
    ('1,234,568', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def percent(share: float) -> str:
    """Format a share in percent; only the whole is 100%.

    >>> percent(0.5), percent(0.998), percent(1.0)
    ('50%', '99%', '100%')
    """
    return f"{share:.0%}" if share >= 1 else f"{min(round(share * 100), 99)}%"


def in_bytes(count: float | None) -> str:
    """Format a number of bytes with a unit.

    >>> in_bytes(12), in_bytes(123_456), in_bytes(None)
    ('12 bytes', '123.5 kB', '–')
    """
    if count is None:
        return "–"
    if count < 1000:
        return f"{count:.0f} bytes"
    power = min(int(math.log10(count)) // 3, len(_UNITS))
    return f"{count / 1000**power:.1f} {_UNITS[power - 1]}"
