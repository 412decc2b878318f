"""What the steps of the pipeline share: the table to maintain, plans and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rookery.collect.progress import Progress, silent
from rookery.collect.readable import refused
from rookery.io import shown
from rookery.maintain.facts.engine_visibility import EngineVisibility, engine_visibility
from rookery.maintain.facts.staleness import Staleness, StatsComparison, comparison, staleness
from rookery.maintain.policies.policy import Policy
from rookery.maintain.steps.listing import Listings, list_table
from rookery.maintain.steps.reachable_files import Named, named
from rookery.maintain.survey import Survey
from rookery.model import Engine, RookeryError, StorageError, TableName
from rookery.sidecar import Store
from rookery.spark.procedures import row_session
from rookery.tables import Table
from rookery.tables.iceberg import IcebergTable, iceberg

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rookery.io.identity import Listing
    from rookery.maintain.steps.other_tables import OtherTables


class Outcome(StrEnum):
    """The outcome of a step, or of a run."""

    NOT_NEEDED = "not needed"
    PLANNED = "planned"  # a dry run
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # a step that it depends on has failed, or the run was stopped
    INTERRUPTED = "interrupted"  # the process that ran it has ended
    TAKEN = "taken"  # another run has the table


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """A table to be maintained; `load` returns its current version, `spark` starts a session."""

    name: TableName
    load: Callable[[], tuple[Table, Store]]
    spark: Callable[[], SparkSession]
    policy: Policy
    now: Callable[[], float]  # seconds since 1970
    forced: bool = False  # `--yes`: do what is refused without it
    other_tables: OtherTables | None = None  # the catalog's other tables; None: they cannot be loaded
    progress: Progress = silent  # of files that are read for statistics
    engine: Engine = Engine.SPARK  # that collects statistics

    def open(self) -> tuple[IcebergTable, Store]:
        """Load the table, which must be one of Iceberg."""
        table, store = self.load()
        return iceberg(table), store

    def view(self, survey: Survey, done: tuple[str, ...] = (), listings: Listings | None = None) -> TableView:
        """Return the input of a step's plan and run, as of now."""
        return TableView(
            survey=survey,
            policy=self.policy,
            now=self.now(),
            done=done,
            forced=self.forced,
            other_tables=self.other_tables,
            listings=listings,
            maintained=self,
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
    """The input of a plan: the table at one moment, its policy, and the tables and folders around it.

    It has neither the catalog nor Spark nor a clock: the same input gives the same plan.
    """

    survey: Survey
    policy: Policy
    now: float  # seconds since 1970
    done: tuple[str, ...] = ()  # names of steps; in a dry run, those that would have been done
    forced: bool = False  # `--yes`
    other_tables: OtherTables | None = None  # the catalog's other tables; None: they cannot be loaded
    listings: Listings | None = None  # of folders, from before the table was loaded

    @property
    def table(self) -> IcebergTable:
        """The table, with all that is Iceberg's alone."""
        return iceberg(self.survey.table)

    def listed(self, location: str) -> Listing:
        """Return a folder as it was listed before the table was loaded.

        What was committed before a listing is known to a table that is loaded after it. A folder that was
        not listed then, as the table has begun to write there since, is not examined. Where nothing was
        listed, as in a dry run, it is listed now.
        """
        if self.listings is None:
            return list_table(location, self.survey.store)
        listing = self.listings.get(location.rstrip("/"))
        if listing is None:
            raise StorageError(
                f"{shown(location)} is new among the folders that the table writes to", hint="run it again"
            )
        if isinstance(listing, StorageError):
            raise listing
        return listing

    @cached_property
    def named(self) -> Named:
        """All that the table names."""
        return named(self.table)

    @cached_property
    def comparison(self) -> StatsComparison:
        """The table's statistics, compared with the table as it is now."""
        return comparison(self.survey)

    @cached_property
    def age(self) -> Staleness:
        """How old its statistics are."""
        return staleness(self.comparison)

    @cached_property
    def engine_visibility(self) -> tuple[EngineVisibility, ...]:
        """What engines find of its statistics."""
        return engine_visibility(self.survey, self.comparison.line)

    @property
    def not_rewritable(self) -> str | None:
        """Why Spark cannot rewrite the table, nor read its rows to verify that; None if it can."""
        return refused(self.survey.table)

    @property
    def not_loadable(self) -> str | None:
        """Why Iceberg's procedures cannot load the table at all; None if they can."""
        return self.survey.table.not_loadable

    @property
    def now_ms(self) -> int:
        """The time, as Iceberg counts it."""
        return int(self.now * 1000)


@dataclass(frozen=True, kw_only=True)
class TableView(PlanInput):
    """A table at the start of a step, with what the step needs to run."""

    maintained: MaintainedTable

    def row_session(self) -> SparkSession:
        """The session in which rows of the table are read and rewritten."""
        return row_session(self.maintained.spark(), frozenset(self.survey.table.column_types.values()))


@dataclass(frozen=True, slots=True)
class Ran:
    """What a step did: to how many files and bytes, and notes for its report."""

    files: int = 0
    bytes: int = 0
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)  # what verify needs


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the pipeline: work is planned, run, and then verified on the table."""

    name: str
    needs: tuple[str, ...]  # steps whose failure stops it
    measures: tuple[str, ...]  # the numbers that it is there to change
    plan: Callable[[PlanInput], Plan | Idle]
    run: Callable[[TableView, Plan], Ran]
    verify: Callable[
        [TableView, Plan, Ran, TableView], tuple[str, ...]
    ]  # raises; returns notes for the report
    # The folders that the plan examines, if any: they are listed before the table is loaded.
    folders: Callable[[Table, Policy], Sequence[str]] | None = None
    any_format: bool = False  # whether it takes tables of every format, or those of Iceberg alone

    def takes(self, table: Table) -> bool:
        """Whether it is a step for tables of this format."""
        return self.any_format or isinstance(table, IcebergTable)


class VerificationError(RookeryError):
    """A table failed verification after a step; no further step is run on it."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """The report of one step."""

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
    """The report of one table."""

    table: str
    cause: str  # why it was started: "asked for", "health 0.61 is below 0.8", "every 6h", …
    outcome: Outcome
    steps: tuple[StepReport, ...]
    seconds: float = 0.0
    note: str | None = None  # why nothing was done at all
