"""The pipeline: its steps in their order, each needed or not, planned, run and verified."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rookery.io.redaction import one_line
from rookery.maintain.facts.layout import sizes_of
from rookery.maintain.policies.choosing import risky
from rookery.maintain.policies.policy import Policy
from rookery.maintain.policies.times import show_quiet_hours
from rookery.maintain.steps import (
    clean_up,
    compact,
    expire,
    orphans,
    refresh,
    rewrite_deletes,
    rewrite_manifests,
)
from rookery.maintain.steps.listing import Listings, list_folders
from rookery.maintain.steps.step import (
    Idle,
    MaintainedTable,
    Outcome,
    Plan,
    Ran,
    Step,
    StepReport,
    TableRun,
    TableView,
    VerificationError,
)
from rookery.maintain.survey import Survey, survey
from rookery.model import RookeryError, UsageError
from rookery.model.retry import attempts
from rookery.tables.java_errors import CancelledError, ConflictError, as_rookery

log = logging.getLogger(__name__)

STEPS: tuple[Step, ...] = (
    expire.STEP,
    orphans.STEP,
    compact.STEP,
    rewrite_deletes.STEP,
    rewrite_manifests.STEP,
    refresh.STEP,
    clean_up.STEP,
)
NAMES = tuple(step.name for step in STEPS)
# The words of policies for what a step does.
POLICY_WORDS: Mapping[str, str] = {
    "snapshots": expire.STEP.name,
    "orphans": orphans.STEP.name,
    "compaction": compact.STEP.name,
    "deletes": rewrite_deletes.STEP.name,
    "manifests": rewrite_manifests.STEP.name,
    "statistics": refresh.STEP.name,
    "indexes": refresh.STEP.name,
    "statistics files": clean_up.STEP.name,
}
ATTEMPTS = 5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.4, 10.0  # seconds between them

_NOT_TAKEN = "not a step for tables of this format"

Record = Callable[[StepReport], None]


def steps_named(only: Sequence[str]) -> tuple[Step, ...]:
    """Return the steps of these names, in the order of the pipeline; all, where none is named.

    >>> [step.name for step in steps_named(["compaction", "clean-up"])]
    ['rewrite data files', 'clean up']
    """
    names = {name: " ".join(name.lower().replace("-", " ").split()) for name in only}
    names = {name: POLICY_WORDS.get(words, words) for name, words in names.items()}
    unknown = [name for name, step in names.items() if step not in NAMES]
    if unknown:
        words = ", ".join(word.replace(" ", "-") for word in POLICY_WORDS)
        hint = f"the steps are: {', '.join(NAMES)}; or by policy: {words}"
        raise UsageError(f"there is no step '{unknown[0]}'", hint=hint)
    return tuple(step for step in STEPS if not only or step.name in names.values())


def refuse(policy: Policy, *, forced: bool) -> None:
    """Refuse a policy that would remove more than is safe, unless forced."""
    risks = [] if forced else risky(policy)
    if risks:
        raise UsageError("; ".join(risks), hint="change the policy, or use --yes if this is intended")


def maintain_table(
    maintained: MaintainedTable,
    *,
    only: Sequence[str] = (),
    dry_run: bool = False,
    cause: str = "asked for",
    stop: Callable[[], bool] = lambda: False,
    record: Record | None = None,
) -> TableRun:
    """Maintain a table as its policy sets, step by step, and return the result of each.

    Each run plans from the table's current metadata, so a run that was interrupted is finished by the
    next. *record* is called with each step as it ends; *stop* before each begins.
    """
    chosen = steps_named(only)
    refuse(maintained.policy, forced=maintained.forced)
    if (quiet := _quiet(maintained)) is not None and not dry_run:
        return TableRun(str(maintained.name), cause, Outcome.NOT_NEEDED, (), note=quiet)
    run = _Run(maintained, dry_run)
    started = time.perf_counter()
    for step in chosen:
        try:
            report = run.step(step, stop)
        except BaseException:
            if record is not None:
                record(StepReport(step.name, Outcome.STOPPED, "interrupted"))
            raise
        if record is not None:
            record(report)
    seconds = time.perf_counter() - started
    return TableRun(
        table=str(maintained.name),
        cause=cause,
        outcome=_outcome(run.reports),
        steps=tuple(run.reports),
        seconds=seconds,
    )


def _quiet(maintained: MaintainedTable) -> str | None:
    if maintained.forced:
        return None
    now = maintained.now()
    quiet_hours = next((hours for hours in maintained.policy.quiet_hours if hours.covers(now)), None)
    if quiet_hours is None:
        return None
    return f"quiet hours, {show_quiet_hours(quiet_hours)}: nothing is done without --yes"


def _outcome(reports: Sequence[StepReport]) -> Outcome:
    """The outcome of a run: the worst that happened, else that something was done."""
    there = {report.outcome for report in reports}
    order = (Outcome.FAILED, Outcome.STOPPED, Outcome.DONE, Outcome.PLANNED)
    return next((outcome for outcome in order if outcome in there), Outcome.NOT_NEEDED)


class _Run:
    """A run on its way."""

    def __init__(self, maintained: MaintainedTable, dry_run: bool) -> None:
        self._maintained = maintained
        self._dry_run = dry_run
        self._survey: Survey | None = None
        self._wrong: str | None = None  # the step whose verification failed
        self.reports: list[StepReport] = []

    def step(self, step: Step, stop: Callable[[], bool]) -> StepReport:
        """Run one step."""
        why = self._held_up(step) or ("the run was stopped" if stop() else None)
        if why is not None:
            report = StepReport(step.name, Outcome.STOPPED, why)
        else:
            started = time.perf_counter()
            report = self._taken(step)
            report = replace(report, seconds=time.perf_counter() - started)
        self.reports.append(report)
        return report

    def _held_up(self, step: Step) -> str | None:
        if self._wrong is not None:
            return f"verification failed after '{self._wrong}'"
        held = {each.step: each.outcome for each in self.reports}
        for name in step.needs:
            if held.get(name) in (Outcome.FAILED, Outcome.STOPPED):
                became = "failed" if held[name] is Outcome.FAILED else "did not run"
                return f"skipped because '{name}' {became}"
        return None

    def _look(self, step: Step | None = None) -> TableView:
        """Survey the table; before a *step* that examines folders, list those first."""
        done = [each.step for each in self.reports if each.outcome in (Outcome.DONE, Outcome.PLANNED)]
        listings = None
        if self._survey is None or not self._dry_run:  # a dry run is of one moment
            listings = None if step is None or self._dry_run else self._listed(step)
            self._survey = survey(*self._maintained.load())
        return self._maintained.view(self._survey, tuple(done), listings)

    def _listed(self, step: Step) -> Listings | None:
        if step.folders is None:
            return None
        known = self._survey
        table, store = (known.table, known.store) if known is not None else self._maintained.load()
        if not step.takes(table):
            return None
        return list_folders(step.folders(table, self._maintained.policy), store)

    def _taken(self, step: Step) -> StepReport:
        """Run a step, again if another commit conflicts, up to a fixed number of attempts."""
        why = "it could not be planned"
        first: TableView | None = None
        for attempt in attempts(ATTEMPTS, _FIRST_PAUSE, _LONGEST_PAUSE):
            try:
                view = self._look(step)
                planned = step.plan(view) if step.takes(view.survey.table) else Idle(_NOT_TAKEN)
                if isinstance(planned, Idle) and first is not None:
                    return _finished_before(step, why, attempt, first, view)
                first, why = first or view, planned.why
                return replace(self._done(step, view, planned), attempts=attempt)
            except ConflictError as error:
                conflict = error
            except CancelledError as error:
                return replace(_failed(step, why, attempt, error), outcome=Outcome.STOPPED)
            except RookeryError as error:
                self._wrong = step.name if isinstance(error, VerificationError) else self._wrong
                return _failed(step, why, attempt, error)
            except Exception as error:  # an unexpected error must not stop the other tables
                log.debug("%s of %s failed", step.name, self._maintained.name, exc_info=True)
                return _failed(step, why, attempt, as_rookery(error, step.name))
        return _failed(step, why, ATTEMPTS, conflict)

    def _done(self, step: Step, view: TableView, planned: Plan | Idle) -> StepReport:
        if isinstance(planned, Idle):
            return StepReport(step.name, Outcome.NOT_NEEDED, planned.why)
        before = _measured(step, view)
        if self._dry_run:
            return StepReport(
                step=step.name,
                outcome=Outcome.PLANNED,
                why=planned.why,
                files=planned.files,
                bytes=planned.bytes,
                before=before,
            )
        ran: Ran = step.run(view, planned)
        after = self._look()
        notes = step.verify(view, planned, ran, after)
        why = "; ".join((planned.why, *ran.notes, *notes))
        return StepReport(
            step=step.name,
            outcome=Outcome.DONE,
            why=why,
            files=ran.files,
            bytes=ran.bytes,
            before=before,
            after=_measured(step, after),
        )


def _finished_before(step: Step, why: str, attempts: int, first: TableView, now: TableView) -> StepReport:
    """The report where an attempt met a conflict, and the next finds nothing left to do."""
    before, after = _measured(step, first), _measured(step, now)
    reason = f"{why}; an earlier attempt or another process has completed it"
    return StepReport(step.name, Outcome.DONE, reason, before=before, after=after, attempts=attempts)


def _failed(step: Step, why: str, attempts: int, error: RookeryError) -> StepReport:
    return StepReport(
        step.name,
        Outcome.FAILED,
        why,
        attempts=attempts,
        error=one_line(str(error)),
        hint=one_line(error.hint) if error.hint else None,
    )


def _measured(step: Step, view: TableView) -> Mapping[str, float]:
    return {name: _MEASURES[name](view) for name in step.measures}


def _small_files(view: TableView) -> float:
    right = sizes_of(view.survey.table.target_file_size, view.policy)
    return float((view.survey.numbers("size") < right.small).sum())


_MEASURES: Mapping[str, Callable[[TableView], float]] = {
    "snapshots": lambda view: len(view.survey.table.snapshots),
    "files": lambda view: view.survey.files.num_rows,
    "bytes": lambda view: int(view.survey.numbers("size").sum()),
    "small files": _small_files,
    "delete files": lambda view: view.survey.deletes.num_rows,
    "manifests": lambda view: len(view.survey.file_lists),
}
