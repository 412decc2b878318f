"""Running one table's maintenance, for `maintain` and for `watch`: leased, recorded, stopped in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rookery.maintain.policies.policy import Policy
from rookery.maintain.runs.history import History
from rookery.maintain.runs.leases import Leases
from rookery.maintain.runs.recording import Record, recorded
from rookery.maintain.steps.step import TableRun
from rookery.model import TableName

ASKED_FOR = "asked for"  # the cause of a run that a user has started
Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The policy for a run, and its cause."""

    policy: Policy
    cause: str


class Tables(Protocol):
    """Tables that can be taken through the pipeline."""

    def maintain(self, name: TableName, wanted: Wanted, stop: Stop, record: Record) -> TableRun:
        """Maintain a table; *record* is called with each step as it ends, *stop* before each begins."""


@dataclass(frozen=True, slots=True)
class TableRunner:
    """Runs the maintenance of tables, each by one run at a time, across machines."""

    tables: Tables
    history: History
    leases: Leases

    @contextmanager
    def leased(
        self, name: TableName, key: str, stop: Stop = lambda: False
    ) -> Iterator[Callable[[Wanted], TableRun]]:
        """Take the lease of a table, or raise `LeaseTakenError`; yield the function that runs and records.

        The run ends before its next step once it is stopped, or if the lease is lost.
        """
        with self.leases.hold(key) as lease:

            def run(wanted: Wanted) -> TableRun:
                return recorded(
                    self.history,
                    str(name),
                    wanted.cause,
                    lambda record: self.tables.maintain(name, wanted, lambda: stop() or lease.lost, record),
                )

            yield run
