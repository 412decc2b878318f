"""`rookery load`."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.options import options_of
from rookery.cli.render import show
from rookery.model import UsageError


def load(
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE… TABLE",
            help="Files, folders, patterns or URLs: Parquet, CSV, JSON Lines, ORC or Arrow; then the table.",
        ),
    ],
    partition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Partition by a column, or by day(c), bucket(16, c) or truncate(4, c); may be repeated.",
        ),
    ] = None,
    sort: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Sort by a column, such as 'ts desc'; may be repeated."),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Add the rows to a table, which must exist.")
    ] = False,
) -> None:
    """Make a table of files, or add their rows to one.

    Creates the namespace and the table in the catalog, and starts no Spark. All rows appear in one commit; if
    a row cannot be read, nothing is loaded.
    """
    *files, table = words
    if not files:
        raise UsageError(f"which files are to be loaded into {table}?", hint="rookery load FILE… TABLE")
    options = options_of(context)
    lake = options.lake()
    show(lake.load_files(files, table, partition=partition or (), sort=sort or (), append=append), options)
