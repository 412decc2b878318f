"""`maintain`: what policies want done to tables, planned or done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from rookery.api.lake import ALL, Lake, connect, is_pattern
from rookery.api.watch import check_catalog, leases_of
from rookery.io import local_path, scheme_of
from rookery.io.redaction import one_line
from rookery.maintain.pipeline import maintain_table, refuse, steps_named
from rookery.maintain.policies.choosing import PolicySet
from rookery.maintain.policies.policy import Policy
from rookery.maintain.policies.policy_file import find_policies
from rookery.maintain.policies.settings import trash_folder
from rookery.maintain.runs.catalog_retry import CATALOG_TIMEOUT, CatalogRetry
from rookery.maintain.runs.history import History
from rookery.maintain.runs.leases import Leases
from rookery.maintain.runs.recording import recorded
from rookery.maintain.steps.neighbours import Neighbours
from rookery.maintain.steps.step import Outcome, StepReport, Subject, TableRun
from rookery.model import Report, RookeryError, Sheet, TableName, UsageError, in_bytes
from rookery.sidecar import Store
from rookery.tables import Table
from rookery.tables.java_errors import as_rookery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKED_FOR = "asked for"
Tell = Callable[[str], None]
_HEADER = ("step", "outcome", "why", "files", "bytes", "before → after", "seconds")


@dataclass(frozen=True, slots=True)
class MaintainReport(Report):
    """What became of each table."""

    tables: tuple[TableRun, ...]
    dry_run: bool = False

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether some table failed."""
        return any(run.outcome in (Outcome.FAILED, Outcome.STOPPED) for run in self.tables)

    def sheets(self) -> Sequence[Sheet]:
        """A sheet a table, a line a step."""
        return [_sheet(run) for run in self.tables]


def _sheet(run: TableRun) -> Sheet:
    title = f"{run.table}: {run.outcome}" + (f" in {run.seconds:.1f} s" if run.steps else "")
    notes = [run.note] if run.note else []
    for step in run.steps:
        if step.error is not None:
            notes.append(f"{step.step} failed: {step.error}")
            notes += [f"hint: {step.hint}"] if step.hint else []
    if not run.steps:
        return Sheet(title, notes=tuple(notes))
    rows = tuple(map(_row, run.steps))
    return Sheet(title, _HEADER, rows, tuple(notes), right=frozenset({3, 4, 6}))


def _row(step: StepReport) -> tuple[str, ...]:
    done = step.outcome in (Outcome.DONE, Outcome.PLANNED)
    attempts = f" (attempt {step.attempts})" if step.attempts > 1 else ""
    return (
        step.step,
        step.outcome.value + attempts,
        step.why,
        f"{step.files:,}" if done else "–",
        in_bytes(step.bytes) if done else "–",
        _change(step),
        f"{step.seconds:.1f}",
    )


def _change(step: StepReport) -> str:
    parts = [
        f"{name} {_number(name, value)}"
        + (f" → {_number(name, step.after[name])}" if name in step.after else "")
        for name, value in step.before.items()
    ]
    return ", ".join(parts) or "–"


def _number(name: str, value: float) -> str:
    return in_bytes(value) if name == "bytes" else f"{value:,.0f}"


def _trash(folder: str) -> str:
    if not folder.strip():
        raise UsageError("the trash has no folder", hint="leave it out to delete the files")
    return trash_folder(folder if scheme_of(folder) else os.path.abspath(local_path(folder)))


@dataclass(frozen=True, slots=True)
class Order:
    """How tables are maintained."""

    only: tuple[str, ...] = ()  # steps; none: all
    dry_run: bool = False
    forced: bool = False
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    catalog_timeout: float = CATALOG_TIMEOUT  # seconds that a catalog which does not answer is waited for
    trash: str | None = None  # where orphan files are moved to, whatever policies say
    clock: Callable[[], float] = time.time


def maintain(
    lake: Lake | None = None,
    patterns: Sequence[str] = (ALL,),
    *,
    only: Sequence[str] = (),
    dry_run: bool = False,
    yes: bool = False,
    policy: str | os.PathLike[str] | None = None,
    history: str | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    catalog_timeout: float = CATALOG_TIMEOUT,
    trash: str | None = None,
    clock: Callable[[], float] = time.time,
    tell: Tell = lambda said: None,
) -> MaintainReport:
    """Do to the tables that patterns name what their policies want; with *dry_run*, say what that would be.

    Policies are read, and what they ask for is refused where it must be, before anything is done. What fails
    for one table does not keep the others waiting. A dry run starts no Spark, and leaves no record.
    """
    lake = lake or connect()
    steps_named(only)
    order = Order(
        only=tuple(only),
        dry_run=dry_run,
        forced=yes,
        master=master,
        conf=conf or {},
        catalog_timeout=catalog_timeout,
        trash=_trash(trash) if trash is not None else None,
        clock=clock,
    )
    policies = find_policies(policy)
    found = CatalogRetry(lake.answers, catalog_timeout)(
        lambda: _tables(lake, patterns or (ALL,), policies, keep=dry_run)
    )
    for table in found:
        if table.policy is not None:
            refuse(table.policy, forced=yes)
    with ExitStack() as stack:
        book = None
        if not dry_run:
            kept = History(history)
            stack.callback(kept.close)
            leases = leases_of(lake, kept)
            stack.callback(leases.close)
            book = _Book(kept, leases)
        runs = []
        neighbours = lake.neighbours()  # asked once, by the first table that has something to delete
        for table in found:
            tell(str(table.name))
            runs.append(_maintained(lake, table, order, book, neighbours))
        return MaintainReport(tuple(runs), dry_run)


@dataclass(frozen=True, slots=True)
class _Book:
    """Where runs are recorded, and tables leased."""

    history: History
    leases: Leases


@dataclass(frozen=True, slots=True)
class _Table:
    """A table to maintain, and what it is leased by; without a policy, why it has none."""

    name: TableName
    policy: Policy | None = None
    key: str = ""
    error: str | None = None
    opened: tuple[Table, Store] | None = None  # where it is not loaded again


def _tables(lake: Lake, patterns: Sequence[str], policies: PolicySet, *, keep: bool) -> list[_Table]:
    """Return the tables that patterns name; one that a pattern happens upon may be broken, or gone by now.

    With *keep*, they are returned as they were loaded.
    """
    named = {name: pattern for pattern in patterns for name in lake.find(pattern)}
    check_catalog(lake, named)
    found = []
    for name, pattern in named.items():
        try:
            opened = lake.open(name)
            table = opened[0]
            chosen = policies.policy_of(name, table.properties).policy
            found.append(_Table(name, chosen, table.uuid, opened=opened if keep else None))
        except RookeryError as error:
            if not is_pattern(pattern) and (len(named) == 1 or isinstance(error, UsageError)):
                raise  # a name that is wrong is better said before anything is done
            found.append(_Table(name, error=_said(error)))
    return found


def _maintained(
    lake: Lake, table: _Table, order: Order, book: _Book | None, neighbours: Neighbours
) -> TableRun:
    if table.policy is None:
        return TableRun(str(table.name), ASKED_FOR, Outcome.FAILED, (), note=table.error)
    run = partial(
        maintain_table,
        subject_of(lake, table.name, table.policy, order, neighbours, table.opened),
        only=order.only,
        dry_run=order.dry_run,
        cause=ASKED_FOR,
    )
    try:
        if book is None:
            return run()
        with book.leases.hold(table.key) as lease:
            work = partial(run, stop=lambda: lease.lost)
            return recorded(book.history, str(table.name), ASKED_FOR, lambda record: work(record=record))
    except Exception as error:  # noqa: BLE001  # what is wrong with one table does not stop the next
        meant = as_rookery(error, f"maintenance of {table.name}")
        return TableRun(str(table.name), ASKED_FOR, Outcome.FAILED, (), note=_said(meant))


def _said(error: RookeryError) -> str:
    return one_line(error.message if error.hint is None else f"{error.message} ({error.hint})")


def subject_of(
    lake: Lake,
    name: TableName,
    policy: Policy,
    order: Order,
    neighbours: Neighbours,
    opened: tuple[Table, Store] | None = None,
) -> Subject:
    """Return a table as the pipeline takes it; Spark is started by the first step that needs it.

    One that is *opened* already is not loaded again.
    """

    @cache
    def spark() -> SparkSession:
        return lake.spark(master=order.master, conf=order.conf)

    if order.trash is not None:
        policy = replace(policy, orphans=replace(policy.orphans, trash=order.trash))
    retrying = CatalogRetry(lake.answers, order.catalog_timeout)
    load = partial(retrying, partial(lake.open, name)) if opened is None else lambda: opened
    return Subject(name, load, spark, policy, order.clock, order.forced, neighbours)
