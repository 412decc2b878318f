"""`analyze` and `stats`: statistics collected, and statistics shown."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rookery.api.by_column import ByColumn
from rookery.api.columns import check_column_lists, check_column_sets
from rookery.api.distributions import RowStats, distribution_sheet, row_stats
from rookery.api.lake import Lake, connect
from rookery.api.partitions import partition_test
from rookery.api.progress import in_notebook
from rookery.api.values import plain, shortened
from rookery.collect.progress import silent
from rookery.collect.summary import ColumnSummary, FileTest, TableSummary, summarize
from rookery.model import (
    Certainty,
    FormatError,
    Report,
    Sheet,
    Snapshot,
    counted,
    in_bytes,
    percent,
    thousands,
)
from rookery.sidecar import State, Store
from rookery.sidecar.usable import from_best_state
from rookery.tables import Table
from rookery.tables.java_errors import translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AnalyzeReport", "ColumnStats", "StatsReport", "analyze"]

log = logging.getLogger(__name__)
_MOST_NAMED = 5  # columns in a note
_WAYS = ("pages", "arrow", "engine")


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
        column.type,
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


@dataclass(frozen=True, slots=True)
class AnalyzeReport(ByColumn[ColumnStats], Report):
    """What an analysis did, and the statistics after it."""

    table: str
    snapshot_id: int | None
    dry_run: bool
    files: int
    files_to_read: int
    bytes_to_read: int
    files_read: int
    bytes_read: int
    values: int
    chunks: Mapping[str, int]  # column chunks by the way they were read
    rows_read: int  # for quantiles and frequent values
    seconds: float
    committed: bool
    skipped: Mapping[str, str]  # columns that are not covered in all files, and why
    columns: tuple[ColumnStats, ...]

    def sheets(self) -> Sequence[Sheet]:
        """A summary, and one line per column."""
        if self.snapshot_id is None:
            return [Sheet(f"{self.table}: the table is empty, there is nothing to analyze")]
        if self.dry_run:
            return [
                Sheet(
                    f"{self.table}: {self.files_to_read:,} of {counted(self.files, 'file')} would be read, "
                    f"at most {in_bytes(self.bytes_to_read)}"
                )
            ]
        if not self.files_read and not self.rows_read and not self.committed:
            return [Sheet(f"{self.table}: nothing has changed, nothing was read", notes=self._left_out())]
        notes = [
            f"read {in_bytes(self.bytes_read)} of {counted(self.files_read, 'file')}, "
            f"{counted(self.values, 'value')}, in {self.seconds:.2f} s"
        ]
        if self.rows_read:
            notes.append(f"quantiles and frequent values from {counted(self.rows_read, 'row')}")
        rows = tuple(
            (c.name, thousands(c.ndv), thousands(c.ndv_low), thousands(c.ndv_high), c.kind or "–")
            for c in self.columns
        )
        header = ("column", "ndv", "low", "high", "kind")
        return [Sheet(self.table, header, rows, (*notes, *self._left_out()), frozenset({1, 2, 3}))]

    def details(self) -> Sequence[str]:
        """How column chunks were read."""
        ways = ", ".join(f"{self.chunks[way]:,} by {way}" for way in _WAYS if self.chunks.get(way))
        return (f"{self.table}: column chunks read: {ways}",) if ways else ()

    def _left_out(self) -> tuple[str, ...]:
        return tuple(f"{name}: {why}" for name, why in self.skipped.items())


def stats(
    table: Table, store: Store, *, partition: str | None = None, snapshot: int | None = None
) -> StatsReport:
    """Return what is known of each column, for the table or for the partitions that are named."""
    name = str(table.name)
    current = table.snapshot(snapshot)
    if current is None:
        return StatsReport(name, None, None, None, partition, 0, 0, 0, ())
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
        _column_stats(column, of, None if partition else row_stats(state, column.field))
        for column in summary.columns
    )
    counts = summary.files, summary.rows, summary.files_with_deletes
    return StatsReport(name, snapshot.id, of, behind, partition, *counts, columns)


def _summary(table: Table, store: Store, snapshot_id: int, state: State | None) -> TableSummary:
    snapshot = table.snapshot(snapshot_id)
    assert snapshot is not None
    return summarize(table, store, snapshot, state, with_lengths=True)


def _column_stats(
    column: ColumnSummary, snapshot_id: int | None, rows: RowStats | None = None
) -> ColumnStats:
    ndv, lengths = column.ndv, column.lengths
    return ColumnStats(
        column.field.name,
        column.field.id,
        column.field.type,
        ndv.value if ndv else None,
        ndv.low if ndv else None,
        ndv.high if ndv and math.isfinite(ndv.high) else None,
        ndv.kind.value if ndv else None,
        column.nulls,
        plain(column.field.type, column.low.value),
        plain(column.field.type, column.high.value),
        column.low.exact,
        column.high.exact,
        column.size,
        snapshot_id if ndv else None,
        column.coverage,
        column.unknown,
        rows,
        avg_length=lengths.bytes / lengths.values if lengths and lengths.values else None,
        max_length=column.greatest_length,
    )


def _opened(
    spark: SparkSession | Callable[[], SparkSession], name: str, lake: Lake | None
) -> tuple[Table, Store]:
    """Open a table of *lake*; without one, what the session means by the name."""
    if lake is None and not callable(spark):
        from rookery.api.session_lake import locate  # which imports this module

        return locate(spark, name).load()
    return (lake or connect()).open(name)


def analyze(
    spark: SparkSession | Callable[[], SparkSession],
    name: str,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    column_sets: Sequence[Sequence[str]] = (),
    histogram: Sequence[str] = (),
    top_k: Sequence[str] = (),
    sample: int | None = None,
    drop_column_sets: Sequence[Sequence[str]] = (),
    drop_histogram: Sequence[str] = (),
    drop_top_k: Sequence[str] = (),
    full: bool = False,
    snapshot: int | None = None,
    dry_run: bool = False,
    lake: Lake | None = None,
    progress: Callable[[int, int, int, int], None] | None = None,
    together: Sequence[Sequence[str]] = (),
    drop_together: Sequence[Sequence[str]] = (),
) -> AnalyzeReport:
    """Bring a table's statistics up to date, reading only the files that are new.

    Distinct values are counted for all columns, or for *columns*, without *exclude*, and for the sets of
    columns in *column_sets*. *histogram* and *top_k* name columns whose quantiles and frequent values are
    collected, from at most *sample* row groups per file, or from all rows if that is 0 or was never given.
    All of these are declared for the table: later calls keep them current, for any current snapshot, until
    they are dropped by *drop_column_sets*, *drop_histogram* or *drop_top_k*.
    *together* and *drop_together* are older names of *column_sets* and *drop_column_sets*.
    Without *lake*, the name means what it means in the session, whose catalogs need not be known to Python.
    A *spark* that is a function is called for a session only if there is work to do. *progress* is called
    with the files read, those to read, and the same of bytes; notebooks show it by default.
    """
    from rookery.collect.analyze import analyze as collect  # these bring numba, which `stats` does without
    from rookery.collect.choose import Choice, choose
    from rookery.spark.live import check_jvm

    if not callable(spark):
        check_jvm(spark)
    loaded, store = _opened(spark, name, lake)
    check_column_lists(
        columns=columns,
        exclude=exclude,
        histogram=histogram,
        top_k=top_k,
        drop_histogram=drop_histogram,
        drop_top_k=drop_top_k,
    )
    check_column_sets(
        column_sets=column_sets,
        drop_column_sets=drop_column_sets,
        together=together,
        drop_together=drop_together,
    )

    @cache
    def session() -> SparkSession:
        started = spark() if callable(spark) else spark
        check_jvm(started)
        return started

    choice = Choice(
        columns=tuple(columns),
        exclude=tuple(exclude),
        column_sets=tuple(tuple(names) for names in (*column_sets, *together)),
        histogram=tuple(histogram),
        top_k=tuple(top_k),
        sample=sample,
        drop_column_sets=tuple(tuple(names) for names in (*drop_column_sets, *drop_together)),
        drop_histogram=tuple(drop_histogram),
        drop_top_k=tuple(drop_top_k),
    )
    run = partial(
        collect,
        session,
        loaded,
        store,
        choice,
        snapshot_id=snapshot,
        dry_run=dry_run,
        progress=progress or in_notebook(str(loaded.name)) or silent,
    )
    with translated(f"analyze of {loaded.name}"):
        outcome = run(full=full)
    of = outcome.snapshot_id
    known: tuple[ColumnStats, ...] = ()
    if of is not None and not dry_run:
        wanted = {field.id for part in choose(loaded.fields(loaded.snapshot(of)), choice) for field in part}
        try:
            summary = _summary(loaded, store, of, outcome.state)
        except FormatError as error:  # a segment that this run did not need to read
            log.warning("the stored statistics are damaged and are collected again: %s", error)
            outcome = run(full=True)
            summary = _summary(loaded, store, of, outcome.state)
        known = tuple(_column_stats(column, of) for column in summary.columns if column.field.id in wanted)
    costs = outcome.costs
    return AnalyzeReport(
        table=str(loaded.name),
        snapshot_id=of,
        dry_run=dry_run,
        files=outcome.files,
        files_to_read=outcome.files_to_read,
        bytes_to_read=outcome.bytes_to_read,
        files_read=costs.files,
        bytes_read=costs.bytes_read,
        values=costs.values,
        chunks=dict(costs.chunks),
        rows_read=outcome.rows_read,
        seconds=outcome.seconds,
        committed=outcome.committed,
        skipped=outcome.skipped,
        columns=known,
    )
