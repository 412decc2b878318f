"""`rookery watch`."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Annotated

import typer

from rookery.cli.history import HistoryUrl
from rookery.cli.options import (
    CatalogTimeout,
    Conf,
    Master,
    PolicyFile,
    options_of,
    seconds_of,
)
from rookery.cli.render import show
from rookery.cli.statistics import pairs
from rookery.model import UsageError
from rookery.model.interrupts import SIGNALLED


def watch(
    context: typer.Context,
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATTERN]…", help="Tables by name, or patterns such as 'db.*'; all by default."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Check each table once, and exit.")] = False,
    every: Annotated[str, typer.Option(metavar="TIME", help="Interval between checks: 90s, 5m, 1h.")] = "5m",
    jobs: Annotated[int, typer.Option(help="Number of tables to maintain at once.")] = 2,
    policy: PolicyFile = None,
    history: HistoryUrl = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve /metrics and /healthz at this address.")
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="URL to notify of tables that fail or stay below policy; also $ROOKERY_WEBHOOK.",
            envvar="ROOKERY_WEBHOOK",
            show_envvar=False,
        ),
    ] = None,
    log_format: Annotated[
        str, typer.Option("--log-format", metavar="text|json", help="Format of the log.")
    ] = "text",
    catalog_timeout: CatalogTimeout = "60s",
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Keep tables within their policies, until stopped by SIGTERM or Ctrl-C.

    Tables that are below their policy, or due by their schedule, are maintained: several at once, but each
    table by one run at a time, also with several watchers. With --once, each table is checked once, for cron,
    Airflow or Dagster; the exit code is 1 if a table failed or stays below its policy.
    """
    from rookery.api.durations import parse_duration
    from rookery.api.watch import LogFormat, Pace, logging_to, parse_address  # brings PyIceberg
    from rookery.api.watch import watch as keep

    options = options_of(context)
    if log_format not in list(LogFormat):
        raise UsageError(f"there is no log format '{log_format}'", hint="use text or json")
    interval, wait = parse_duration(every).total_seconds(), seconds_of(catalog_timeout)
    if interval <= 0 or jobs < 1:
        raise UsageError("--every and --jobs must be above zero", hint="omit them for the defaults")
    address = parse_address(metrics) if metrics is not None else None
    with logging_to(None, LogFormat(log_format)):
        report = keep(
            options.lake(),
            patterns or (),
            once=once,
            policy=policy,
            history=history,
            pace=Pace(interval, jobs, wait),
            metrics=address,
            webhook=webhook,
            master=master,
            conf=pairs(conf or []),
        )
    if not once:
        return
    with nullcontext() if report.signal is None else suppress(typer.Exit):
        show(report, options)
    if report.signal is not None:
        raise typer.Exit(SIGNALLED + report.signal)
