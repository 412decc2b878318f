"""A small table format, all metadata in memory, unlike Iceberg wherever the protocol leaves that open.

Columns are found by the names that they had when a file was written. All data files of a snapshot stand in
one list, whose identity is a digest of what it names. A table may have a key: the newest row of a key
replaces those in older files, so that no file stands alone.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rookery.model import Field, MachineError, MissingTableError, Snapshot, TableName
from rookery.model.schema import Column, Primitive, Schema
from rookery.parquet import Leaf
from rookery.puffin import BlobMetadata, DeletionVector, Writer, WrittenFile
from rookery.tables.column_mapping import ColumnMapping
from rookery.tables.files import DATA, FILE_SCHEMA, POSITION_DELETES, FieldSummary, FileList
from rookery.tables.partitioning import PartitionField, SortField, TransformKind
from rookery.tables.table import (
    EngineTable,
    RegisteredBlob,
    RowChanges,
    SnapshotChanges,
    SnapshotTotals,
    StatisticsFile,
    Table,
)

ARROW = {"long": pa.int64(), "string": pa.string()}


@dataclass(frozen=True)
class ByName:
    """Finds columns by the names that they had when the file was written."""

    ids: Mapping[str, int]

    def with_ids(self, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
        return [replace(leaf, field_id=self.ids.get(leaf.path[0])) for leaf in leaves]

    def is_same(self, stored: pa.Field, column: Column) -> bool:
        return bool(stored.name == column.name)


class Identity:
    """The only transform of the format."""

    kind = TransformKind.IDENTITY
    width = 0

    def result_type(self, source_type: str) -> str:
        return source_type

    def apply(self, value: Any, source_type: str) -> Any:
        return value

    def shown(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True)
class MemoryList:
    """All data files of a snapshot, or all its deletes."""

    rows: tuple[str, ...]  # each file as JSON
    is_data: bool
    size: int = 0
    spec_id: int = 0
    partitions: tuple[FieldSummary, ...] = ()

    @property
    def identity(self) -> str:
        return hashlib.sha256("\n".join((str(self.is_data), *self.rows)).encode()).hexdigest()

    @property
    def path(self) -> str:
        return f"memory:{self.identity}"

    @property
    def live_files(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Version:
    """What a snapshot consists of."""

    snapshot: Snapshot
    data: MemoryList
    deletes: MemoryList
    schema: Schema


@dataclass
class Metadata:
    """A table's metadata, which writers change and `MemoryTable` copies."""

    folder: Path
    partitioned_by: str | None = None
    key: str | None = None
    uuid: str = field(default_factory=lambda: str(uuid4()))
    schema: Schema = field(default_factory=lambda: Schema(()))
    versions: tuple[Version, ...] = ()
    names: dict[str, Mapping[str, int]] = field(default_factory=dict)  # by file: column ids by name
    branches: Mapping[str, int] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)
    sorted_by: int | None = None
    target_file_size: int = 1 << 20
    dropped: bool = False
    statistics: tuple[StatisticsFile, ...] = ()
    last_column_id: int = 0


class MemoryTable(Table):
    """The metadata at one moment, as `rookery.tables.Table`."""

    format_version = 1
    current_spec_id = 0
    properties: Mapping[str, str] = {}
    io_properties: Mapping[str, str] = {}
    target_list_size = 1 << 10
    maps_names = False
    not_loadable: str | None = None
    not_committable: str | None = None

    def __init__(self, name: TableName, metadata: Metadata) -> None:
        self.name = name
        self._live = metadata
        self._metadata = replace(metadata, names=dict(metadata.names))

    @property
    def uuid(self) -> str:
        return self._metadata.uuid

    @property
    def version(self) -> str | None:
        return None

    @property
    def location(self) -> str:
        return str(self._metadata.folder / "t")

    @property
    def snapshots(self) -> Mapping[int, Snapshot]:
        return {version.snapshot.id: version.snapshot for version in self._metadata.versions}

    @property
    def current_snapshot_id(self) -> int | None:
        return self._metadata.versions[-1].snapshot.id if self._metadata.versions else None

    @property
    def branches(self) -> Mapping[str, int]:
        return self._metadata.branches

    @property
    def tags(self) -> Mapping[str, int]:
        return self._metadata.tags

    def changes_of(self, snapshot: Snapshot) -> SnapshotChanges:
        version = self._version(snapshot)
        empty = MemoryList((), True), MemoryList((), False)
        before = next(
            (each for each in self._metadata.versions if each.snapshot.id == snapshot.parent_id), None
        )
        was, was_deleted = (before.data, before.deletes) if before is not None else empty
        added, removed = _rows_besides(version.data, was), _rows_besides(was, version.data)
        new, old = _rows_besides(version.deletes, was_deleted), _rows_besides(was_deleted, version.deletes)
        counts = RowChanges(sum(added), sum(removed), sum(new), sum(old), 0)
        return SnapshotChanges(sum(map(len, (added, removed, new, old))), counts)

    def totals_of(self, snapshot: Snapshot) -> SnapshotTotals:
        return SnapshotTotals(None, None, None, None)  # which a writer need not state

    @property
    def sort_order(self) -> Sequence[SortField]:
        source = self._metadata.sorted_by
        return () if source is None else (SortField(source, Identity(), "ASC", "NULLS FIRST"),)

    @property
    def target_file_size(self) -> int:
        return self._metadata.target_file_size

    def _version(self, snapshot: Snapshot) -> Version:
        return next(each for each in self._metadata.versions if each.snapshot.id == snapshot.id)

    def schema(self, snapshot: Snapshot | None = None) -> Schema:
        if snapshot is None or not snapshot.pinned:
            return self._metadata.schema
        return self._version(snapshot).schema

    def written_schema(self, snapshot: Snapshot) -> Schema | None:
        return self._version(snapshot).schema

    def fields(self, snapshot: Snapshot | None = None) -> tuple[Field, ...]:
        return self.schema(snapshot).leaves

    @property
    def column_types(self) -> Mapping[int, str]:
        schemas = (*(version.schema for version in self._metadata.versions), self._metadata.schema)
        return {column.id: str(column.type) for schema in schemas for column in schema.columns}

    @property
    def last_column_id(self) -> int:
        return self._metadata.last_column_id

    def column_mapping(self, path: str) -> ColumnMapping:
        return ByName(self._metadata.names[path])

    @property
    def specs(self) -> Mapping[int, Sequence[PartitionField]]:
        name = self._metadata.partitioned_by
        if name is None:
            return {0: ()}
        (source,) = (column for column in self._metadata.versions[0].schema.columns if column.name == name)
        return {0: (PartitionField(1000, source.id, name, Identity()),)}

    def file_lists(self, snapshot: Snapshot) -> Sequence[FileList]:
        version = self._version(snapshot)
        return [found for found in (version.data, version.deletes) if found.rows]

    def read_files(self, lists: Sequence[FileList]) -> pa.Table:
        rows = []
        for found in lists:
            assert isinstance(found, MemoryList)
            rows += [{**_unpacked(row), "file_list": found.path} for row in found.rows]
        return pa.Table.from_pylist(rows, FILE_SCHEMA)

    def deletes_by_file(self, data: pa.Table, deletes: pa.Table) -> Mapping[int, list[Mapping[str, Any]]]:
        targets = {row["referenced_data_file"]: row for row in deletes.to_pylist()}
        paths = enumerate(data["path"].to_pylist())
        return {number: [targets[path]] for number, path in paths if path in targets}

    def attached_deletes(self, data: pa.Table, deletes: pa.Table) -> list[str]:
        found = self.deletes_by_file(data, deletes)
        return [found[number][0]["path"] if number in found else "" for number in range(data.num_rows)]

    def stands_alone(self, files: pa.Table) -> NDArray[np.bool_]:
        return np.full(files.num_rows, self._metadata.key is None)

    @property
    def statistics(self) -> Sequence[StatisticsFile]:
        return self._metadata.statistics

    @property
    def statistics_folder(self) -> str:
        return str(self._metadata.folder)

    @property
    def statistics_paths(self) -> Sequence[str]:
        return [file.path for file in self.statistics]

    def register_statistics(
        self, spark: Any, snapshot_id: int, written: WrittenFile, is_named: Callable[[BlobMetadata], bool]
    ) -> None:
        blobs = tuple(
            RegisteredBlob(blob.type, blob.fields, blob.snapshot_id, blob.properties)
            for blob in filter(is_named, written.metadata.blobs)
        )
        file = StatisticsFile(snapshot_id, written.location, written.size, written.footer_size, blobs)
        others = tuple(each for each in self._live.statistics if each.snapshot_id != snapshot_id)
        self._live.statistics = (*others, file)

    def check_loadable(self, spark: Any) -> None:
        if self._live.dropped:
            raise MissingTableError("it was dropped")

    def for_engine(self, spark: Any) -> EngineTable:
        raise MachineError("no engine reads this format")


class MemoryWriter:
    """Writes to a table of the format."""

    def __init__(
        self, folder: Path, columns: Mapping[str, str], partition: str | None = None, key: str | None = None
    ) -> None:
        self.metadata = Metadata(folder, partition, key)
        for name, kind in columns.items():
            self.add_column(name, kind)

    def open(self) -> MemoryTable:
        return MemoryTable(TableName("memory", ("db",), "t"), self.metadata)

    def drop(self) -> None:
        self.metadata.dropped = True

    def tag(self, name: str) -> None:
        self.metadata.tags = {**self.metadata.tags, name: self.metadata.versions[-1].snapshot.id}

    def branch(self, name: str) -> None:
        self.metadata.branches = {**self.metadata.branches, name: self.metadata.versions[-1].snapshot.id}

    def sort_by(self, column: str) -> None:
        (self.metadata.sorted_by,) = (each.id for each in self.metadata.schema.columns if each.name == column)

    def aim_for(self, file_size: int) -> None:
        self.metadata.target_file_size = file_size

    # -- columns

    def add_column(self, name: str, kind: str) -> None:
        self.metadata.last_column_id += 1
        column = Column(self.metadata.last_column_id, name, Primitive(kind))
        self.metadata.schema = Schema((*self.metadata.schema.columns, column))

    def rename_column(self, old: str, new: str) -> None:
        columns = self.metadata.schema.columns
        self.metadata.schema = Schema(
            tuple(replace(column, name=new) if column.name == old else column for column in columns)
        )

    # -- rows

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        by_partition: dict[Any, list[Mapping[str, Any]]] = {}
        for row in rows:
            by_partition.setdefault(row.get(self.metadata.partitioned_by or ""), []).append(row)
        added = tuple(self._write(each) for each in by_partition.values())
        data, deletes = self._now()
        self._commit("append", replace(data, rows=(*data.rows, *added)), deletes)

    def delete_rows(self, ids: set[int]) -> None:
        """Delete rows by their `id`, a vector for each file that has some."""
        data, deletes = self._now()
        old = {_unpacked(row)["referenced_data_file"]: row for row in deletes.rows}
        for text in data.rows:
            path = _unpacked(text)["path"]
            held = pq.read_table(path)[self._name_in(path, "id")].to_pylist()
            gone = [number for number, value in enumerate(held) if value in ids]
            if gone:
                old[path] = self._vector(path, gone, old.get(path))
        self._commit("delete", data, replace(deletes, rows=tuple(old.values())))

    def restore_rows(self) -> None:
        """Undo all deletes of rows."""
        data, deletes = self._now()
        self._commit("overwrite", data, replace(deletes, rows=()))

    def remove_file_of(self, row_id: int) -> None:
        """Remove the file that holds a row."""
        data, deletes = self._now()
        kept = []
        for text in data.rows:
            path = _unpacked(text)["path"]
            if row_id not in pq.read_table(path)[self._name_in(path, "id")].to_pylist():
                kept.append(text)
        paths = {_unpacked(text)["path"] for text in kept}
        vectors = tuple(row for row in deletes.rows if _unpacked(row)["referenced_data_file"] in paths)
        self._commit("overwrite", replace(data, rows=tuple(kept)), replace(deletes, rows=vectors))

    # -- files

    def _now(self) -> tuple[MemoryList, MemoryList]:
        if not self.metadata.versions:
            return MemoryList((), True), MemoryList((), False)
        return self.metadata.versions[-1].data, self.metadata.versions[-1].deletes

    def _commit(self, operation: str, data: MemoryList, deletes: MemoryList) -> None:
        number = len(self.metadata.versions) + 1
        parent = self.metadata.versions[-1].snapshot.id if self.metadata.versions else None
        snapshot = Snapshot(number, parent, number, 1_700_000_000_000 + number, None, operation)
        self.metadata.versions += (Version(snapshot, data, deletes, self.metadata.schema),)

    def _name_in(self, path: str, name: str) -> str:
        (wanted,) = (column.id for column in self.metadata.schema.columns if column.name == name)
        return next(stored for stored, number in self.metadata.names[path].items() if number == wanted)

    def _write(self, rows: Sequence[Mapping[str, Any]]) -> str:
        path = self.metadata.folder / f"{uuid4().hex}.parquet"
        columns = self.metadata.schema.columns
        arrays = {
            column.name: pa.array([row.get(column.name) for row in rows], ARROW[str(column.type)])
            for column in columns
        }
        pq.write_table(pa.table(arrays), path)
        self.metadata.names[str(path)] = {column.name: column.id for column in columns}
        bounds = {column.id: _bounds(str(column.type), arrays[column.name]) for column in columns}
        partition = [rows[0].get(self.metadata.partitioned_by)] if self.metadata.partitioned_by else []
        return self._packed(
            path,
            len(rows),
            content=DATA,
            format="parquet",
            partition=json.dumps(partition),
            value_counts=[(number, len(rows)) for number in bounds],
            null_counts=[(column.id, arrays[column.name].null_count) for column in columns],
            lower_bounds=[(number, ends[0]) for number, ends in bounds.items() if ends],
            upper_bounds=[(number, ends[1]) for number, ends in bounds.items() if ends],
        )

    def _vector(self, path: str, positions: Sequence[int], before: str | None) -> str:
        vector = DeletionVector.of(positions)
        if before is not None:
            row = _unpacked(before)
            start, length = row["content_offset"], row["content_size"]
            with open(row["path"], "rb") as file:
                data = file.read()[start : start + length]
            vector = vector | DeletionVector.decode(data)
        place = self.metadata.folder / f"{uuid4().hex}.puffin"
        with Writer(str(place)) as writer:
            blob = writer.add(vector.blob(path))
        return self._packed(
            place,
            vector.cardinality,
            content=POSITION_DELETES,
            format="puffin",
            partition="[]",
            referenced_data_file=path,
            content_offset=blob.offset,
            content_size=blob.length,
        )

    def _packed(self, path: Path, rows: int, **more: Any) -> str:
        number = len(self.metadata.versions) + 1
        row = {"path": str(path), "size": path.stat().st_size, "rows": rows, "spec_id": 0, **more}
        return json.dumps({**row, "sequence_number": number, "added_snapshot_id": number}, default=bytes.hex)


def _unpacked(text: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(text)
    for name in ("value_counts", "null_counts"):
        row[name] = [(number, count) for number, count in row.get(name, ())]
    for name in ("lower_bounds", "upper_bounds"):
        row[name] = [(number, bytes.fromhex(value)) for number, value in row.get(name, ())]
    return row


def _rows_besides(these: MemoryList, others: MemoryList) -> list[int]:
    """The rows of each file that is in one list only."""
    return [_unpacked(text)["rows"] for text in these.rows if text not in others.rows]


def _bounds(kind: str, values: pa.Array) -> tuple[bytes, bytes] | None:
    present = [value for value in values.to_pylist() if value is not None]
    if not present:
        return None
    if kind == "long":
        return struct.pack("<q", min(present)), struct.pack("<q", max(present))
    return min(present).encode(), max(present).encode()
