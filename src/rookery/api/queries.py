"""`rookery.queries`: the last queries of an attached session, with what they read and what was estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rookery.model import Report, Sheet, UsageError, counted, in_bytes, thousands

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["QueriedTable", "QueriesReport", "Query", "queries"]

_TEXT_WIDTH = 72


@dataclass(frozen=True, slots=True)
class QueriedTable:
    """One scan of a table in a query."""

    table: str
    snapshot_id: int | None
    files: int  # after Iceberg's own pruning
    files_read: int
    bytes: int
    bytes_read: int
    skipped_by: str  # the stages, with how many files each skipped
    planning_ms: float  # of Rookery
    estimated_rows: float | None  # after the filter on the table
    rows: int | None  # that Spark has counted there


@dataclass(frozen=True, slots=True)
class Query:
    """A query that has ended."""

    text: str  # empty for a DataFrame
    action: str
    ended_at: str
    ms: float | None
    error: str | None
    estimated_rows: float | None
    rows: int | None
    tables: tuple[QueriedTable, ...]

    @property
    def title(self) -> str:
        """Its text on one line, or what was done with a DataFrame."""
        text = " ".join(self.text.split()) or f"DataFrame ({self.action})"
        return text if len(text) <= _TEXT_WIDTH else text[: _TEXT_WIDTH - 1] + "…"


@dataclass(frozen=True, slots=True)
class QueriesReport(Report):
    """The last queries of a session, newest first."""

    queries: tuple[Query, ...]

    def sheets(self) -> Sequence[Sheet]:
        """A table for each query, with a row for each table that it read."""
        if not self.queries:
            return [Sheet("no queries over analyzed tables yet")]
        return [_sheet(query) for query in self.queries]


def _sheet(query: Query) -> Sheet:
    header = ("table", "files", "bytes", "estimated rows", "rows", "planning ms", "skipped by")
    rows = tuple(
        (
            each.table,
            f"{each.files_read:,} of {each.files:,}",
            f"{in_bytes(each.bytes_read)} of {in_bytes(each.bytes)}",
            thousands(each.estimated_rows),
            thousands(each.rows),
            f"{each.planning_ms:.1f}",
            each.skipped_by or "–",
        )
        for each in query.tables
    )
    took = "failed: " + query.error if query.error else f"{query.ms or 0:,.0f} ms"
    result = "" if query.rows is None else f", {counted(query.rows, 'row')}"
    return Sheet(
        title=query.title,
        header=header,
        rows=rows,
        notes=(f"{took}{result}",),
        right=frozenset({1, 2, 3, 4, 5}),
    )


def queries(spark: SparkSession, last: int = 20) -> QueriesReport:
    """Return the *last* queries of an attached session that read analyzed tables, newest first.

    Rows are estimated and counted after the filter on a table; they are None where Spark has no number. Spark
    estimates filters only if `spark.sql.cbo.enabled` is on.
    """
    from rookery.spark.attach import attached_queries  # pyspark is an extra

    if last < 1:
        raise UsageError(f"last={last} is not a number of queries", hint="use a number from 1")
    found = attached_queries(spark)
    if found is None:
        raise UsageError("the session is not attached", hint="call rookery.attach(spark) first")
    return QueriesReport(tuple(_query(each) for each in found[::-1][:last]))


def _query(entry: dict[str, Any]) -> Query:
    tables = tuple(
        QueriedTable(
            table=scan["table"],
            snapshot_id=scan["snapshot"],
            files=scan["files"],
            files_read=scan["files_read"],
            bytes=scan["bytes"],
            bytes_read=scan["bytes_read"],
            skipped_by=scan["by"],
            planning_ms=round(scan["ms"], 3),
            estimated_rows=scan["estimated"],
            rows=scan["rows"],
        )
        for scan in entry["scans"]
    )
    return Query(
        text=entry["text"],
        action=entry["action"],
        ended_at=datetime.fromtimestamp(entry["at"] / 1000, UTC).isoformat(timespec="milliseconds"),
        ms=entry["ms"],
        error=entry["error"],
        estimated_rows=entry["estimated"],
        rows=entry["rows"],
        tables=tables,
    )
