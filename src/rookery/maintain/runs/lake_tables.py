"""The tables of a lake, as maintenance opens them and takes them through the pipeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from rookery.collect.progress import Progress, silent
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.policies.choosing import PolicySet
from rookery.maintain.policies.policy import Policy
from rookery.maintain.runs.catalog_retry import CatalogRetry
from rookery.maintain.runs.recording import Record
from rookery.maintain.runs.table_runner import ASKED_FOR, Stop, Wanted
from rookery.maintain.steps.other_tables import OtherTables
from rookery.maintain.steps.step import MaintainedTable, TableRun
from rookery.model import Engine, TableName
from rookery.sidecar import Store
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableOpener(Protocol):
    """What maintenance needs of a lake: a table as it is now, and its store."""

    def open(self, named: TableName, /) -> tuple[Table, Store]:
        """Load a table."""


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table as it was loaded, and its policy."""

    table: Table
    store: Store
    policy: Policy

    @property
    def name(self) -> TableName:
        """The name of the table."""
        return self.table.name

    @property
    def key(self) -> str:
        """The key of its lease, which does not depend on its name."""
        return self.table.uuid


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of the caller, in addition to the policies."""

    only: tuple[str, ...] = ()  # steps; none: all
    forced: bool = False  # `--yes`: do what is refused without it
    trash: str | None = None  # where orphan files are moved to, overriding policies
    progress: Progress = silent  # of files that are read for statistics
    engine: Engine = Engine.SPARK  # that collects statistics


@dataclass(frozen=True, slots=True)
class LakeTables:
    """Opens the tables of a lake and runs the pipeline on them; Spark is started by the first that needs it.

    A catalog that does not answer is waited for by *retry*, which all tables share. *other_tables* is called
    once a run.
    """

    lake: TableOpener
    spark: Callable[[], SparkSession]
    other_tables: Callable[[], OtherTables]
    retry: CatalogRetry
    clock: Callable[[], float] = time.time
    options: RunOptions = RunOptions()

    def open(self, name: TableName, policies: PolicySet) -> OpenTable:
        """Load a table once, and choose its policy; raise `MissingTableError` if there is none."""
        table, store = self.lake.open(name)
        policy = policies.policy_of(name, table.properties).policy
        if self.options.trash is not None:
            policy = replace(policy, orphans=replace(policy.orphans, trash=self.options.trash))
        return OpenTable(table, store, policy)

    def plan(self, opened: OpenTable) -> TableRun:
        """Return what would be done to a table as it was loaded; it is not loaded again."""
        maintained = self._maintained(opened.name, opened.policy, lambda: (opened.table, opened.store))
        return maintain_table(maintained, only=self.options.only, dry_run=True, cause=ASKED_FOR)

    def maintain(self, name: TableName, wanted: Wanted, stop: Stop, record: Record) -> TableRun:
        """Take a table through the pipeline; each step loads it again."""
        maintained = self._maintained(name, wanted.policy, partial(self.retry, partial(self.lake.open, name)))
        return maintain_table(
            maintained, only=self.options.only, cause=wanted.cause, stop=stop, record=record
        )

    def _maintained(
        self, name: TableName, policy: Policy, load: Callable[[], tuple[Table, Store]]
    ) -> MaintainedTable:
        return MaintainedTable(
            name=name,
            load=load,
            spark=self.spark,
            policy=policy,
            now=self.clock,
            forced=self.options.forced,
            other_tables=self.other_tables(),
            progress=self.options.progress,
            engine=self.options.engine,
        )
