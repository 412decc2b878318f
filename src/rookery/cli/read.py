"""`rookery explain` and `rookery read`."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.render import show
from rookery.cli.settings import settings_of

TableName = Annotated[str, typer.Argument(metavar="TABLE", help="A table by its name.")]
Snapshot = Annotated[int | None, typer.Option(help="Of this snapshot, not the newest.")]
Zone = Annotated[str, typer.Option(help="The time zone of local times in the predicate.")]


def explain(
    context: typer.Context,
    table: TableName,
    where: Annotated[str, typer.Argument(metavar="WHERE", help="A predicate, as after WHERE in Spark SQL.")],
    snapshot: Snapshot = None,
    inside: Annotated[
        int, typer.Option(help="Look into the row groups and pages of at most this many remaining files.")
    ] = 64,
    time_zone: Zone = "UTC",
) -> None:
    """Show which files, row groups and pages a predicate leaves to be read, stage by stage, and why.

    Reads metadata and indexes only, and starts no Spark.
    """
    from rookery.api.table import table as handle  # brings PyIceberg

    settings = settings_of(context)
    report = handle(table, settings.lake()).explain(
        where, snapshot=snapshot, inside=inside, time_zone=time_zone
    )
    show(report, settings)


def read(
    context: typer.Context,
    table: TableName,
    where: Annotated[
        str | None, typer.Argument(metavar="[WHERE]", help="A predicate, as after WHERE in Spark SQL.")
    ] = None,
    columns: Annotated[list[str] | None, typer.Option(help="Only these columns; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(help="Read at most this many rows.", min=0)] = None,
    snapshot: Snapshot = None,
    time_zone: Zone = "UTC",
) -> None:
    """Print the rows that match, all deletes applied, reading only the pages that may have some.

    With `--output arrow` or `parquet` the rows go to standard output in that format. Starts no Spark.
    """
    from rookery.api.table import table as handle  # brings PyIceberg
    from rookery.cli.rows import check_output, show_rows

    settings = settings_of(context)
    check_output(settings)
    names = [part.strip() for name in columns or () for part in name.split(",") if part.strip()]
    rows = handle(table, settings.lake()).read(
        where, names or None, limit, snapshot=snapshot, time_zone=time_zone
    )
    show_rows(rows, settings)


def count(
    context: typer.Context,
    table: TableName,
    where: Annotated[
        str | None, typer.Argument(metavar="[WHERE]", help="A predicate, as after WHERE in Spark SQL.")
    ] = None,
    snapshot: Snapshot = None,
    time_zone: Zone = "UTC",
) -> None:
    """Print how many rows match: from indexes and metadata alone where they suffice."""
    from rookery.api.table import table as handle  # brings PyIceberg
    from rookery.cli.rows import CountReport

    settings = settings_of(context)
    matching = handle(table, settings.lake()).count(where, snapshot=snapshot, time_zone=time_zone)
    show(CountReport(table, where, matching), settings)
