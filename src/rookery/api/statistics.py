"""`analyze` and `stats`: statistics collected, and statistics shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rookery.api.lake import Lake, connect
from rookery.api.partitions import partition_test
from rookery.collect.progress import silent
from rookery.collect.summary import ColumnSummary, TableSummary, summarize
from rookery.model import Sheet, SheetReport, Snapshot, TableName, UsageError, in_bytes, thousands
from rookery.store import State, Store, default_location
from rookery.tables.iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    size: int | None
    snapshot_id: int | None
    coverage: float


@dataclass(frozen=True, slots=True)
class StatsReport(SheetReport):
    """What is known of a table."""

    table: str
    snapshot_id: int | None
    statistics_snapshot_id: int | None
    snapshots_behind: int | None
    partition: str | None
    files: int
    rows: int
    columns: tuple[ColumnStats, ...]

    @property
    def freshness(self) -> str:
        """How old the statistics are, in words."""
        if self.statistics_snapshot_id is None:
            return "never analysed"
        if self.snapshots_behind == 0:
            return "current"
        if self.snapshots_behind is None:
            return "of a snapshot that is no ancestor of this one"
        return f"{self.snapshots_behind} snapshots behind"

    def sheets(self) -> Sequence[Sheet]:
        """One sheet, a line a column."""
        where = f" where {self.partition}" if self.partition else ""
        return [
            Sheet(
                f"{self.table}{where}: {self.rows:,} rows in {self.files:,} files, {self.freshness}",
                ("column", "type", "ndv", "between", "and", "kind", "nulls", "min", "max", "size", "covered"),
                tuple(_row(column) for column in self.columns),
                right=frozenset({2, 3, 4, 6, 9, 10}),
            )
        ]


def _row(column: ColumnStats) -> tuple[str, ...]:
    return (
        column.name,
        column.type,
        thousands(column.ndv),
        thousands(column.ndv_low),
        thousands(column.ndv_high),
        column.kind or "–",
        thousands(column.nulls),
        _short(column.min),
        _short(column.max),
        in_bytes(column.size),
        f"{column.coverage:.0%}",
    )


def _short(value: object, most: int = 24) -> str:
    text = "–" if value is None else str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(frozen=True, slots=True)
class AnalyzeReport(SheetReport):
    """What an analysis did, and what is known after it."""

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
    seconds: float
    committed: bool
    skipped: tuple[str, ...]
    columns: tuple[ColumnStats, ...]

    def sheets(self) -> Sequence[Sheet]:
        """A summary, and a line a column."""
        if self.snapshot_id is None:
            return [Sheet(f"{self.table}: the table is empty, there is nothing to analyse")]
        if self.dry_run:
            return [
                Sheet(
                    f"{self.table}: {self.files_to_read:,} of {self.files:,} files would be read, "
                    f"at most {in_bytes(self.bytes_to_read)}"
                )
            ]
        if not self.files_read and not self.committed:
            return [Sheet(f"{self.table}: nothing has changed, nothing was read")]
        ways = ", ".join(f"{self.chunks[way]:,} by {way}" for way in _WAYS if self.chunks.get(way))
        notes = [
            f"read {in_bytes(self.bytes_read)} of {self.files_read:,} files"
            + (f" ({ways})" if ways else "")
            + f", {self.values:,} values, in {self.seconds:.2f} s"
        ]
        notes += [f"{name}: its type cannot be sketched, it was left out" for name in self.skipped]
        rows = tuple(
            (c.name, thousands(c.ndv), thousands(c.ndv_low), thousands(c.ndv_high), c.kind or "–")
            for c in self.columns
        )
        header = ("column", "ndv", "between", "and", "kind")
        return [Sheet(self.table, header, rows, tuple(notes), frozenset({1, 2, 3}))]


@dataclass(frozen=True, slots=True)
class TableHandle:
    """A table by its name, for calls that need no Spark."""

    lake: Lake
    name: TableName

    def load(self) -> tuple[IcebergTable, Store]:
        """Load the table as it is now, and what is kept beside it."""
        loaded = IcebergTable(self.name, self.lake.load(str(self.name)))
        properties = self.lake.properties_of(self.name)
        return loaded, Store(default_location(loaded.location, loaded.table.properties), properties)

    def stats(self, *, partition: str | None = None, snapshot: int | None = None) -> StatsReport:
        """Return what is known of each column, for the table or for the partitions that are named."""
        loaded, store = self.load()
        current = loaded.snapshot(snapshot)
        if current is None:
            return StatsReport(str(self.name), None, None, None, partition, 0, 0, ())
        ancestors = [ancestor.id for ancestor in loaded.ancestors(current)]
        state = next((state for _, state in store.newest(ancestors)), None)
        wanted = partition_test(loaded, partition) if partition else None
        summary = summarize(loaded, store, current, state, wanted)
        return _stats_report(str(self.name), current, ancestors, state, summary, partition)


def _stats_report(
    name: str,
    snapshot: Snapshot,
    ancestors: Sequence[int],
    state: State | None,
    summary: TableSummary,
    partition: str | None,
) -> StatsReport:
    of = state.index.snapshot_id if state is not None else None
    behind = ancestors.index(of) if of in ancestors else None
    columns = tuple(_column_stats(column, of) for column in summary.columns)
    return StatsReport(name, snapshot.id, of, behind, partition, summary.files, summary.rows, columns)


def _column_stats(column: ColumnSummary, snapshot_id: int | None) -> ColumnStats:
    ndv = column.ndv
    return ColumnStats(
        column.field.name,
        column.field.id,
        column.field.type,
        ndv.value if ndv else None,
        ndv.low if ndv else None,
        ndv.high if ndv else None,
        ndv.kind.value if ndv else None,
        column.nulls,
        _plain(column.low),
        _plain(column.high),
        column.size,
        snapshot_id if ndv else None,
        column.coverage,
    )


def _plain(value: Any) -> Any:
    """A bound as JSON can hold it."""
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def table(name: str, lake: Lake | None = None) -> TableHandle:
    """Return a handle on a table, of *lake* or of the default catalog."""
    lake = lake or connect()
    return TableHandle(lake, lake.table_name(name))


def analyze(
    spark: SparkSession,
    name: str,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    full: bool = False,
    snapshot: int | None = None,
    dry_run: bool = False,
    lake: Lake | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AnalyzeReport:
    """Bring a table's statistics up to date, at the price of new data only."""
    from rookery.collect.analyze import analyze as collect  # brings numba, which `stats` does without

    handle = table(name, lake)
    loaded, store = handle.load()
    if isinstance(columns, str) or isinstance(exclude, str):
        raise UsageError("columns are given as a list of names", hint='say columns=["a", "b"]')
    outcome = collect(
        spark,
        loaded,
        store,
        columns=columns,
        exclude=exclude,
        full=full,
        snapshot_id=snapshot,
        dry_run=dry_run,
        progress=progress or silent,
    )
    of = outcome.snapshot_id
    known = () if of is None or dry_run else handle.stats(snapshot=of).columns
    costs = outcome.costs
    return AnalyzeReport(
        str(handle.name),
        of,
        dry_run,
        outcome.files,
        outcome.files_to_read,
        outcome.bytes_to_read,
        costs.files,
        costs.bytes_read,
        costs.values,
        dict(costs.chunks),
        outcome.seconds,
        outcome.committed,
        tuple(field.name for field in outcome.skipped),
        known,
    )
