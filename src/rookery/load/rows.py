"""The rows of several files as one stream of batches, in the types of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from rookery.load.columnar import ColumnarFile
from rookery.load.csv_files import CsvFile
from rookery.load.inputs import Format, InputFile
from rookery.load.json_lines import JsonLinesFile
from rookery.load.types import cast_column, merged, stored_schema, without_nulls
from rookery.model import UsageError


class Reader(Protocol):
    """A file of one format."""

    source: InputFile

    def examine(self, given: pa.Schema | None) -> pa.Schema:
        """Return its columns; *given* are types that are known, for formats without types."""

    def batches(self, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield its rows; those of formats without types in the types of *columns*."""


@dataclass(frozen=True, slots=True)
class InputRows:
    """The rows of files, whose columns are known."""

    columns: pa.Schema
    read_as: dict[str, str]  # by column: its type in the file that has it first
    without_values: tuple[str, ...]  # columns that are null everywhere
    readers: tuple[Reader, ...]

    def batches(self, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield all rows in the types of *columns*, which has every column; what a file lacks is null."""
        for reader in self.readers:
            with reader.source.reading():
                for batch in reader.batches(columns):
                    if batch.num_rows:
                        yield _batch(batch, columns, reader.source)


def examine(inputs: Sequence[InputFile], given: pa.Schema | None = None) -> InputRows:
    """Return the rows of files; text files are read once, to find their types and what is wrong in them.

    *given* are the columns of the table to which the rows are added.
    """
    kinds: dict[str, pa.DataType] = {}
    origin: dict[str, str] = {}
    read_as: dict[str, str] = {}
    readers = tuple(map(_reader, inputs))
    for reader in readers:
        with reader.source.reading():
            raw = reader.examine(given)
        stored = stored_schema(raw, reader.source.shown)
        for field in (*stored, *_keys(reader.source, stored, inputs)):
            kind = merged(kinds.get(field.name, field.type), field.type)
            if kind is None:
                raise UsageError(
                    f"column {field.name} is {kinds[field.name]} in {origin[field.name]}, "
                    f"and {field.type} in {reader.source.shown}",
                    hint="load them into different tables, or convert the column",
                )
            kinds[field.name] = kind
            origin.setdefault(field.name, reader.source.shown)
            position = raw.get_field_index(field.name)
            read_as.setdefault(
                field.name, str(raw.field(position).type) if position >= 0 else "name of folder"
            )
    empty = tuple(name for name, kind in kinds.items() if pa.types.is_null(kind))
    columns = pa.schema([(name, without_nulls(kind)) for name, kind in kinds.items()])
    if not columns.names:
        raise UsageError("the files have no columns", hint="check that they are not empty")
    return InputRows(columns, read_as, empty, readers)


def _reader(source: InputFile) -> Reader:
    if source.format is Format.CSV:
        with source.reading():
            return CsvFile(source)
    return JsonLinesFile(source) if source.format is Format.JSON else ColumnarFile(source)


def _keys(source: InputFile, stored: pa.Schema, inputs: Sequence[InputFile]) -> list[pa.Field]:
    """Return the columns that folders name: whole numbers if all values are, else texts."""
    return [
        pa.field(name, pa.int64() if _all_whole(name, inputs) else pa.large_string())
        for name in source.keys
        if name not in stored.names
    ]


def _all_whole(name: str, inputs: Sequence[InputFile]) -> bool:
    values = {each.keys.get(name) for each in inputs}
    return all(_is_whole(value) for value in values if value)


def _is_whole(value: str) -> bool:
    """Whether a text is that of a number from 0, as 64 bits have it."""
    return value.isascii() and value.isdigit() and str(int(value)) == value and int(value) < 1 << 63


def _batch(batch: pa.RecordBatch, columns: pa.Schema, source: InputFile) -> pa.RecordBatch:
    arrays = []
    for field in columns:
        position = batch.schema.get_field_index(field.name)
        if position >= 0:
            arrays.append(cast_column(batch.column(position), field.type, field.name, source.shown))
        elif source.keys.get(field.name) is not None:
            key = pa.repeat(pa.scalar(source.keys[field.name]), batch.num_rows)
            arrays.append(cast_column(key, field.type, field.name, source.shown))
        else:
            arrays.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
