"""`count`: how many rows match, by indexes and metadata where they suffice, else by reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.api.where import Where, bind
from rookery.model import Report, Sheet
from rookery.read.table_reader import count_rows
from rookery.sidecar import Store
from rookery.tables import Table

__all__ = ["CountReport", "count"]


@dataclass(frozen=True, slots=True)
class CountReport(Report):
    """A number of rows."""

    table: str
    where: str | None
    count: int

    def sheets(self) -> Sequence[Sheet]:
        """The number of rows."""
        return [Sheet(str(self.count))]


def count(
    table: Table, store: Store, where: Where = None, *, snapshot: int | None = None, zone: str = "UTC"
) -> CountReport:
    """Count the rows of a table that match; table and store are those of `TableHandle.load`."""
    current = table.at(snapshot)
    predicate = bind(where, table, current, zone)
    matching = 0 if current is None else count_rows(table, store, current, predicate)[0]
    return CountReport(str(table.name), None if where is None else str(where), matching)
