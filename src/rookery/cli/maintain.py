"""`rookery maintain`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from rookery.cli.console import plain, say
from rookery.cli.history import HistoryUrl
from rookery.cli.options import (
    CatalogTimeout,
    Conf,
    Master,
    PolicyFile,
    options_of,
    seconds_of,
    split_names,
)
from rookery.cli.progress import progress_bar
from rookery.cli.render import show
from rookery.cli.statistics import pairs


def maintain(
    context: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATTERN]…", help="Tables by name, or patterns; all by default."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be done, and why; starts no Spark."),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STEP",
            help="Run only this step, by its name or by its word in policies, such as compaction; "
            "may be repeated.",
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Of several tables, show also what is not needed, and why."),
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Allow what is refused by default: no retention, in quiet hours, more orphan files than "
            "orphans.max-share, in a folder that another table or catalog may use.",
        ),
    ] = False,
    trash: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Move orphan files to this folder; by default as the policy sets."),
    ] = None,
    policy: PolicyFile = None,
    history: HistoryUrl = None,
    catalog_timeout: CatalogTimeout = "60s",
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Maintain tables by their policies, with Iceberg's own procedures, and verify each step.

    The steps, in their order: expire snapshots, remove orphan files, rewrite data files, rewrite deletes,
    rewrite manifests, refresh statistics, clean up. If a step fails, the steps that depend on it are skipped,
    other tables are still maintained, and the exit code is 1. A table that another run is maintaining is left
    to that run, as taken, which alone does not change the exit code. The next run completes an interrupted
    one.
    """
    from rookery.api.maintain import maintain as run  # brings PyIceberg

    options = options_of(context)
    report = run(
        options.lake(),
        patterns or ("*",),
        only=split_names(only),
        dry_run=dry_run,
        yes=yes,
        policy=policy,
        history=history,
        catalog_timeout=seconds_of(catalog_timeout),
        trash=trash,
        master=master,
        conf=pairs(conf or []),
        tell=lambda message: say(f"[dim]{plain(message)}[/]"),
        progress=progress_bar,
    )
    show(replace(report, verbose=verbose), options)
