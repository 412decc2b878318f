"""A lake of a few small tables without Spark, and a site whose tables mend when they are told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from rookery.api.lake import Lake
from rookery.maintain.policies.policy import DEFAULT, Orphans, Policy
from rookery.maintain.runs.recording import Record
from rookery.maintain.runs.table_runner import Stop, Wanted
from rookery.maintain.runs.watch import Observed
from rookery.maintain.status import TableStatus, table_status
from rookery.maintain.steps.step import Outcome, StepReport, TableRun
from rookery.model import CatalogError, MissingTableError, TableName
from tests.lakehouse import sqlite_lake

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "city": pa.array([f"c{i % 3}" for i in range(10)])})


def small_lake(folder: Path, *names: str) -> Lake:
    """A SQLite catalog with tables of ten rows in the namespace db."""
    lake = sqlite_lake(folder)
    for name in names:
        lake.catalog.create_table(f"db.{name}", ROWS.schema).append(ROWS)
    return lake


def status_of(lake: Lake, name: str) -> TableStatus:
    return table_status(*lake.open(name), DEFAULT, now=time.time())


NO_ORPHANS = Policy(orphans=Orphans(None))  # they would have to be looked for, whatever else is well


class SmallSite:
    """Tables with breaches that a run takes away one by one, a step each; what is asked of it is kept."""

    def __init__(self, template: TableStatus, **breaches: int) -> None:
        self._template = template
        self.breaches = dict(breaches)
        self.policies: dict[str, Policy] = {}
        self.wanted: dict[str, Policy] = {}  # as the last run was given them
        self.stale = False
        self.step = "refresh statistics"
        self.outcome = Outcome.DONE
        self.broken: dict[str, Exception] = {}
        self.down = 0  # calls that the catalog will not answer
        self.prepared = 0
        self.at_once = self.most_at_once = 0
        self.before_step: Callable[[str], None] = lambda table: None
        self._lock = threading.Lock()

    def prepare(self) -> None:
        self.prepared += 1

    def find(self) -> list[TableName]:
        self._reach()
        return [TableName("lake", ("db",), name) for name in self.breaches]

    def answers(self) -> bool:
        return self.down <= 0

    def _reach(self) -> None:
        with self._lock:
            self.down -= 1
            if self.down >= 0:
                raise CatalogError("catalog 'lake' does not answer")

    def look(self, name: TableName) -> Observed:
        self._reach()
        if name.table not in self.breaches:
            raise MissingTableError(f"there is no table {name}")
        left = tuple(f"breach {number}" for number in range(self.breaches[name.table]))
        age = self._template.statistics
        if self.stale:
            age = replace(age, freshness=type(age.freshness)("stale"))
        status = replace(self._template, table=str(name), breaches=left, statistics=age)
        return Observed(name, name.table, self.policies.get(name.table, NO_ORPHANS), status)

    def maintain(self, name: TableName, wanted: Wanted, stop: Stop, record: Record) -> TableRun:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return self._run(name, wanted, stop, record)
        finally:
            with self._lock:
                self.at_once -= 1

    def _run(self, name: TableName, wanted: Wanted, stop: Stop, record: Record) -> TableRun:
        table, cause = name.table, wanted.cause
        self.wanted[table] = wanted.policy
        steps: list[StepReport] = []
        for _ in range(self.breaches[table] or 1):  # where there are none, it is due by its schedule
            if stop():
                steps.append(StepReport("mend", Outcome.STOPPED, cause))
                break
            self.before_step(table)
            if table in self.broken:
                raise self.broken[table]
            error = "no space left" if self.outcome is Outcome.FAILED else None
            steps.append(StepReport(self.step, self.outcome, cause, error=error))
            record(steps[-1])
            if self.outcome is Outcome.DONE and self.breaches.get(table):
                self.breaches[table] -= 1
        return TableRun(str(name), cause, steps[-1].outcome, tuple(steps))
