"""The one renderer: a report becomes text for people, or JSON for programs, on standard output."""

from __future__ import annotations

import os
import sys
from functools import singledispatch
from typing import Literal, Protocol, TextIO

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.markup import escape

from rookery.cli.settings import Output, Settings
from rookery.model import UsageError

WIDE = 1 << 16  # columns of what goes to a pipe, so that nothing is folded or cut there
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}


class Report(Protocol):
    """What commands return: a dataclass that knows whether it found something amiss."""

    @property
    def has_findings(self) -> bool: ...  # noqa: D102


@singledispatch
def as_text(report: object) -> RenderableType:
    """Return the text view of a report; views register themselves by the report's type."""
    raise TypeError(f"there is no text view for {type(report).__name__}")


def out() -> Console:
    """The console for data. Colour goes only to terminals, and not where `NO_COLOR` is set."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    return _console(sys.stdout, width, soft_wrap=width is not None)


def talk() -> Console:
    """The console for everything that is not data."""
    return _console(sys.stderr, None, soft_wrap=True)


def _console(file: TextIO, width: int | None, *, soft_wrap: bool) -> Console:
    # Rich takes NO_COLOR for colours alone; bold and dim are escape codes as well.
    colors: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(
        file=file, width=width, color_system=colors, highlight=False, emoji=False, soft_wrap=soft_wrap
    )


def visible(text: str) -> str:
    """Make control characters visible: what a file says must not steer a terminal.

    >>> visible("a\\x1b[31m\\nb")
    'a\\\\x1b[31m\\\\x0ab'
    """
    return text.translate(_VISIBLE)


def plain(text: str) -> str:
    """Return a text from outside as markup that shows it as it is."""
    return escape(visible(text))


def as_json(report: object) -> str:
    """Return a report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def show(report: Report, settings: Settings) -> None:
    """Print a report, and leave with 1 if it found something amiss."""
    if settings.output not in (Output.TEXT, Output.JSON):
        able = "status` prints tables" if settings.output is Output.PROMETHEUS else "read` prints rows"
        raise UsageError(
            f"this cannot be printed as {settings.output.value}", hint=f"`rookery {able} as that"
        )
    if settings.output is Output.JSON:
        sys.stdout.write(as_json(report) + "\n")
    else:
        out().print(as_text(report))
    if report.has_findings:
        raise typer.Exit(1)
