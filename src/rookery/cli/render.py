"""The one renderer: a report becomes text for people, or JSON for programs, on standard output."""

from __future__ import annotations

import os
import sys
from functools import singledispatch
from typing import Protocol

import msgspec
import typer
from rich.console import Console, RenderableType

from rookery.cli.settings import Output, Settings

WIDE = 200  # columns of what goes to a pipe, so that nothing is folded there


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
    return Console(file=sys.stdout, width=width, highlight=False, soft_wrap=width is not None)


def talk() -> Console:
    """The console for everything that is not data."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def as_json(report: object) -> str:
    """Return a report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def show(report: Report, settings: Settings) -> None:
    """Print a report, and leave with 1 if it found something amiss."""
    if settings.output is Output.JSON:
        sys.stdout.write(as_json(report) + "\n")
    else:
        out().print(as_text(report))
    if report.has_findings:
        raise typer.Exit(1)
