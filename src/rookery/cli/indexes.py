"""`rookery index`: add, list and drop."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.render import show
from rookery.cli.settings import settings_of

app = typer.Typer(no_args_is_help=True, help="Declare indexes that let files be skipped.")
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="A table by its name.")]
Kind = Annotated[
    str, typer.Argument(metavar="KIND", help="bloom, for many distinct values; bitmap, for few.")
]
Column = Annotated[str, typer.Argument(metavar="COLUMN", help="A column; one in a struct as a.b.")]


@app.command("add")
def add(
    context: typer.Context,
    table: TableName,
    kind: Kind,
    column: Column,
    fpp: Annotated[
        float | None, typer.Option(help="The false-positive rate of a Bloom index, for each file; 0.001.")
    ] = None,
) -> None:
    """Declare an index on a column. The next `analyze` builds it, and each one after keeps it current.

    A Bloom index tells which files may hold a value, and serves = and IN on columns of many distinct values.
    A bitmap index knows the rows of each value of a column of few, and counts without reading data.
    """
    from rookery.api.table import table as handle  # brings PyIceberg

    settings = settings_of(context)
    show(handle(table, settings.lake()).add_index(kind, column, fpp=fpp), settings)


@app.command("list")
def list_(context: typer.Context, table: TableName) -> None:
    """Show the indexes of a table, and how many of its files each covers."""
    from rookery.api.table import table as handle  # brings PyIceberg

    settings = settings_of(context)
    show(handle(table, settings.lake()).indexes(), settings)


@app.command("drop")
def drop(context: typer.Context, table: TableName, kind: Kind, column: Column) -> None:
    """Take an index back. Nothing is read or written but the state beside the table."""
    from rookery.api.table import table as handle  # brings PyIceberg

    settings = settings_of(context)
    show(handle(table, settings.lake()).drop_index(kind, column), settings)
