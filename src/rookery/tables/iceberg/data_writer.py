"""Writing rows into data files through PyIceberg: by partition, sorted, in bounded memory."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO, OutputFile
from pyiceberg.io.fileformat import FileFormatFactory, FileFormatModel
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionKey
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.typedef import Record

from rookery.model import UsageError
from rookery.tables.iceberg.partition_values import column_at, split
from rookery.tables.iceberg.table_properties import (
    DEFAULT_FILE_SIZE,
    FILE_FORMAT,
    TARGET_FILE_SIZE,
    number_of,
)

_FILE_MEMORY = 256 << 20  # bytes of rows in a file, as they are in memory
_SORT_MEMORY = 1 << 30  # bytes of rows that are sorted together
_SPLIT_MEMORY = 32 << 20  # bytes of rows that are divided into partitions together


class RecordingIO(FileIO):
    """Passes everything on, and remembers which files were begun."""

    def __init__(self, inner: FileIO) -> None:
        super().__init__(inner.properties)
        self.inner = inner
        self.written: list[str] = []

    def new_input(self, location: str):  # type: ignore[no-untyped-def]
        """Return a file to read."""
        return self.inner.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        """Return a file to write."""
        self.written.append(location)
        return self.inner.new_output(location)

    def delete(self, location) -> None:  # type: ignore[no-untyped-def]
        """Delete a file."""
        self.inner.delete(location)


@dataclass(slots=True)
class _Buffer:
    """Rows of one partition that are not written yet."""

    key: PartitionKey | None
    rows: list[pa.Table] = field(default_factory=list)
    size: int = 0
    flushed: bool = False  # whether some of its rows are in files already


class DataWriter:
    """Collects rows by partition; when they take too much memory, the largest partitions are written."""

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        *,
        file_memory: int = _FILE_MEMORY,
        sort_memory: int = _SORT_MEMORY,
    ) -> None:
        self.io = io
        self.metadata = metadata
        self.spec = metadata.spec()
        self.schema: Schema = metadata.schema()
        order = metadata.sort_order_by_id(metadata.default_sort_order_id)
        self.order = () if order is None else tuple(order.fields)
        target = number_of(metadata.properties, TARGET_FILE_SIZE, DEFAULT_FILE_SIZE)
        self.file_memory = min(file_memory, target)
        self.memory = max(sort_memory, self.file_memory) if self.order else self.file_memory
        self.files: list[DataFile] = []
        self._format = _format(metadata.properties.get(FILE_FORMAT, "parquet"))
        self._buffers: dict[str, _Buffer] = {}
        self._pending: list[pa.RecordBatch] = []
        self._pending_size = 0
        self._counter = itertools.count()
        self._uuid = uuid.uuid4()
        self._flushed_early = False

    @property
    def sorted_within(self) -> str | None:
        """Within what rows are sorted: the table, its partitions, or each file."""
        if not self.order:
            return None
        if self._flushed_early:
            return "files"
        return "table" if self.spec.is_unpartitioned() else "partitions"

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows; some may be written."""
        self._pending.append(rows)
        self._pending_size += rows.nbytes
        if self._pending_size >= min(_SPLIT_MEMORY, self.memory):
            self._divide()
            self._make_room()

    def finish(self) -> None:
        """Write all rows that are left."""
        self._divide()
        for buffer in self._buffers.values():
            self._flush(buffer)
        self._buffers.clear()

    def _divide(self) -> None:
        if not self._pending:
            return
        rows = pa.Table.from_batches(self._pending)
        self._pending, self._pending_size = [], 0
        for key, part in split(rows, self.spec, self.schema):
            buffer = self._buffers.setdefault("" if key is None else repr(key.partition), _Buffer(key))
            buffer.rows.append(part)
            buffer.size += part.nbytes

    def _make_room(self) -> None:
        """Write the largest partitions until half of the memory is free."""
        if sum(buffer.size for buffer in self._buffers.values()) < self.memory:
            return
        for buffer in sorted(self._buffers.values(), key=lambda each: -each.size):
            self._flush(buffer)
            self._flushed_early = True
            if sum(each.size for each in self._buffers.values()) <= self.memory // 2:
                return

    def _flush(self, buffer: _Buffer) -> None:
        if not buffer.rows:
            return
        rows = self._sorted(pa.concat_tables(buffer.rows)) if self.order else pa.concat_tables(buffer.rows)
        buffer.rows, buffer.size = [], 0
        count = -(-rows.nbytes // self.file_memory)
        step = -(-rows.num_rows // max(count, 1))
        for start in range(0, rows.num_rows, step):
            self.files.append(self._written(rows.slice(start, step).combine_chunks(), buffer.key))

    def _written(self, rows: pa.Table, key: PartitionKey | None) -> DataFile:
        """Write a file; PyIceberg's `write_file` makes lists and maps of structs that are null empty."""
        properties = self.metadata.properties
        schema = sanitize_column_names(self.schema)
        locations = load_location_provider(self.metadata.location, properties)
        name = f"00000-{next(self._counter)}-{self._uuid}.{self._format.file_extension()}"
        output = self.io.new_output(locations.new_data_location(name, key))
        with self._format.create_writer(output, schema, properties) as writer:
            writer.write(_in_schema(rows, schema_to_pyarrow(schema)))
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=output.location,
            file_format=self._format.format,
            partition=Record() if key is None else key.partition,
            file_size_in_bytes=len(output),
            spec_id=self.metadata.default_spec_id,
            **writer.result().to_serialized_dict(),
        )

    def _sorted(self, rows: pa.Table) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        keys: list[tuple[str, str]] = []
        for number, part in enumerate(self.order):
            name = self.schema.find_column_name(part.source_id)
            assert name is not None
            column = column_at(rows, name)
            if column.null_count:
                first = part.null_order == NullOrder.NULLS_FIRST
                columns[f"null{number}"] = column.is_null()
                keys.append((f"null{number}", "descending" if first else "ascending"))
            columns[f"value{number}"] = column
            descending = part.direction == SortDirection.DESC
            keys.append((f"value{number}", "descending" if descending else "ascending"))
        return rows.take(pc.sort_indices(pa.table(columns), sort_keys=keys))


def _format(name: str) -> FileFormatModel:
    try:
        return FileFormatFactory.get(FileFormat(name))
    except ValueError as error:
        raise UsageError(
            f"the table's files are to be written as {name}, which PyIceberg does not write",
            hint=f"load into a table without the property {FILE_FORMAT}, or use Spark",
        ) from error


def _in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows under the names and ids of a file, whose types are those of the rows.

    >>> named = pa.list_(pa.struct([pa.field("a_b", pa.int64(), nullable=False)]))
    >>> _in_schema(pa.table({"x-y": [[{"a-b": 1}], None]}), pa.schema([("x_y", named)])).to_pylist()
    [{'x_y': [{'a_b': 1}]}, {'x_y': None}]
    """
    fields = [field.with_type(_optional(field.type)) for field in schema]
    columns = [
        pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
        for column, field in zip(rows.columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _optional(kind: pa.DataType) -> pa.DataType:
    """Return a type whose parts may be null: pyarrow writes no required part of a struct that is null."""
    if pa.types.is_struct(kind):
        return pa.struct([_optional_part(part) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, _optional_part(kind.item_field))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        made = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return made(_optional_part(kind.value_field))
    return kind


def _optional_part(field: pa.Field) -> pa.Field:
    return field.with_type(_optional(field.type)).with_nullable(True)


def delete_files(io: FileIO, locations: Sequence[str]) -> list[str]:
    """Delete files, and return those that could not be deleted."""
    left = []
    for location in locations:
        try:
            io.delete(location)
        except FileNotFoundError:
            continue
        except Exception:  # noqa: BLE001  # every store has its own errors; the others are still deleted
            left.append(location)
    return left
