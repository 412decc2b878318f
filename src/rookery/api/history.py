"""The history of runs: what was done to tables, why, and the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rookery.maintain.runs.database import history_url
from rookery.maintain.runs.history import History, RunRecord, Tally
from rookery.maintain.steps.step import Outcome, StepReport
from rookery.model import Report, Sheet, UsageError, counted, in_bytes, thousands
from rookery.tables.config import sqlite_path

__all__ = ["HistoryReport", "history", "tally"]

LIMIT = 20
_HEADER = ("step", "result", "took", "before → after", "bytes", "why")


@dataclass(frozen=True, slots=True)
class HistoryReport(Report):
    """Runs, newest first."""

    runs: tuple[RunRecord, ...]
    of: str | None = None  # the tables that were requested, by a name or pattern

    def sheets(self) -> Sequence[Sheet]:
        """A sheet per run, with one line per step that was needed."""
        if not self.runs:
            title = f"no runs of {self.of} are recorded" if self.of else "no runs are recorded"
            return [Sheet(title, notes=("`rookery maintain` and `rookery watch` record them",))]
        return [Sheet(counted(len(self.runs), "run")), *map(_sheet, self.runs)]


def history(table: str | None = None, *, limit: int = LIMIT, url: str | None = None) -> HistoryReport:
    """Return the newest runs of all tables, or of those that match a name or pattern."""
    if limit < 1:
        raise UsageError(f"{limit} runs cannot be shown", hint="use --limit 1 or more")
    with _opened(url) as kept:
        return HistoryReport(() if kept is None else tuple(kept.runs(table, limit)), table)


def tally(url: str | None = None) -> Tally | None:
    """Count all runs; None if there is no history."""
    with _opened(url) as kept:
        return None if kept is None else kept.tally()


@contextmanager
def _opened(url: str | None) -> Iterator[History | None]:
    """The history, if there is one; none is created."""
    file = sqlite_path(history_url(url))
    if file is not None and not file.startswith("file:") and not Path(file).exists():
        if url and not Path(file).parent.is_dir():
            raise UsageError(f"there is no folder {Path(file).parent}", hint="check --history")
        yield None
        return
    kept = History(url)
    try:
        yield kept
    finally:
        kept.close()


def _sheet(run: RunRecord) -> Sheet:
    outcome = "running" if run.outcome is None else run.outcome.value
    took = "" if run.seconds is None else f" in {_took(run.seconds)}"
    title = f"{run.started:%Y-%m-%d %H:%M:%S} UTC  {run.table}: {outcome}{took}" + (
        f", {run.cause}" if run.cause else ""
    )
    rows = tuple(_step(step) for step in run.steps if step.outcome is not Outcome.NOT_NEEDED)
    return Sheet(title, _HEADER if rows else (), rows, right=frozenset({2, 4}), spare=(4, 2))


def _step(step: StepReport) -> tuple[str, ...]:
    outcome = step.outcome.value if step.attempts <= 1 else f"{step.outcome.value}, attempt {step.attempts}"
    message = step.why if step.error is None else step.error
    size = in_bytes(step.bytes) if step.bytes else ""
    return step.step, outcome, _took(step.seconds), changes(step.before, step.after), size, message


def changes(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """Return which numbers changed, and to what.

    >>> changes({"files": 12, "snapshots": 3}, {"files": 1, "snapshots": 3})
    'files 12 → 1'
    """
    moved = {name: value for name, value in before.items() if name in after and after[name] != value}
    return ", ".join(
        f"{name} {_number(name, value)} → {_number(name, after[name])}" for name, value in moved.items()
    )


def _number(name: str, value: float | None) -> str:
    if name.endswith("bytes"):
        return in_bytes(value)
    return thousands(value) if value is None or float(value).is_integer() else f"{value:.3g}"


def _took(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:,.1f} s"
