"""How the status of tables is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rookery.api.indexes import UNKNOWN_KIND
from rookery.maintain.facts.sidecar_files import SidecarFiles
from rookery.maintain.facts.staleness import Freshness
from rookery.maintain.status import ColumnStatus, IndexStatus, TableStatus
from rookery.model import Sheet, counted, in_bytes, percent, thousands

_MANY = 10.0  # times: from here on percents are not useful


def overview(tables: Sequence[TableStatus], failed: tuple[str, ...]) -> Sheet:
    """Return a sheet with a line a table."""
    below = sum(bool(table.breaches) for table in tables)
    return Sheet(
        title=f"{counted(len(tables), 'table')}, {below:,} below policy",
        header=(
            "table",
            "score",
            "statistics",
            "behind",
            "health",
            "drift",
            "files",
            "size",
            "small",
            "deleted",
            "needs",
        ),
        rows=tuple(
            (
                table.table,
                f"{table.score.total:.0f}",
                table.statistics.freshness.value,
                thousands(table.statistics.snapshots_behind),
                f"{table.statistics.health:.2f}",
                _drift(table),
                thousands(table.layout.files),
                in_bytes(table.layout.bytes),
                thousands(table.layout.small_files),
                f"{sum(kind.share for kind in table.layout.deletes):.1%}",
                "; ".join(table.breaches) or "–",
            )
            for table in tables
        ),
        notes=failed,
        right=frozenset({1, 3, 4, 5, 6, 7, 8, 9}),
        spare=(5, 4, 3, 9, 8, 7, 2, 6),
    )


def _drift(table: TableStatus) -> str:
    never = table.statistics.freshness is Freshness.NEVER
    return "–" if never else span(table.drift_low, table.drift_high)


def span(low: float | None, high: float | None) -> str:
    """A drift as people read it.

    >>> span(0.0, 0.13), span(0.5, None), span(0.0, 0.0), span(0.0, None), span(0.001, 25.0)
    ('0–13%', '50% or more', '0%', 'unknown', 'unknown')
    """
    if low is None:
        return "–"
    if f"{low:.0%}" == "0%" and (high is None or high >= _MANY):
        return "unknown"
    if high is None:
        return f"{low:.0%} or more"
    if high >= _MANY:
        return f"{low:.0%} to {high:,.0f} ×"
    return f"{low:.0%}" if f"{low:.0%}" == f"{high:.0%}" else f"{low * 100:.0f}–{high:.0%}"


def details_of(table: TableStatus) -> list[Sheet]:
    """Return all details of a table; its score comes last."""
    notes = tuple(f"below policy: {breach}" for breach in table.breaches) or ("nothing is below its policy",)
    hints = tuple(
        f"{visibility.engine}: {visibility.hint}" for visibility in table.engine_visibility if visibility.hint
    )
    score = Sheet(
        title=f"score {table.score.total:.0f} of 100",
        header=("part", "value", "weight", "why"),
        rows=tuple(
            (part.name, f"{part.value:.2f}", f"{part.weight:.2f}", part.why) for part in table.score.parts
        ),
        notes=(*notes, *hints),
        right=frozenset({1, 2}),
    )
    size = f"{counted(table.layout.rows, 'row')} in {counted(table.layout.files, 'file')}"
    head = Sheet(
        f"{table.table}: {size}, statistics {_age(table)}",
        ("what", "is"),
        (*_of_statistics(table), *_of_layout(table), *_of_sidecar_files(table.sidecar_files)),
    )
    return [head, *parts_of(table), score]


def _age(table: TableStatus) -> str:
    staleness = table.statistics
    if staleness.snapshots_behind:
        return f"{staleness.freshness.value}, {counted(staleness.snapshots_behind, 'snapshot')} behind"
    return staleness.freshness.value


def _of_statistics(table: TableStatus) -> list[tuple[str, str]]:
    staleness = table.statistics
    changes = staleness.changes
    files = f"+{changes.files_added:,} −{changes.files_removed:,} files"
    rows = f"+{changes.rows_added:,} −{changes.rows_removed:,} rows"
    changed = f"{staleness.changed_rows:,} of {counted(staleness.rows, 'row')} changed"
    visible = [
        (
            f"{visibility.engine} sees",
            f"{visibility.columns} of {counted(visibility.of, 'column')}"
            + ("" if visibility.current else ", not current")
            + (", registered by another engine" if visibility.foreign else ""),
        )
        for visibility in table.engine_visibility
    ]
    return [
        ("health", f"{staleness.health:.2f} ({changed})"),
        ("causes", ", ".join(cause.value for cause in staleness.causes) or "–"),
        ("since then", f"{files}, {rows}"),
        ("covered", f"{percent(staleness.covered)} of rows"),
        ("drift", _drift(table)),
        *visible,
    ]


def _of_layout(table: TableStatus) -> list[tuple[str, str]]:
    layout = table.layout
    sizes = f"{layout.small_files:,} small, {layout.right_files:,} right, {layout.large_files:,} large"
    each = f"{layout.files_per_partition:.1f} files each, {layout.files_in_largest:,} at most"
    manifests = f"{layout.data_manifests:,} of data, {layout.delete_manifests:,} of deletes"
    refs = f"{counted(layout.branches, 'branch', 'branches')}, {counted(layout.tags, 'tag')}"
    old = f"{table.expirable_snapshots:,} due to expire"
    lines = [
        ("files", f"{sizes}; target {in_bytes(layout.target_size)}, all {in_bytes(layout.bytes)}"),
        ("partitions", f"{layout.partitions:,}; {each}; skew {layout.skew:.1f}"),
        ("manifests", f"{manifests}, {in_bytes(layout.manifest_bytes)}; {layout.small_manifests:,} small"),
        ("snapshots", f"{layout.snapshots:,} since {_when(layout.oldest_ms)}; {old}; {refs}"),
    ]
    for kind in layout.deletes:
        files, rows = counted(kind.files, "file"), counted(kind.rows, "row")
        lines.append((kind.kind, f"{files}, {in_bytes(kind.bytes)}, {rows} ({kind.share:.1%})"))
    if layout.dangling_deletes:
        lines.append(("dangling deletes", f"{layout.dangling_deletes:,} that apply to no data"))
    if layout.sort is not None:
        depth = "cannot be determined from bounds"
        if layout.sort.depth is not None:
            depth = f"{layout.sort.depth:.1f} files overlap on average, {layout.sort.depth_most} at most"
        lines.append(("sort order", f"{layout.sort.order}; {depth}"))
    return lines


def _of_sidecar_files(near: SidecarFiles) -> list[tuple[str, str]]:
    replaced = f"{near.replaced_files:,} replaced ({in_bytes(near.replaced_bytes)})"
    orphaned = f"{near.orphaned_files:,} orphaned ({in_bytes(near.orphaned_bytes)})"
    states = f"{counted(near.states, 'state')} ({in_bytes(near.state_bytes)})"
    return [
        ("statistics files", f"{near.statistics_files:,} registered, {replaced}, {orphaned}"),
        ("Rookery files", f"{states}, {counted(near.segments, 'segment')} ({in_bytes(near.segment_bytes)})"),
    ]


def _when(moment_ms: int | None) -> str:
    if moment_ms is None:
        return "–"
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def parts_of(table: TableStatus) -> list[Sheet]:
    """Return the sheets of a table's columns and indexes."""
    sheets = []
    if table.columns:
        sheets.append(
            Sheet(
                f"columns of {table.table}",
                (
                    "column",
                    "type",
                    "statistics",
                    "covered",
                    "ndv",
                    "low now",
                    "high now",
                    "drift",
                    "spark",
                    "trino",
                ),
                tuple(map(_column, table.columns)),
                right=frozenset({3, 4, 5, 6, 7}),
                spare=(1, 3, 5, 6, 9, 8),
            )
        )
    if table.indexes:
        unknown_kinds = {index.kind for index in table.indexes if not index.known}
        sheets.append(
            Sheet(
                f"indexes of {table.table}",
                ("index", "column", "state", "files", "covered"),
                tuple(map(_index, table.indexes)),
                tuple(f"{kind}: {UNKNOWN_KIND}" for kind in sorted(unknown_kinds)),
                right=frozenset({3, 4}),
            )
        )
    return sheets


def _column(column: ColumnStatus) -> tuple[str, ...]:
    return (
        column.name,
        column.type,
        column.freshness.value,
        percent(column.covered),
        thousands(column.ndv),
        thousands(column.ndv_low),
        thousands(column.ndv_high),
        span(column.drift_low, column.drift_high),
        "yes" if column.spark else "no",
        "yes" if column.trino else "no",
    )


def _index(index: IndexStatus) -> tuple[str, ...]:
    return (
        index.kind,
        index.column,
        index.freshness.value,
        thousands(index.files_covered),
        percent(index.covered),
    )
