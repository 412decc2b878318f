"""The options that every command shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rookery.model import UsageError

if TYPE_CHECKING:
    from rookery.api.lake import Lake


PolicyFile = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="The policy file; by default $ROOKERY_POLICY, or rookery.yaml in the working directory.",
    ),
]


Master = Annotated[str | None, typer.Option(help="Spark's master; local by default.")]
Conf = Annotated[list[str] | None, typer.Option(help="Spark's configuration, key=value; may be repeated.")]
CatalogTimeout = Annotated[
    str,
    typer.Option(
        "--catalog-timeout",
        "--patience",
        metavar="TIME",
        help="How long to wait for a catalog that does not answer.",
    ),
]


class Output(StrEnum):
    """How a report is printed."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"  # this and the next ones: of rows alone
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"
    PROMETHEUS = "prometheus"  # of statuses alone


@dataclass(frozen=True, slots=True)
class Options:
    """The shared options, given before or after the command."""

    catalog: str | None = None
    uri: str | None = None
    warehouse: str | None = None
    output: Output = Output.TEXT
    debug: bool = False

    def lake(self) -> Lake:
        """Return the selected lake."""
        # Importing PyIceberg takes half a second, which local files do not need.
        from rookery.api.lake import connect

        return connect(self.catalog, uri=self.uri, warehouse=self.warehouse)

    def properties_for(self, table: str | None, *locations: str) -> Mapping[str, str]:
        """Return the properties to access URLs among the locations: the catalog's, or a table's."""
        from rookery.api.puffin_files import is_remote  # brings PyIceberg

        if not any(map(is_remote, locations)):
            return {}
        return self.lake().open(table)[0].io_properties if table else self.lake().properties


def split_names(options: list[str] | None) -> list[str]:
    """Return the names in options that may be repeated, and may list several with commas."""
    return [part.strip() for option in options or () for part in option.split(",") if part.strip()]


def seconds_of(catalog_timeout: str) -> float:
    """Return how long to wait, in seconds."""
    from rookery.api.durations import parse_duration  # which the other commands need not pay for

    seconds = parse_duration(catalog_timeout).total_seconds()
    if seconds < 0:
        raise UsageError(
            f"{catalog_timeout} is not a timeout", hint="use --catalog-timeout 60s, or 0s not to wait"
        )
    return seconds


def options_of(context: typer.Context, *others: Output) -> Options:
    """Return the options that the root command has put into the context.

    A report is printed as text or JSON; *others* are what the command can print too. Any other output is
    refused before the command does anything.
    """
    options = context.find_object(Options)
    assert options is not None
    if options.output not in (Output.TEXT, Output.JSON, *others):
        able = "status` prints tables" if options.output is Output.PROMETHEUS else "read` prints rows"
        raise UsageError(f"this cannot be printed as {options.output.value}", hint=f"`rookery {able} as that")
    return options
