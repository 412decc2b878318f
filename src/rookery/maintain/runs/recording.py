"""A run with its record: begun before the first step, and ended however it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable

from rookery.maintain.runs.history import History
from rookery.maintain.steps.step import Outcome, StepReport, TableRun
from rookery.model import RookeryError

log = logging.getLogger(__name__)

WHOLE = "run"  # in place of a step where the run itself failed
Record = Callable[[StepReport], None]


def recorded(history: History, table: str, cause: str, work: Callable[[Record], TableRun]) -> TableRun:
    """Execute a run, recording each step as it ends; the caller holds the table's lease.

    A history that cannot be written stops a run from beginning, but not one that has begun.
    """
    history.close_interrupted(table)
    run = history.begin(table, cause)

    def record(report: StepReport) -> None:
        _log_step(table, run, report)
        _kept(lambda: history.step(run, report))

    try:
        done = work(record)
    except BaseException as error:
        failed = isinstance(error, Exception)
        if failed:
            record(StepReport(WHOLE, Outcome.FAILED, cause, error=str(error) or type(error).__name__))
        _kept(lambda: history.end(run, Outcome.FAILED if failed else Outcome.STOPPED))
        raise
    _kept(lambda: history.end(run, done.outcome))
    return done


def _kept(write: Callable[[], None]) -> None:
    try:
        write()
    except RookeryError as error:
        log.warning("history could not be written: %s", error)


def _log_step(table: str, run: int, report: StepReport) -> None:
    level = logging.WARNING if report.outcome is Outcome.FAILED else logging.INFO
    if report.outcome is Outcome.NOT_NEEDED:
        level = logging.DEBUG
    message = report.error if report.error is not None else report.why
    facts = {
        "table": table,
        "run": run,
        "step": report.step,
        "outcome": report.outcome.value,
        "seconds": round(report.seconds, 3),
        "files": report.files,
        "bytes": report.bytes,
        "error": report.error,
    }
    log.log(level, "%s: %s %s: %s", table, report.step, report.outcome.value, message, extra=facts)
