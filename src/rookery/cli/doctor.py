"""`rookery doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from rookery.cli.options import options_of
from rookery.cli.render import show


def doctor(
    context: typer.Context,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this check: python, java, spark, jars, catalog, read, write or others; "
            "may be repeated."
        ),
    ] = None,
) -> None:
    """Check Python, Java, Spark, jars, catalogs and access to their tables, and show how to fix problems."""
    from rookery.api.doctor import doctor as examine  # brings PyIceberg, which other commands do without

    options = options_of(context)
    show(examine(options.lake(), tuple(only or ())), options)
