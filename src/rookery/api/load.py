"""`load`: files of other formats become a table, or are added to one, in one commit."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rookery.load import InputRows, check_columns, examine, find_inputs
from rookery.model import CatalogError, Report, Sheet, TableName, UsageError, counted, in_bytes
from rookery.tables import Table
from rookery.tables.formats import Catalog
from rookery.tables.load import TableLoad, Written

__all__ = ["LoadReport", "LoadedColumn", "load_files"]

_SORTED = {
    "table": "all rows are sorted",
    "partitions": "rows are sorted within each partition",
    "files": "rows are sorted within each file: they are too many to be sorted in memory",
}


@dataclass(frozen=True, slots=True)
class LoadedColumn:
    """A column of the table, and its type in the files; None if they lack it."""

    name: str
    type: str
    read_as: str | None


@dataclass(frozen=True, slots=True)
class LoadReport(Report):
    """What was loaded: numbers are those of the committed snapshot."""

    table: str
    created: bool
    inputs: int
    rows: int
    files: int
    bytes: int
    snapshot_id: int | None
    columns: tuple[LoadedColumn, ...]
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    sorted_within: str | None
    seconds: float
    notes: tuple[str, ...] = ()

    def sheets(self) -> Sequence[Sheet]:
        """The columns, below what was written."""
        what = f"{counted(self.rows, 'row')} in {counted(self.files, 'file')}, {in_bytes(self.bytes)}"
        verb = "created with" if self.created else "added"
        notes = [f"read {counted(self.inputs, 'file')} in {self.seconds:.2f} s"]
        if self.partition:
            notes.append(f"partitioned by {', '.join(self.partition)}")
        if self.sorted_within is not None:
            notes.append(f"{_SORTED[self.sorted_within]}, by {', '.join(self.sort)}")
        rows = tuple((column.name, column.type, column.read_as or "–") for column in self.columns)
        title = f"{self.table}: {verb} {what}"
        return [Sheet(title, ("column", "type", "read as"), rows, (*notes, *self.notes))]


def load_files(
    catalog: Catalog,
    name: TableName,
    files: Sequence[str | os.PathLike[str]],
    *,
    properties: dict[str, str],
    partition: Sequence[str] = (),
    sort: Sequence[str] = (),
    append: bool = False,
) -> LoadReport:
    """Load files into a table; nothing is visible before all rows are written.

    *properties* are those with which the catalog opens stores.
    """
    started = time.perf_counter()
    if append and (partition or sort):
        raise UsageError(
            "partition and sort are those of the table that is added to", hint="omit them, or omit append"
        )
    load = catalog.start_load(name, append=append)
    inputs = find_inputs([os.fspath(file) for file in files], properties)
    rows = examine(inputs, load.columns)
    missing = () if load.columns is None else check_columns(rows, str(name), load.columns)
    try:
        written, read = _write(load, rows, partition, sort)
        table = load.commit()
    except BaseException:
        load.abort()
        raise
    if _committed_rows(table, load.snapshot_id) != read or written.rows != read:
        raise CatalogError(
            f"{name}: {read:,} rows were read, and the snapshot has another number",
            hint="please report this; `rookery describe` shows the snapshot",
        )
    notes = [f"{column} has no values, and is text" for column in rows.without_values if not append]
    notes += [f"{column} is not in the files, and null in these rows" for column in missing]
    return LoadReport(
        table=str(name),
        created=not append,
        inputs=len(inputs),
        rows=read,
        files=written.files,
        bytes=written.bytes,
        snapshot_id=load.snapshot_id,
        columns=tuple(
            LoadedColumn(column.name, str(column.type), rows.read_as.get(column.name))
            for column in table.schema().columns
        ),
        partition=tuple(partition),
        sort=tuple(sort),
        sorted_within=written.sorted_within,
        seconds=time.perf_counter() - started,
        notes=tuple(notes),
    )


def _write(
    load: TableLoad, rows: InputRows, partition: Sequence[str], sort: Sequence[str]
) -> tuple[Written, int]:
    """Write all rows; return what was written, and how many rows were read."""
    columns = load.begin(rows.columns, partition, sort)
    read = 0
    for batch in _checked(rows.batches(columns), columns):
        load.write(batch)
        read += batch.num_rows
    return load.finish(), read


def _checked(batches: Iterator[pa.RecordBatch], columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    required = [number for number, field in enumerate(columns) if not field.nullable]
    for batch in batches:
        for number in required:
            if batch.column(number).null_count:
                raise UsageError(
                    f"column {columns.field(number).name} is required, and has rows without a value",
                    hint="correct the files; nothing was loaded",
                )
        yield batch


def _committed_rows(table: Table, snapshot_id: int | None) -> int:
    """The rows of the files that a snapshot has added, by its manifests."""
    if snapshot_id is None:
        return 0
    snapshot = table.snapshot(snapshot_id)
    assert snapshot is not None
    files = table.read_files([each for each in table.file_lists(snapshot) if each.is_data])
    added = files.filter(pc.equal(files["added_snapshot_id"], snapshot_id))
    return int(pc.sum(added["rows"]).as_py() or 0)
