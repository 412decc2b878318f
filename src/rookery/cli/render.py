"""The one renderer: a report becomes text for people, or JSON for programs, on standard output."""

from __future__ import annotations

import sys

import typer

from rookery.cli.console import out, plain, say
from rookery.cli.options import Options, Output
from rookery.cli.sheets import as_text
from rookery.model import Report


def show(report: Report, options: Options) -> None:
    """Print a report, and exit with 1 if it has findings."""
    if options.output is Output.JSON:
        sys.stdout.write(report.json() + "\n")
    else:
        out().print(as_text(report))
    if options.debug:
        for line in report.details():
            say(f"[dim]{plain(line)}[/]")
    if report.has_findings:
        raise typer.Exit(1)
