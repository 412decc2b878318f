"""`rookery index`: add, list and drop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from rookery.cli.help import HelpfulCommand, group
from rookery.cli.options import options_of
from rookery.cli.render import show

if TYPE_CHECKING:
    from rookery.api.indexes import IndexKindView

app = group(help="Add, list and drop indexes.")
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="A table by its name.")]
Kind = Annotated[str, typer.Argument(metavar="KIND", help="A kind of index, such as bloom.")]
Column = Annotated[str, typer.Argument(metavar="COLUMN", help="A column; a field of a struct as a.b.")]


class KindsCommand(HelpfulCommand):
    """A command whose help lists the kinds of index; they are imported when it is shown."""

    def kinds(self) -> Sequence[IndexKindView]:
        """Return name, summary and default false-positive rate of each kind."""
        from rookery.api.indexes import index_kinds  # brings PyIceberg

        return index_kinds().kinds

    def notes(self) -> Sequence[str]:
        """Return the kinds."""
        return [escape(f"{kind.name}: {kind.summary}") for kind in self.kinds()]


@app.command("add", cls=KindsCommand)
def add(
    context: typer.Context,
    table: TableName,
    kind: Kind,
    column: Column,
    fpp: Annotated[
        float | None, typer.Option(help="The false-positive rate per file, for kinds that have one.")
    ] = None,
) -> None:
    """Declare an index on a column. The next `analyze` builds it, and later ones keep it current."""
    from rookery.api.table import table as handle  # brings PyIceberg

    options = options_of(context)
    show(handle(table, options.lake()).add_index(kind, column, fpp=fpp), options)


@app.command("list")
def list_(context: typer.Context, table: TableName) -> None:
    """Show the indexes of a table, and how many of its files each covers."""
    from rookery.api.table import table as handle  # brings PyIceberg

    options = options_of(context)
    show(handle(table, options.lake()).indexes(), options)


@app.command("drop")
def drop(context: typer.Context, table: TableName, kind: Kind, column: Column) -> None:
    """Drop an index. Only the state beside the table is read and written."""
    from rookery.api.table import table as handle  # brings PyIceberg

    options = options_of(context)
    show(handle(table, options.lake()).drop_index(kind, column), options)
