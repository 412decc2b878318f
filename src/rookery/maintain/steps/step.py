"""What the steps of the pipeline share: their subject, what they plan, and what result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rookery.collect.readable import refused
from rookery.maintain.facts.staleness import Staleness, StatsComparison, comparison, staleness
from rookery.maintain.policies.policy import Policy
from rookery.maintain.survey import Survey
from rookery.model import RookeryError, TableName, UsageError
from rookery.sidecar import Store
from rookery.spark.procedures import row_session
from rookery.tables import Table
from rookery.tables.iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    load: Callable[[], tuple[Table, Store]]
    spark: Callable[[], SparkSession]
    policy: Policy
    now: Callable[[], float]  # seconds since 1970
    forced: bool = False  # `--yes`: what is refused without it is done
    neighbours: Neighbours | None = None  # the catalog's other tables; none: they cannot be asked for

    def open(self) -> tuple[IcebergTable, Store]:
        """Load the table as the one of Iceberg that the steps here take it for."""
        table, store = self.load()
        return iceberg(table), store


def iceberg(table: Table) -> IcebergTable:
    """Return a table of Iceberg; another format brings steps of its own."""
    if not isinstance(table, IcebergTable):
        raise UsageError(f"{table.name} is not an Iceberg table", hint="only those are maintained")
    return table


def no_spark() -> SparkSession:
    """Stand in for a session where only plans are made."""
    raise AssertionError("plans need no Spark")


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


@dataclass(frozen=True)
class TableView:
    """A table as a step finds it, and what the run has done to it so far."""

    subject: Subject
    survey: Survey
    done: tuple[str, ...] = ()  # names of steps; in a dry run, those that would have been done

    @property
    def table(self) -> IcebergTable:
        """The table, with all that is Iceberg's alone."""
        return iceberg(self.survey.table)

    @property
    def policy(self) -> Policy:
        """What is wanted of the table."""
        return self.subject.policy

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
        return self.survey.table.not_loadable

    def row_session(self) -> SparkSession:
        """The session in which rows of the table are read and rewritten."""
        return row_session(self.subject.spark(), frozenset(self.survey.table.column_types.values()))

    @property
    def now_ms(self) -> int:
        """The time, as Iceberg counts it."""
        return int(self.subject.now() * 1000)


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
    plan: Callable[[TableView], Plan | Idle]  # by metadata alone, with no Spark
    run: Callable[[TableView, Plan], Ran]
    verify: Callable[
        [TableView, Plan, Ran, TableView], tuple[str, ...]
    ]  # raises; returns what should be said


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
