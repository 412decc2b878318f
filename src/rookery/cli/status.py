"""`rookery status`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rookery.cli.console import say_error
from rookery.cli.history import HistoryUrl
from rookery.cli.options import Output, PolicyFile, options_of
from rookery.cli.render import show


def status(
    context: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATTERN]…", help="Tables by name, or patterns; all by default."),
    ] = None,
    columns: Annotated[bool, typer.Option("--columns", help="Show every column and index too.")] = False,
    policy: PolicyFile = None,
    history: HistoryUrl = None,
) -> None:
    """Show the status of tables: age of statistics, their visibility to engines, files and deletes.

    Reads metadata only, and starts no Spark. Tables with the lowest score come first; the exit code is 1 if
    something is below its policy.
    """
    from rookery.api.status import status as look  # brings PyIceberg

    options = options_of(context, Output.PROMETHEUS)
    report = look(options.lake(), patterns or ("*",), policy=policy, columns=columns)
    if options.output is Output.PROMETHEUS:
        from rookery.api.history import tally  # brings SQLAlchemy

        for failure in report.failed:
            say_error(f"{failure.table}: {failure.error}")
        sys.stdout.write(report.prometheus(tally(history)))
        raise typer.Exit(1 if report.has_findings else 0)
    show(report, options)
