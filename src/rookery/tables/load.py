"""Adding rows to a table, or making one of them, as every format with a writer provides it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from rookery.tables.table import Table


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and is not visible before the commit."""

    rows: int
    files: int
    bytes: int
    sorted_within: str | None  # "table", "partitions" or "files"; None if it is not sorted


class TableLoad(Protocol):
    """A load that is under way: rows are written to new files, which one commit makes visible."""

    snapshot_id: int | None  # of the commit; None if there were no rows

    @property
    def columns(self) -> pa.Schema | None:
        """The columns of the table that is added to; None for a new one."""

    def begin(self, columns: pa.Schema, partition: Sequence[str], sort: Sequence[str]) -> pa.Schema:
        """Begin with these columns; return those in which rows are to be written.

        *partition* and *sort* are as users write them: `day(ts)`, `ts desc`.
        """

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows."""

    def finish(self) -> Written:
        """Write the rows that are still in memory."""

    def commit(self) -> Table:
        """Make all rows visible; return the table as it is then."""

    def abort(self) -> None:
        """Delete the files that were written, and the namespace if the load has made it."""
