"""`status`: the status of tables, from metadata alone, those with the lowest score first."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rookery.api.lake import ALL, Lake
from rookery.api.status_sheets import details_of, overview, parts_of
from rookery.api.tables import no_tables
from rookery.io.redaction import one_line
from rookery.maintain.policies.choosing import PolicySet
from rookery.maintain.policies.policy_file import find_policies
from rookery.maintain.status import TableStatus, table_status
from rookery.model import EmptyCatalogError, Report, Sheet, TableName
from rookery.tables.java_errors import as_rookery

if TYPE_CHECKING:
    from rookery.maintain.runs.history import Tally

__all__ = ["Failure", "StatusReport", "status"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A table whose status cannot be read."""

    table: str
    error: str


@dataclass(frozen=True, slots=True)
class StatusReport(Report):
    """The status of tables, those with the lowest score first."""

    tables: tuple[TableStatus, ...]
    failed: tuple[Failure, ...] = ()
    hint: str | None = None  # what to do if there are no tables

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether a table is below its policy, or cannot be read."""
        return bool(self.failed) or any(table.breaches for table in self.tables)

    def prometheus(self, runs: Tally | None = None) -> str:
        """The report in Prometheus' text format, with counts of runs."""
        from rookery.maintain.runs.metrics import render  # brings SQLAlchemy, and an HTTP server

        return render(self.tables, runs or (), [failure.table for failure in self.failed])

    def sheets(self) -> Sequence[Sheet]:
        """One line per table; for a single table, all details."""
        failed = tuple(f"{failure.table}: {failure.error}" for failure in self.failed)
        if not self.tables and not failed:
            return [no_tables(self.hint)]
        if len(self.tables) == 1:
            parts = details_of(self.tables[0])
            return [*parts[:-1], replace(parts[-1], notes=(*parts[-1].notes, *failed))]
        details = [sheet for table in self.tables if table.columns for sheet in parts_of(table)]
        return [overview(self.tables, failed), *details]


def status(
    lake: Lake,
    patterns: Sequence[str] = (ALL,),
    *,
    policy: str | os.PathLike[str] | None = None,
    policies: PolicySet | None = None,
    columns: bool = False,
    clock: Callable[[], float] = time.time,
) -> StatusReport:
    """Return the status of the tables that the patterns match; no data is read, and no Spark is started.

    Policies are those of a file, *policy*, or *policies* that were read before.
    """
    chosen = find_policies(policy) if policies is None else policies
    statuses: list[TableStatus] = []
    failed: list[Failure] = []
    try:
        names = lake.find_all(patterns or (ALL,))
    except EmptyCatalogError as error:
        return StatusReport((), hint=error.hint)
    for name in names:
        try:
            statuses.append(status_of(lake, name, chosen, columns=columns, now=clock()))
        except Exception as error:  # one that is broken is not to hide the others
            if len(names) == 1:
                raise
            failed.append(Failure(str(name), one_line(str(as_rookery(error, f"status of {name}")))))
    statuses.sort(key=lambda each: (each.score.total, each.table))
    return StatusReport(tuple(statuses), tuple(failed))


def status_of_table(
    lake: Lake, name: TableName, policies: PolicySet | None = None, *, columns: bool = True
) -> StatusReport:
    """Return a report of one table, now; by default with the policies that `find_policies` finds."""
    chosen = find_policies() if policies is None else policies
    return StatusReport((status_of(lake, name, chosen, columns=columns, now=time.time()),))


def status_of(
    lake: Lake, name: TableName, policies: PolicySet, *, now: float, columns: bool = False
) -> TableStatus:
    """Return the status of one table."""
    table, store = lake.open(name)
    policy = policies.policy_of(name, table.properties).policy
    return table_status(table, store, policy, now=now, columns=columns)
