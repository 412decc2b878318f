"""`stats`: the statistics of each column."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rookery.api.by_column import ByColumn
from rookery.api.distributions import RowStats, distribution_sheet, row_stats
from rookery.api.partitions import partition_test
from rookery.api.values import plain, shortened
from rookery.collect.summary import ColumnSummary, FileTest, TableSummary, summarize
from rookery.model import (
    Certainty,
    Report,
    Sheet,
    Snapshot,
    counted,
    in_bytes,
    percent,
    thousands,
)
from rookery.model.type_names import type_text
from rookery.sidecar import State, Store
from rookery.sidecar.usable import from_best_state
from rookery.tables import Table

__all__ = ["ColumnStats", "StatsReport"]

log = logging.getLogger(__name__)

_MOST_NAMED = 5  # columns in a note


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """A column's line in a report."""

    name: str
    field_id: int
    type: str
    ndv: float | None
    ndv_low: float | None
    ndv_high: float | None
    kind: str | None
    nulls: int | None
    min: Any
    max: Any
    min_exact: bool | None  # false: no value is less, but it need not occur itself
    max_exact: bool | None
    size: int | None
    snapshot_id: int | None
    coverage: float
    unknown: Mapping[str, str]  # why ndv, nulls, min or max are not known
    rows: RowStats | None = None
    avg_length: float | None = None  # bytes of a text or binary value, as far as is known
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class StatsReport(ByColumn[ColumnStats], Report):
    """The statistics of a table and its columns."""

    table: str
    snapshot_id: int | None
    statistics_snapshot_id: int | None
    snapshots_behind: int | None
    partition: str | None
    files: int
    rows: int  # of all files, deleted ones among them
    files_with_deletes: int
    columns: tuple[ColumnStats, ...]

    @property
    def freshness(self) -> str:
        """How old the statistics are, as text."""
        if self.statistics_snapshot_id is None:
            return "never analyzed"
        if self.snapshots_behind == 0:
            return "current"
        if self.snapshots_behind is None:
            return "of a snapshot that is no ancestor of this one"
        return f"{counted(self.snapshots_behind, 'snapshot')} behind"

    def sheets(self) -> Sequence[Sheet]:
        """One line per column."""
        where = f" where {self.partition}" if self.partition else ""
        deletes = f" ({self.files_with_deletes:,} with deleted rows)" if self.files_with_deletes else ""
        size = f"{counted(self.rows, 'row')} in {counted(self.files, 'file')}"
        columns = Sheet(
            f"{self.table}{where}: {size}{deletes}, {self.freshness}",
            ("column", "type", "ndv", "low", "high", "kind", "nulls", "min", "max", "size", "covered"),
            tuple(_row(column) for column in self.columns),
            tuple(_notes(self.columns)),
            right=frozenset({2, 3, 4, 6, 9, 10}),
            spare=(9, 10, 3, 4, 5, 6),
        )
        spread = {column.name: column.rows for column in self.columns if column.rows}
        return [columns, distribution_sheet(spread)] if spread else [columns]


def _row(column: ColumnStats) -> tuple[str, ...]:
    return (
        column.name,
        type_text(column.type),
        thousands(column.ndv),
        thousands(column.ndv_low),
        thousands(column.ndv_high),
        column.kind or "–",
        thousands(column.nulls),
        shortened(column.min, "≥ " if column.min_exact is False else ""),
        shortened(column.max, "≤ " if column.max_exact is False else ""),
        in_bytes(column.size),
        percent(column.coverage),
    )


def _notes(columns: Sequence[ColumnStats]) -> Iterator[str]:
    """Explain marks, and why numbers are not known; columns of one reason share a line."""
    if any(column.min_exact is False or column.max_exact is False for column in columns):
        yield "≥, ≤: a bound of the values that need not occur itself"
    if any(column.kind == Certainty.STALE for column in columns):
        yield "stale: every row that was counted has changed since"
    why: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        names: dict[str, list[str]] = {}
        for name, reason in column.unknown.items():
            names.setdefault(reason, []).append(name)
        for reason, unknown in names.items():
            why.setdefault((", ".join(unknown), reason), []).append(column.name)
    for (unknown_names, reason), of in why.items():
        shown = ", ".join(of[:_MOST_NAMED]) + (" …" if len(of) > _MOST_NAMED else "")
        yield f"{unknown_names} of {shown} not known: {reason}"


def stats(
    table: Table, store: Store, *, partition: str | None = None, snapshot: int | None = None
) -> StatsReport:
    """Return what is known of each column, for the table or for the partitions that are named."""
    name = str(table.name)
    current = table.snapshot(snapshot)
    if current is None:
        return StatsReport(
            table=name,
            snapshot_id=None,
            statistics_snapshot_id=None,
            snapshots_behind=None,
            partition=partition,
            files=0,
            rows=0,
            files_with_deletes=0,
            columns=(),
        )
    ancestors = [ancestor.id for ancestor in table.ancestors(current)]
    wanted = partition_test(table, partition) if partition else None
    state, summary = _known(table, store, current, wanted)
    return _stats_report(name, current, ancestors, state, summary, partition)


def _known(
    table: Table, store: Store, snapshot: Snapshot, wanted: FileTest | None
) -> tuple[State | None, TableSummary]:
    """Return the best state whose parts can all be read, and its summary."""
    known = partial(summarize, table, store, snapshot, wanted=wanted, with_lengths=True)
    summarized = from_best_state(table, store, snapshot, lambda state: (state, known(state)))
    return summarized or (None, known(None))


def _stats_report(
    name: str,
    snapshot: Snapshot,
    ancestors: Sequence[int],
    state: State | None,
    summary: TableSummary,
    partition: str | None,
) -> StatsReport:
    of = state.header.snapshot_id if state is not None else None
    behind = ancestors.index(of) if of in ancestors else None
    columns = tuple(
        column_stats(column, of, None if partition else row_stats(state, column.field))
        for column in summary.columns
    )
    counts = summary.files, summary.rows, summary.files_with_deletes
    return StatsReport(name, snapshot.id, of, behind, partition, *counts, columns)


def summary_of(table: Table, store: Store, snapshot_id: int, state: State | None) -> TableSummary:
    """Return what a state, and the table's metadata, tell of a snapshot."""
    snapshot = table.snapshot(snapshot_id)
    assert snapshot is not None
    return summarize(table, store, snapshot, state, with_lengths=True)


def column_stats(column: ColumnSummary, snapshot_id: int | None, rows: RowStats | None = None) -> ColumnStats:
    """Return a column's line."""
    ndv, lengths = column.ndv, column.lengths
    return ColumnStats(
        name=column.field.name,
        field_id=column.field.id,
        type=column.field.type,
        ndv=ndv.value if ndv else None,
        ndv_low=ndv.low if ndv else None,
        ndv_high=ndv.high if ndv and math.isfinite(ndv.high) else None,
        kind=ndv.kind.value if ndv else None,
        nulls=column.nulls,
        min=plain(column.field.type, column.low.value),
        max=plain(column.field.type, column.high.value),
        min_exact=column.low.exact,
        max_exact=column.high.exact,
        size=column.size,
        snapshot_id=snapshot_id if ndv else None,
        coverage=column.coverage,
        unknown=column.unknown,
        rows=rows,
        avg_length=lengths.bytes / lengths.values if lengths and lengths.values else None,
        max_length=column.greatest_length,
    )
