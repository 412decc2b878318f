"""`maintain`: maintenance of tables by their policies, planned or run."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from rookery.api.lake import ALL, Lake, connect, is_pattern
from rookery.api.maintenance import SharedSession, check_catalog, engine_of, leases_of
from rookery.api.progress import Advance, ProgressOf, of_notebook
from rookery.io import local_path, scheme_of
from rookery.io.redaction import one_line
from rookery.maintain.pipeline import refuse, steps_named
from rookery.maintain.policies.choosing import PolicySet
from rookery.maintain.policies.policy import Policy
from rookery.maintain.policies.policy_file import find_policies
from rookery.maintain.policies.settings import trash_folder
from rookery.maintain.runs.catalog_retry import CATALOG_TIMEOUT, CatalogRetry
from rookery.maintain.runs.history import History
from rookery.maintain.runs.lake_tables import LakeTables, OpenTable, RunOptions
from rookery.maintain.runs.leases import LeaseTakenError
from rookery.maintain.runs.table_runner import ASKED_FOR, TableRunner, Wanted
from rookery.maintain.steps.step import Outcome, StepReport, TableRun
from rookery.model import Report, RookeryError, Sheet, TableName, UsageError, counted, in_bytes
from rookery.tables.java_errors import as_rookery

__all__ = ["MaintainReport", "maintain"]

Tell = Callable[[str], None]
_HEADER = ("step", "outcome", "why", "files", "bytes", "before → after", "seconds")


@dataclass(frozen=True, slots=True)
class MaintainReport(Report):
    """The report of each table."""

    tables: tuple[TableRun, ...]
    dry_run: bool = False
    verbose: bool = False  # whether steps that are not needed are shown for several tables too

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether any table failed; one that another run has did not."""
        return any(run.outcome in (Outcome.FAILED, Outcome.STOPPED) for run in self.tables)

    def sheets(self) -> Sequence[Sheet]:
        """One table per maintained table, one line per step; of several tables, a summary first."""
        if len(self.tables) <= 1:
            return [_sheet(run) for run in self.tables]
        shown = [run if self.verbose else _needed(run) for run in self.tables]
        idle = not self.verbose and any(map(_is_idle, self.tables))
        notes = ("--verbose shows the tables and steps that are not needed, and why",) if idle else ()
        counts = Counter(run.outcome for run in self.tables)
        summary = ", ".join(f"{counts[each]:,} {each.value}" for each in Outcome if counts[each])
        title = f"{counted(len(self.tables), 'table')}: {summary}"
        return [
            Sheet(title, notes=notes),
            *(
                _sheet(run)
                for run in shown
                if self.verbose or run.outcome is not Outcome.NOT_NEEDED or run.note
            ),
        ]


def _is_idle(run: TableRun) -> bool:
    """Whether a table, or a step of it, needed nothing."""
    return any(step.outcome is Outcome.NOT_NEEDED for step in run.steps)


def _needed(run: TableRun) -> TableRun:
    """The run without the steps that were not needed."""
    return replace(run, steps=tuple(step for step in run.steps if step.outcome is not Outcome.NOT_NEEDED))


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
    return Sheet(title, _HEADER, rows, tuple(notes), right=frozenset({3, 4, 6}), spare=(6, 5, 4, 3))


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
        raise UsageError("the trash has no folder", hint="omit --trash to delete the files")
    return trash_folder(folder if scheme_of(folder) else os.path.abspath(local_path(folder)))


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
    tell: Tell = lambda message: None,
    progress: ProgressOf = of_notebook,
) -> MaintainReport:
    """Maintain the tables that patterns match by their policies; with *dry_run*, only plan.

    Policies are read, and refused where they are unsafe, before anything is done. A failure
    of one table does not stop the others. A table that another run maintains is left to that run. A dry
    run starts no Spark, and is not recorded.
    """
    lake = lake or connect()
    steps_named(only)
    bars = _Bars(progress)
    trash = _trash(trash) if trash is not None else None
    options = RunOptions(tuple(only), forced=yes, trash=trash, progress=bars, engine=engine_of(lake))
    policies = find_policies(policy)
    other_tables = lake.other_tables()  # loaded once, by the first table that has something to delete
    tables = LakeTables(
        lake=lake,
        spark=SharedSession(partial(lake.spark, master=master, conf=conf)),
        other_tables=lambda: other_tables,
        retry=CatalogRetry(lake.answers, catalog_timeout),
        clock=clock,
        options=options,
    )
    candidates = _candidates(lake, patterns or (ALL,), tables, policies, keep=dry_run)
    other_tables.give(each.opened.table for each in candidates if each.opened is not None)
    for table in candidates:
        if table.policy is not None:
            refuse(table.policy, forced=yes)
    with ExitStack() as stack:
        runner = None if dry_run else stack.enter_context(_runner(lake, tables, history))
        runs = []
        for number, table in enumerate(candidates, 1):
            tell(
                f"{table.name} ({number:,} of {len(candidates):,})"
                if len(candidates) > 1
                else f"{table.name}"
            )
            with bars.of(str(table.name)):
                runs.append(_maintained(table, tables, runner))
        return MaintainReport(tuple(runs), dry_run)


class _Bars:
    """Passes the progress of each table on to what was made for that table."""

    def __init__(self, make: ProgressOf) -> None:
        self._make = make
        self._advance: Advance | None = None

    @contextmanager
    def of(self, table: str) -> Iterator[None]:
        """Within the block, the progress is that of a table."""
        with self._make(table) as self._advance:
            yield

    def __call__(self, files: int, all_files: int, size: int, all_bytes: int) -> None:
        """Tell how many files are read."""
        if self._advance is not None:
            self._advance(files, all_files, size, all_bytes)


@contextmanager
def _runner(lake: Lake, tables: LakeTables, history: str | None) -> Iterator[TableRunner]:
    with closing(History(history)) as kept, closing(leases_of(lake, kept)) as leases:
        yield TableRunner(tables, kept, leases)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A table to maintain, and the key of its lease; without a policy, why it has none."""

    name: TableName
    policy: Policy | None = None
    key: str = ""
    error: str | None = None
    opened: OpenTable | None = None  # where it is not loaded again


def _candidates(
    lake: Lake, patterns: Sequence[str], tables: LakeTables, policies: PolicySet, *, keep: bool
) -> list[_Candidate]:
    """Return the tables that patterns name; one that a pattern matches may be broken, or dropped meanwhile.

    With *keep*, they are returned as they were loaded.
    """
    named = tables.retry(lambda: {name: pattern for pattern in patterns for name in lake.find(pattern)})
    check_catalog(lake, named)
    candidates = []
    for name, pattern in named.items():
        try:
            opened = tables.retry(partial(tables.open, name, policies))
            candidates.append(_Candidate(name, opened.policy, opened.key, opened=opened if keep else None))
        except RookeryError as error:
            if not is_pattern(pattern) and (len(named) == 1 or isinstance(error, UsageError)):
                raise  # report a wrong name before anything is done
            candidates.append(_Candidate(name, error=_message(error)))
    return candidates


def _maintained(table: _Candidate, tables: LakeTables, runner: TableRunner | None) -> TableRun:
    if table.policy is None:
        return TableRun(str(table.name), ASKED_FOR, Outcome.FAILED, (), note=table.error)
    try:
        if runner is None:
            assert table.opened is not None
            return tables.plan(table.opened)
        with runner.leased(table.name, table.key) as run:
            return run(Wanted(table.policy, ASKED_FOR))
    except LeaseTakenError as error:
        return TableRun(str(table.name), ASKED_FOR, Outcome.TAKEN, (), note=_message(error))
    except Exception as error:  # noqa: BLE001  # an error of one table does not stop the next
        wrapped = as_rookery(error, f"maintenance of {table.name}")
        return TableRun(str(table.name), ASKED_FOR, Outcome.FAILED, (), note=_message(wrapped))


def _message(error: RookeryError) -> str:
    return one_line(error.message if error.hint is None else f"{error.message} ({error.hint})")
