"""`rookery analyze` and `rookery stats`."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.console import say_error
from rookery.cli.options import Conf, Master, options_of, split_names
from rookery.cli.progress import progress_bar
from rookery.cli.render import show
from rookery.model import Engine, UsageError

Names = Annotated[
    list[str], typer.Argument(metavar="TABLE…", help="Tables by name, or patterns such as 'db.*'.")
]


def analyze(
    context: typer.Context,
    tables: Names,
    columns: Annotated[list[str] | None, typer.Option(help="Only these columns; may be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Not these columns; may be repeated.")] = None,
    column_set: Annotated[
        list[str] | None,
        typer.Option(
            "--column-set",
            "--together",
            help="Count the distinct combinations of these columns, such as a,b; may be repeated.",
        ),
    ] = None,
    histogram: Annotated[
        list[str] | None, typer.Option(help="Collect quantiles of these columns; may be repeated.")
    ] = None,
    top_k: Annotated[
        list[str] | None,
        typer.Option("--top-k", help="Collect frequent values of these columns; may be repeated."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(help="Row groups to read per file for --histogram and --top-k; 0 for all.")
    ] = None,
    drop_column_set: Annotated[
        list[str] | None,
        typer.Option(
            "--drop-column-set", "--drop-together", help="Drop this column set, such as a,b; may be repeated."
        ),
    ] = None,
    drop_histogram: Annotated[
        list[str] | None, typer.Option(help="Drop the quantiles of these columns; may be repeated.")
    ] = None,
    drop_top_k: Annotated[
        list[str] | None,
        typer.Option("--drop-top-k", help="Drop the frequent values of these columns; may be repeated."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Read all files again.")] = False,
    snapshot: Annotated[int | None, typer.Option(help="Use this snapshot instead of the newest.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be read.")] = False,
    engine: Annotated[
        Engine,
        typer.Option(
            help="Where the work is done: in this process without Java, on Spark, or by what is best for it."
        ),
    ] = Engine.AUTO,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Bring the statistics of tables up to date, reading only the files that are new.

    The number of distinct values of every column, nested ones too, is stored beside the table and registered
    with it, so that Spark and Trino plan with it. Names of columns may be separated by commas; a
    name includes all columns below it.
    """
    from rookery.api.analyze_tables import analyze_tables  # brings PyIceberg

    options = options_of(context)
    report = analyze_tables(
        options.lake(),
        tables,
        master=master,
        conf=pairs(conf or []),
        engine=engine,
        progress=progress_bar,
        tell=say_error,
        columns=split_names(columns),
        exclude=split_names(exclude),
        column_sets=[split_names([names]) for names in column_set or ()],
        histogram=split_names(histogram),
        top_k=split_names(top_k),
        sample=sample,
        drop_column_sets=[split_names([names]) for names in drop_column_set or ()],
        drop_histogram=split_names(drop_histogram),
        drop_top_k=split_names(drop_top_k),
        full=full,
        snapshot=snapshot,
        dry_run=dry_run,
    )
    alone = len(report.tables) == 1 and not report.failed
    show(report.tables[0] if alone else report, options)


def stats(
    context: typer.Context,
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A table by its name, or by its metadata file.")
    ],
    partition: Annotated[
        str | None, typer.Option(help="Only files of this partition: field=value, several with commas.")
    ] = None,
    snapshot: Annotated[int | None, typer.Option(help="Use this snapshot instead of the newest.")] = None,
) -> None:
    """Show the statistics of each column: distinct values with their certainty, nulls, minimum and maximum.

    Reads metadata only, and starts no Spark. A minimum or maximum marked ≥ or ≤ is a bound that may
    not occur in the data; NaN is neither. If numbers are not known, the reason is shown below the table.
    """
    from rookery.api.table import table as handle  # brings PyIceberg

    options = options_of(context)
    show(handle(table, options.lake()).stats(partition=partition, snapshot=snapshot), options)


def pairs(words: list[str]) -> dict[str, str]:
    """Parse `key=value` arguments."""
    split = [word.partition("=") for word in words]
    for key, separator, _ in split:
        if not key or not separator:
            raise UsageError(f"'{key}' is not key=value", hint="use --conf spark.some.key=value")
    return {key: value for key, _, value in split}
