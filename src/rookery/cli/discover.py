"""`rookery discover`."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.api.discover_kinds import LEAST_CONFIDENCE, DiscoverKind
from rookery.cli.options import options_of
from rookery.cli.render import show


def discover(
    context: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATTERN]…", help="Tables by name, or patterns; all by default."),
    ] = None,
    kind: Annotated[
        list[DiscoverKind] | None, typer.Option(help="What to look for; may be repeated. All by default.")
    ] = None,
    min_confidence: Annotated[
        float, typer.Option(help="Show only results with at least this confidence, from 0 to 1.")
    ] = LEAST_CONFIDENCE,
) -> None:
    """Find foreign keys, unique keys, dependencies, and columns with the same values.

    Compares the sketches that `analyze` has stored; reads no data files, and starts no Spark.
    """
    from rookery.api.discover import discover as look  # brings PyIceberg

    options = options_of(context)
    report = look(options.lake(), patterns or ("*",), kinds=kind or (), min_confidence=min_confidence)
    show(report, options)
