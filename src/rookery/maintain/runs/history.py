"""The record of every run: its cause, what each step did, and how it ended."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Engine,
    Float,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    func,
    insert,
    select,
    update,
)

from rookery.io.redaction import one_line
from rookery.maintain.runs.database import history_url, make_tables, open_engine, translate_db_errors
from rookery.maintain.runs.processes import is_gone, machine
from rookery.maintain.steps.step import Outcome, StepReport

METADATA = MetaData()
RUNS = Table(
    "rookery_runs",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("table_name", Text, nullable=False, index=True),
    Column("cause", Text, nullable=False),
    Column("outcome", String(20)),  # none: it runs
    Column("started", Float(53), nullable=False),
    Column("ended", Float(53)),
    Column("host", String(255), nullable=False),
    Column("pid", Integer, nullable=False),
)
STEPS = Table(
    "rookery_steps",
    METADATA,
    Column("run_id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("step", String(100), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("why", Text, nullable=False),
    Column("files", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("before", JSON, nullable=False),
    Column("after", JSON, nullable=False),
    Column("seconds", Float(53), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("error", Text),
    Column("hint", Text),
    Column("ended", Float(53), nullable=False),
)
_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it was recorded; with no outcome, it has not ended."""

    id: int
    table: str
    cause: str
    outcome: Outcome | None
    started: datetime
    ended: datetime | None
    host: str
    pid: int
    steps: tuple[StepReport, ...] = ()

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return None if self.ended is None else (self.ended - self.started).total_seconds()


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of runs by table and outcome, and of seconds and bytes by table and step."""

    runs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    bytes: Mapping[tuple[str, str], int] = field(default_factory=dict)


def tally(records: Iterable[RunRecord]) -> Tally:
    """Count runs and steps in records; runs that have not ended are not counted."""
    runs: dict[tuple[str, str], int] = defaultdict(int)
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for record in records:
        if record.outcome is not None:
            runs[record.table, record.outcome.value] += 1
        for step in record.steps:
            if step.outcome in _RAN:
                seconds[record.table, step.step] += step.seconds
                sizes[record.table, step.step] += step.bytes
    return Tally(dict(runs), dict(seconds), dict(sizes))


_RAN = (Outcome.DONE, Outcome.FAILED)


class History:
    """The database of runs: SQLite in Rookery's home, or any that SQLAlchemy opens."""

    def __init__(self, url: str | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.engine: Engine = open_engine(history_url(url))
        self._clock = clock
        make_tables(self.engine, METADATA)

    def begin(self, table: str, cause: str) -> int:
        """Record that a run begins, and return its number."""
        row = {
            "table_name": table,
            "cause": one_line(cause),
            "started": self._clock(),
            "host": machine(),
            "pid": os.getpid(),
        }
        with translate_db_errors(self.engine), self.engine.begin() as connection:
            made = connection.execute(insert(RUNS).values(row)).inserted_primary_key
        assert made is not None
        return int(made[0])

    def step(self, run: int, report: StepReport) -> None:
        """Record the result of a step."""
        last = select(func.coalesce(func.max(STEPS.c.number), 0)).where(STEPS.c.run_id == run)
        row = {
            "run_id": run,
            "number": last.scalar_subquery() + 1,
            "step": report.step,
            "outcome": report.outcome.value,
            "why": one_line(report.why),
            "files": int(report.files),
            "bytes": int(report.bytes),
            "before": _plain(report.before),
            "after": _plain(report.after),
            "seconds": float(report.seconds),
            "attempts": int(report.attempts),
            "error": None if report.error is None else one_line(report.error),
            "hint": None if report.hint is None else one_line(report.hint),
            "ended": self._clock(),
        }
        with translate_db_errors(self.engine), self.engine.begin() as connection:
            connection.execute(insert(STEPS).values(row))

    def end(self, run: int, outcome: Outcome) -> None:
        """Record how a run ended."""
        ended = update(RUNS).where(RUNS.c.id == run).values(outcome=outcome.value, ended=self._clock())
        with translate_db_errors(self.engine), self.engine.begin() as connection:
            connection.execute(ended)

    def close_interrupted(self, table: str | None = None) -> int:
        """Mark as interrupted the runs whose process has ended, and return how many.

        With *table*, all of that table that have not ended: the caller holds its lease, so none is running.
        """
        query = select(RUNS).where(RUNS.c.outcome.is_(None))
        if table is not None:
            query = query.where(RUNS.c.table_name == table)
        with translate_db_errors(self.engine), self.engine.begin() as connection:
            rows = connection.execute(query).all()
            gone = [row.id for row in rows if table is not None or _is_gone(row)]
            for number in gone:  # few; each only if it has not ended meanwhile
                connection.execute(
                    update(RUNS)
                    .where(RUNS.c.id == number, RUNS.c.outcome.is_(None))
                    .values(outcome=Outcome.INTERRUPTED.value, ended=self._clock())
                )
        return len(gone)

    def runs(self, pattern: str | None = None, limit: int | None = None) -> list[RunRecord]:
        """Return the runs of the tables that a pattern names, newest first."""
        query = select(RUNS).order_by(RUNS.c.id.desc())
        rows_found: list[Row[Any]] = []
        with translate_db_errors(self.engine), self.engine.connect() as connection:
            for row in connection.execution_options(yield_per=_AT_A_TIME).execute(query):
                if limit is not None and len(rows_found) >= limit:
                    break
                if pattern is None or matches(row.table_name, pattern):
                    rows_found.append(row)
        steps = self._steps([row.id for row in rows_found])
        return [_record(row, steps.get(row.id, ())) for row in rows_found]

    def _steps(self, runs: Sequence[int]) -> dict[int, tuple[StepReport, ...]]:
        steps: dict[int, list[StepReport]] = defaultdict(list)
        with translate_db_errors(self.engine), self.engine.connect() as connection:
            for start in range(0, len(runs), _AT_A_TIME):
                query = select(STEPS).where(STEPS.c.run_id.in_(runs[start : start + _AT_A_TIME]))
                for row in connection.execute(query.order_by(STEPS.c.run_id, STEPS.c.number)):
                    steps[row.run_id].append(_step(row))
        return {run: tuple(reports) for run, reports in steps.items()}

    def last_done(self, table: str, step: str) -> float | None:
        """When a step was last done to a table, in seconds since 1970."""
        return self._last(table, step, (Outcome.DONE,))

    def last_looked(self, table: str, step: str) -> float | None:
        """When it was last done, or found that there was nothing to do."""
        return self._last(table, step, (Outcome.DONE, Outcome.NOT_NEEDED))

    def _last(self, table: str, step: str, outcomes: Sequence[Outcome]) -> float | None:
        came = STEPS.c.outcome.in_([outcome.value for outcome in outcomes])
        query = (
            select(func.max(STEPS.c.ended))
            .join(RUNS, RUNS.c.id == STEPS.c.run_id)
            .where(RUNS.c.table_name == table, STEPS.c.step == step, came)
        )
        with translate_db_errors(self.engine), self.engine.connect() as connection:
            found = connection.execute(query).scalar()
        return None if found is None else float(found)

    def tally(self) -> Tally:
        """Count all runs and steps, in the database."""
        runs = select(RUNS.c.table_name, RUNS.c.outcome, func.count()).where(RUNS.c.outcome.is_not(None))
        steps = (
            select(RUNS.c.table_name, STEPS.c.step, func.sum(STEPS.c.seconds), func.sum(STEPS.c.bytes))
            .join(RUNS, RUNS.c.id == STEPS.c.run_id)
            .where(STEPS.c.outcome.in_([outcome.value for outcome in _RAN]))
            .group_by(RUNS.c.table_name, STEPS.c.step)
        )
        with translate_db_errors(self.engine), self.engine.connect() as connection:
            counted = connection.execute(runs.group_by(RUNS.c.table_name, RUNS.c.outcome)).all()
            summed = connection.execute(steps).all()
        return Tally(
            {(table, outcome): int(count) for table, outcome, count in counted},
            {(table, step): float(seconds) for table, step, seconds, _ in summed},
            {(table, step): int(size) for table, step, _, size in summed},
        )

    def close(self) -> None:
        """Close the database."""
        self.engine.dispose()


def matches(table: str, pattern: str) -> bool:
    """Whether a table, by its full name, matches a name or a glob, with or without the catalog.

    >>> matches("lake.db.orders", "db.*"), matches("lake.db.orders", "lake.db.orders"), matches("a.b.c", "c")
    (True, True, False)
    """
    return fnmatchcase(table, pattern) or fnmatchcase(table.partition(".")[2], pattern)


def _plain(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers as JSON has them: no numpy, no infinity."""
    plain = {key: getattr(value, "item", lambda value=value: value)() for key, value in numbers.items()}
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in plain.items()}


def _is_gone(row: Row[Any]) -> bool:
    return is_gone(row.host, row.pid, since=row.started)


def _record(row: Row[Any], steps: tuple[StepReport, ...]) -> RunRecord:
    outcome = Outcome(row.outcome) if row.outcome is not None else None
    if outcome is None and _is_gone(row):
        outcome = Outcome.INTERRUPTED
    ended = None if row.ended is None else datetime.fromtimestamp(row.ended, UTC)
    started = datetime.fromtimestamp(row.started, UTC)
    return RunRecord(
        id=row.id,
        table=row.table_name,
        cause=row.cause,
        outcome=outcome,
        started=started,
        ended=ended,
        host=row.host,
        pid=row.pid,
        steps=steps,
    )


def _step(row: Row[Any]) -> StepReport:
    return StepReport(
        step=row.step,
        outcome=Outcome(row.outcome),
        why=row.why,
        files=row.files,
        bytes=row.bytes,
        before=row.before,
        after=row.after,
        seconds=row.seconds,
        attempts=row.attempts,
        error=row.error,
        hint=row.hint,
    )
