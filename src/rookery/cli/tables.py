"""`rookery tables` and `rookery describe`."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.options import options_of
from rookery.cli.render import show


def tables(
    context: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATTERN]…", help="Tables by name, or patterns; all by default."),
    ] = None,
) -> None:
    """List the tables of a catalog: rows, files, size, format version and last commit.

    Reads one metadata file of each table: numbers are those that its writers state. A table that cannot be
    loaded is listed with the reason; the exit code is then 1.
    """
    from rookery.api.tables import list_tables  # brings PyIceberg

    options = options_of(context)
    show(list_tables(options.lake(), patterns or ("*",)), options)


def describe(
    context: typer.Context,
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A table by its name, or by its metadata file.")
    ],
) -> None:
    """Show what a table is: columns, partitions, sort order, properties, files, snapshots, branches and tags.

    Reads metadata only, and starts no Spark.
    """
    from rookery.api.table import table as handle  # brings PyIceberg

    options = options_of(context)
    show(handle(table, options.lake()).describe(), options)
