"""`describe`: what a table is, from its metadata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rookery.api.tables import moment
from rookery.maintain.facts.sort_order import order_text
from rookery.model import Report, Sheet, Snapshot, counted, in_bytes, thousands
from rookery.model.schema import Column, Primitive, parts_of
from rookery.tables import Table
from rookery.tables.files import DATA
from rookery.tables.partitioning import PartitionField

__all__ = ["DescribeReport", "describe"]

NEWEST = 10  # snapshots that are shown
# Properties that say how a table is written, read and maintained; others are notes of its writers.
_SHOWN = ("write.", "read.", "commit.", "history.", "gc.", "rookery.", "comment", "owner")


@dataclass(frozen=True, slots=True)
class DescribedColumn:
    """A column, or a part of a nested one, by its path."""

    id: int
    name: str
    type: str
    required: bool
    doc: str | None


@dataclass(frozen=True, slots=True)
class DescribedSnapshot:
    """A snapshot; numbers that its writer does not state are None."""

    id: int
    committed_ms: int
    operation: str | None
    rows_added: int | None
    rows_removed: int | None
    files_changed: int | None


@dataclass(frozen=True, slots=True)
class DescribedFiles:
    """The data files of the current snapshot, and its delete files."""

    files: int
    rows: int
    bytes: int
    smallest: int | None
    median: int | None
    largest: int | None
    delete_files: int


@dataclass(frozen=True, slots=True)
class DescribeReport(Report):
    """A table: its columns, layout, properties, snapshots and files."""

    table: str
    location: str
    format_version: int
    metadata: str | None
    columns: tuple[DescribedColumn, ...]
    partition: tuple[str, ...]
    sort_order: str | None
    properties: dict[str, str]
    files: DescribedFiles
    snapshot_count: int
    snapshots: tuple[DescribedSnapshot, ...]
    branches: dict[str, int]
    tags: dict[str, int]

    def sheets(self) -> Sequence[Sheet]:
        """The columns, then everything else."""
        columns = tuple(
            (str(each.id), each.name, each.type, "yes" if each.required else "", each.doc or "")
            for each in self.columns
        )
        size = f"{counted(self.files.rows, 'row')} in {counted(self.files.files, 'file')}"
        title = f"{self.table}: {size}, {in_bytes(self.files.bytes)}"
        sheets = [
            Sheet(title, ("id", "column", "type", "required", "doc"), columns, right=frozenset({0})),
            Sheet("", ("what", "is"), tuple(self._facts())),
        ]
        return [*sheets, _snapshots(self)] if self.snapshots else sheets

    def _facts(self) -> Iterator[tuple[str, str]]:
        files = self.files
        yield "format version", str(self.format_version)
        yield "location", self.location
        if self.metadata:
            yield "metadata", self.metadata
        yield "partitioned by", ", ".join(self.partition) or "–"
        yield "sort order", self.sort_order or "–"
        if files.files:
            sizes = map(in_bytes, (files.smallest, files.median, files.largest))
            yield "file sizes", "{} at least, {} median, {} at most".format(*sizes)
        if files.delete_files:
            yield "delete files", f"{files.delete_files:,}: some of the rows are deleted"
        for name, value in self.properties.items():
            yield name, value
        for kind, refs in (("branch", self.branches), ("tag", self.tags)):
            for name, snapshot in refs.items():
                yield f"{kind} {name}", f"snapshot {snapshot}"


def _snapshots(report: DescribeReport) -> Sheet:
    shown = len(report.snapshots)
    title = counted(report.snapshot_count, "snapshot")
    if shown < report.snapshot_count:
        title += f", the newest {shown}"
    rows = tuple(
        (
            str(each.id),
            moment(each.committed_ms),
            each.operation or "–",
            thousands(each.rows_added),
            thousands(each.rows_removed),
            thousands(each.files_changed),
        )
        for each in report.snapshots
    )
    header = ("snapshot", "committed (UTC)", "operation", "rows added", "removed", "files changed")
    return Sheet(title, header, rows, right=frozenset({0, 3, 4, 5}))


def describe(table: Table) -> DescribeReport:
    """Return what a table is, from its metadata and manifests."""
    snapshots = sorted(table.snapshots.values(), key=lambda each: (each.timestamp_ms, each.id), reverse=True)
    order = table.sort_order
    properties = {key: value for key, value in sorted(table.properties.items()) if key.startswith(_SHOWN)}
    return DescribeReport(
        table=str(table.name),
        location=table.location,
        format_version=table.format_version,
        metadata=table.version,
        columns=tuple(_columns(table.schema().columns, "")),
        partition=tuple(_partition(field, table) for field in table.specs.get(table.current_spec_id, ())),
        sort_order=order_text(table, order) if order else None,
        properties=properties,
        files=_files(table),
        snapshot_count=len(snapshots),
        snapshots=tuple(_snapshot(table, snapshot) for snapshot in snapshots[:NEWEST]),
        branches=dict(table.branches),
        tags=dict(table.tags),
    )


def _columns(columns: Sequence[Column], above: str) -> Iterator[DescribedColumn]:
    for column in columns:
        name = f"{above}{column.name}"
        kind = str(column.type) if isinstance(column.type, Primitive) else str(column.type).partition("<")[0]
        yield DescribedColumn(id=column.id, name=name, type=kind, required=column.required, doc=column.doc)
        yield from _columns(parts_of(column.type), f"{name}.")


def _partition(field: PartitionField, table: Table) -> str:
    """A partition field as it is written after PARTITIONED BY."""
    names = {leaf.id: leaf.name for leaf in table.fields()}
    column, transform = names.get(field.source_id, f"field {field.source_id}"), str(field.transform)
    if transform == "identity":
        return column
    function, bracket, width = transform.partition("[")
    return f"{function}({width.rstrip(']')}, {column})" if bracket else f"{function}({column})"


def _snapshot(table: Table, snapshot: Snapshot) -> DescribedSnapshot:
    changes = table.changes_of(snapshot)
    rows = changes.rows
    return DescribedSnapshot(
        id=snapshot.id,
        committed_ms=snapshot.timestamp_ms,
        operation=snapshot.operation,
        rows_added=None if rows is None else rows.added,
        rows_removed=None if rows is None else rows.removed + rows.deletes_added,
        files_changed=changes.files,
    )


def _files(table: Table) -> DescribedFiles:
    snapshot = table.snapshot()
    if snapshot is None:
        return DescribedFiles(
            files=0, rows=0, bytes=0, smallest=None, median=None, largest=None, delete_files=0
        )
    files = table.read_files(table.file_lists(snapshot))
    is_data = files["content"].to_numpy() == DATA
    sizes, rows = files["size"].to_numpy()[is_data], files["rows"].to_numpy()[is_data]
    deletes = int(np.count_nonzero(~is_data))
    if not len(sizes):
        return DescribedFiles(
            files=0, rows=0, bytes=0, smallest=None, median=None, largest=None, delete_files=deletes
        )
    low, middle, high = int(sizes.min()), int(np.median(sizes)), int(sizes.max())
    return DescribedFiles(
        files=len(sizes),
        rows=int(rows.sum()),
        bytes=int(sizes.sum()),
        smallest=low,
        median=middle,
        largest=high,
        delete_files=deletes,
    )
