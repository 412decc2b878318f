"""`rookery explain`, `read`, `count` and `estimate`."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.options import options_of, split_names
from rookery.cli.render import show
from rookery.model import UsageError

TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="A table by its name, or by its metadata file.")
]
Where = Annotated[
    str | None, typer.Argument(metavar="[WHERE]", help="A predicate, as after WHERE in Spark SQL.")
]
Snapshot = Annotated[int | None, typer.Option(help="Use this snapshot instead of the newest.")]
Zone = Annotated[str, typer.Option(help="The time zone of local times in the predicate.")]


def explain(
    context: typer.Context,
    table: TableName,
    where: Annotated[str, typer.Argument(metavar="WHERE", help="A predicate, as after WHERE in Spark SQL.")],
    snapshot: Snapshot = None,
    inside: Annotated[
        int, typer.Option(help="Examine the row groups and pages of at most this many remaining files.")
    ] = 64,
    time_zone: Zone = "UTC",
) -> None:
    """Show which files, row groups and pages must be read for a predicate, stage by stage, and why.

    Reads metadata and indexes only, and starts no Spark.
    """
    from rookery.api.table import table as handle  # brings PyIceberg

    options = options_of(context)
    report = handle(table, options.lake()).explain(
        where, snapshot=snapshot, inside=inside, time_zone=time_zone
    )
    show(report, options)


def read(
    context: typer.Context,
    table: TableName,
    where: Where = None,
    columns: Annotated[list[str] | None, typer.Option(help="Only these columns; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(help="Read at most this many rows.", min=0)] = None,
    snapshot: Snapshot = None,
    time_zone: Zone = "UTC",
) -> None:
    """Print the matching rows, with all deletes applied, reading only pages that may contain some.

    With `--output jsonl`, `csv`, `arrow` or `parquet` the rows go to standard output in that format. In CSV,
    nested values are JSON, null is empty, and empty text is "". Starts no Spark.
    """
    from rookery.api.table import table as handle  # brings PyIceberg
    from rookery.cli.rows import ROW_FORMATS, check_output, show_rows

    options = options_of(context, *ROW_FORMATS)
    check_output(options)
    rows = handle(table, options.lake()).read_batches(
        where, split_names(columns) or None, limit, snapshot=snapshot, time_zone=time_zone
    )
    show_rows(rows, options)


def count(
    context: typer.Context,
    table: TableName,
    where: Where = None,
    snapshot: Snapshot = None,
    time_zone: Zone = "UTC",
) -> None:
    """Print how many rows match: from indexes and metadata alone where they suffice."""
    from rookery.api.count import count as count_matching  # brings PyIceberg
    from rookery.api.table import table as handle

    options = options_of(context)
    opened = handle(table, options.lake()).load()
    show(count_matching(*opened, where, snapshot=snapshot, zone=time_zone), options)


def estimate(
    context: typer.Context,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="A table by its name, or by its metadata file.")
    ] = None,
    where: Where = None,
    group_by: Annotated[
        str | None, typer.Option(help="Estimate the distinct combinations of these columns too, such as a,b.")
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(help="Show Spark's estimates for the plan of this query, without Rookery and attached."),
    ] = None,
    actual: Annotated[
        bool, typer.Option("--actual", help="Run the query of --sql, and count its rows.")
    ] = False,
    snapshot: Snapshot = None,
    time_zone: Zone = "UTC",
) -> None:
    """Estimate how many rows match, from statistics, indexes and metadata alone.

    Shows bounds, and the source of the estimate of each condition. Reads no data files, and starts no Spark.
    With --sql, starts Spark and shows what it estimates for each node of a query's plan, without Rookery and
    with it attached.
    """
    options = options_of(context)
    if sql is not None:
        if table is not None or group_by is not None or snapshot is not None or time_zone != "UTC":
            raise UsageError("--sql takes a whole query", hint="omit the table and the other options")
        from rookery.api.plan_estimates import plan_estimates

        show(plan_estimates(sql, options.lake(), actual=actual), options)
        return
    if table is None or actual:
        hint = "rookery estimate TABLE [WHERE], or rookery estimate --sql QUERY [--actual]"
        raise UsageError("a table is missing" if table is None else "--actual belongs to --sql", hint=hint)
    from rookery.api.table import table as handle  # brings PyIceberg

    report = handle(table, options.lake()).estimate(
        where, group_by=split_names([group_by or ""]), snapshot=snapshot, time_zone=time_zone
    )
    show(report, options)
