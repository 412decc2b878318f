"""`rookery history`."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.options import options_of
from rookery.cli.render import show

HistoryUrl = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="URL",
        help="Where runs are recorded: a database URL; SQLite in Rookery's home by default. "
        "Also $ROOKERY_HISTORY.",
    ),
]


def history(
    context: typer.Context,
    table: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="A table by its name, or a pattern such as 'db.*'."),
    ] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many runs.")] = 20,
    url: HistoryUrl = None,
) -> None:
    """Show the runs of `maintain` and `watch`, newest first.

    Each run is shown with its cause, steps, numbers before and after, duration, bytes and errors.
    """
    from rookery.api.history import history as runs_of  # brings SQLAlchemy

    options = options_of(context)
    show(runs_of(table, limit=limit, url=url), options)
