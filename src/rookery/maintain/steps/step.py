"""What the steps of the pipeline share: their subject, what they plan, and what result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rookery.collect.readable import not_loadable, refused
from rookery.maintain.facts.staleness import Staleness, StatsComparison, comparison, staleness
from rookery.maintain.policies.policy import Policy
from rookery.maintain.steps.listing import list_table
from rookery.maintain.survey import Survey
from rookery.model import RookeryError, TableName
from rookery.sidecar import Store
from rookery.spark.procedures import row_session
from rookery.tables.iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rookery.io.identity import Listing
    from rookery.maintain.steps.neighbours import Neighbours


class Outcome(StrEnum):
    """What became of a step, or of a run."""

    NOT_NEEDED = "not needed"
    PLANNED = "planned"  # a dry run
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # a step that it rests upon has failed, or the run was stopped
    INTERRUPTED = "interrupted"  # the process that ran it is gone


@dataclass(frozen=True, slots=True)
class Subject:
    """A table to be maintained; `load` gives it as it is at that moment, `spark` starts a session."""

    name: TableName
    load: Callable[[], tuple[IcebergTable, Store]]
    spark: Callable[[], SparkSession]
    policy: Policy
    now: Callable[[], float]  # seconds since 1970
    forced: bool = False  # `--yes`: what is refused without it is done
    neighbours: Neighbours | None = None  # the catalog's other tables; none: they cannot be asked for

    def view(self, survey: Survey, done: tuple[str, ...] = (), listing: Listing | None = None) -> TableView:
        """Return what a step plans by and acts on, at this moment."""
        return TableView(
            survey=survey,
            policy=self.policy,
            now=self.now(),
            done=done,
            forced=self.forced,
            neighbours=self.neighbours,
            listing=listing,
            subject=self,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What a step would do, and why; from metadata alone."""

    why: str
    files: int = 0
    bytes: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)  # what run and verify need; plain values


@dataclass(frozen=True, slots=True)
class Idle:
    """Why there is nothing to do."""

    why: str


@dataclass(frozen=True, kw_only=True)
class PlanInput:
    """All that a step plans by: the table at one moment, what is wanted of it, and what is around it.

    It has neither the catalog nor Spark nor a clock: the same input gives the same plan.
    """

    survey: Survey
    policy: Policy
    now: float  # seconds since 1970
    done: tuple[str, ...] = ()  # names of steps; in a dry run, those that would have been done
    forced: bool = False  # `--yes`
    neighbours: Neighbours | None = None  # the catalog's other tables; none: they cannot be asked for
    listing: Listing | None = None  # of a folder, from before the table was loaded

    def listed(self, location: str) -> Listing:
        """Return a folder as it was listed before, else as it is now.

        What was committed before a listing is known to a table that is loaded after it; the other way
        round, files that others have deleted since would seem to be missing.
        """
        if self.listing is not None and self.listing.location == location.rstrip("/"):
            return self.listing
        return list_table(location, self.survey.store)

    @cached_property
    def comparison(self) -> StatsComparison:
        """The table's statistics, held against what it is now."""
        return comparison(self.survey)

    @cached_property
    def age(self) -> Staleness:
        """How old its statistics are."""
        return staleness(self.comparison)

    @property
    def not_rewritable(self) -> str | None:
        """Why Spark cannot rewrite the table, nor read its rows to verify that; None if it can."""
        return refused(self.survey.table)

    @property
    def not_loadable(self) -> str | None:
        """Why Iceberg's procedures cannot load the table at all; None if they can."""
        return not_loadable(self.survey.table)

    @property
    def now_ms(self) -> int:
        """The time, as Iceberg counts it."""
        return int(self.now * 1000)


@dataclass(frozen=True, kw_only=True)
class TableView(PlanInput):
    """A table as a step finds it, with what the step runs by."""

    subject: Subject

    def row_session(self) -> SparkSession:
        """The session in which rows of the table are read and rewritten."""
        return row_session(self.subject.spark(), self.survey.table.types)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a step did: to how many files and bytes, and what should be said of it."""

    files: int = 0
    bytes: int = 0
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)  # what verify needs


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the pipeline: what is needed is planned, run, and then held against the table."""

    name: str
    needs: tuple[str, ...]  # steps whose failure stops it
    measures: tuple[str, ...]  # the numbers that it is there to change
    plan: Callable[[PlanInput], Plan | Idle]
    run: Callable[[TableView, Plan], Ran]
    verify: Callable[
        [TableView, Plan, Ran, TableView], tuple[str, ...]
    ]  # raises; returns what should be said
    # The folder that the plan goes through, if it does: it is listed before the table is loaded.
    folder: Callable[[IcebergTable, Policy], str | None] | None = None


class VerificationError(RookeryError):
    """A table is not what it should be after a step; nothing more is done to it."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What became of one step."""

    step: str
    outcome: Outcome
    why: str
    files: int = 0
    bytes: int = 0
    before: Mapping[str, float] = field(default_factory=dict)  # a few numbers: files, bytes, snapshots, …
    after: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    attempts: int = 1
    error: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class TableRun:
    """What became of one table."""

    table: str
    cause: str  # what set it off: "asked for", "health 0.61 is below 0.8", "every 6h", …
    outcome: Outcome
    steps: tuple[StepReport, ...]
    seconds: float = 0.0
    note: str | None = None  # why nothing was done at all
