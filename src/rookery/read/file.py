"""One data file: its matching rows, from the row groups and pages that may have some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.io import Source, TailSource, open_source, shown
from rookery.model import Field, Predicate, StorageError, leaves_of
from rookery.model.cache import Cache
from rookery.model.schema import Column, Primitive, Schema, walk
from rookery.parquet import FIRST_READ, read_columns, read_row_group
from rookery.parquet import Leaf as ParquetLeaf
from rookery.prune.parquet_pruning import (
    Inside,
    RemainingRowGroup,
    StoredFile,
    page_indexes,
    pages,
    row_groups,
)
from rookery.read.deletes import NOTHING, Deleted, matches
from rookery.read.nested import project
from rookery.read.types import arrow_type, cast, constant
from rookery.values.row_filter import true_rows

_DENSE = 0.25  # of the rows of a row group: more than this are cut out after reading, not by ranges


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """The request for every file: a predicate, and columns."""

    predicate: Predicate
    columns: tuple[Column, ...]
    schema: Schema
    fields: Mapping[int, Field]  # every leaf column by id
    io_properties: Mapping[str, str]
    cache: Cache = field(default_factory=Cache)


@dataclass(frozen=True, slots=True, eq=False)
class FileRead:
    """A file to read."""

    path: str
    stored: StoredFile
    format: str
    constants: Mapping[int, Any]  # values from its partition for columns that it may lack
    deleted: Deleted = NOTHING
    rows: NDArray[np.int64] | None = None  # the only rows that may match by an index
    answered: frozenset[int] = frozenset()  # columns whose values may be here by an index

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.stored.size


@dataclass(slots=True)
class ReadCosts:
    """What reading cost."""

    files: int = 0
    bytes_read: int = 0
    reads: int = 0
    row_groups: int = 0
    rows_decoded: int = 0


class NoFieldIdsError(StorageError):
    """A file's columns can be found only by their names, which Iceberg's own reader does."""


def read_file(request: Request, file: FileRead, costs: ReadCosts) -> Iterator[pa.Table]:
    """Yield the rows of a file that match, a table for each row group that has some."""
    for reading, chosen in _matching(request, file, costs):
        yield reading.table(chosen)


def count_file(request: Request, file: FileRead, costs: ReadCosts) -> int:
    """Return how many rows of a file match; only the columns that decide about that are read."""
    return sum(len(chosen) for _, chosen in _matching(request, file, costs))


def _matching(
    request: Request, file: FileRead, costs: ReadCosts
) -> Iterator[tuple[GroupReading, NDArray[np.int64]]]:
    if file.format != "parquet":
        raise StorageError(
            f"{shown(file.path)} is {file.format}, which is not read here", hint="use table.scan(spark, …)"
        )
    if not file.stored.stands_alone:
        raise StorageError(
            f"{shown(file.path)} has rows that are merged with those of other files, which is not done here",
            hint="use table.scan(spark, …)",
        )
    with open_source(file.path, request.io_properties) as opened:
        source = TailSource(opened, file.size, FIRST_READ)
        try:
            inside = row_groups(source, file.stored, request.predicate, request.cache, file.answered)
            if not file.stored.replaced and not inside.leaves and inside.footer.leaves:
                raise NoFieldIdsError(
                    f"{shown(file.path)} has no field ids", hint="use table.scan(spark, …), which maps names"
                )
            pages(source, inside, request.predicate)
            costs.files += 1
            for group in inside.groups:
                reading = GroupReading(request, file, source, inside, group)
                chosen = reading.chosen()
                costs.row_groups += 1
                costs.rows_decoded += reading.decoded
                if len(chosen):
                    yield reading, chosen
        finally:
            costs.bytes_read += opened.bytes_read
            costs.reads += opened.reads


class GroupReading:
    """A row group being read: first the predicate's columns, then the others for the rows that are left."""

    def __init__(
        self, request: Request, file: FileRead, source: Source, inside: Inside, group: RemainingRowGroup
    ) -> None:
        self._request = request
        self._file = file
        self._source = source
        self._inside = inside
        self._group = group
        stored = inside.footer.row_groups[group.number]
        self._rows = stored.rows
        self._first = stored.first_row
        self._held: dict[int, tuple[NDArray[np.int64], pa.Array]] = {}
        self.decoded = 0

    def chosen(self) -> NDArray[np.int64]:
        """Return the rows, numbered in the row group, that match and are not deleted."""
        rows = self._candidates()
        if not len(rows):
            return rows
        self.decoded = len(rows)
        needed = sorted({leaf.field.id for leaf in leaves_of(self._request.predicate)})
        columns = dict(zip(needed, self._leaf_values(needed, rows), strict=True))
        rows_found = true_rows(self._request.predicate, columns.__getitem__, len(rows))
        rows = rows[rows_found]
        for delete in self._file.deleted.equality:
            if len(rows):
                rows = rows[~matches(delete, self._leaf_values(list(delete.field_ids), rows, typed=True))]
        return rows

    def _candidates(self) -> NDArray[np.int64]:
        """The rows that may match by pages and indexes, without those deleted by position."""
        maybe = np.ones(self._rows, bool) if self._group.rows is None else self._group.rows.copy()
        if self._file.rows is not None:
            listed = np.zeros(self._rows, bool)
            listed[self._here(self._file.rows)] = True
            maybe &= listed
        if len(self._file.deleted.positions):
            maybe[self._here(self._file.deleted.positions)] = False
        return np.flatnonzero(maybe)

    def _here(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        start, end = np.searchsorted(positions, [self._first, self._first + self._rows])
        return positions[start:end] - self._first

    def table(self, rows: NDArray[np.int64]) -> pa.Table:
        """Return the requested columns, in these rows."""
        flat = [column for column in self._request.columns if isinstance(column.type, Primitive)]
        values = dict(
            zip(
                (column.id for column in flat),
                self._leaf_values([column.id for column in flat], rows, typed=True),
                strict=True,
            )
        )
        arrays = [
            values[column.id] if column.id in values else self._nested(column, rows)
            for column in self._request.columns
        ]
        return pa.table(arrays, names=[column.name for column in self._request.columns])

    def _leaf_values(
        self, field_ids: Sequence[int], rows: NDArray[np.int64], *, typed: bool = False
    ) -> list[pa.Array]:
        """The values of leaf columns in some rows; *typed* in the table's type, else as they are stored."""
        leaves = {number: self._inside.leaves.get(number) for number in field_ids}
        # Columns read before have more rows: the rows only become fewer.
        missing = [number for number, leaf in leaves.items() if leaf is not None and number not in self._held]
        self._read({number: leaves[number] for number in missing}, rows)  # type: ignore[misc]
        arrays = []
        for number in field_ids:
            known = self._request.fields.get(number)  # None: dropped since, but deletes by it still apply
            target = pa.null() if known is None else self._arrow_type(known)
            if leaves[number] is None:
                array = self._absent(number, known, target, rows)
            else:
                held, values = self._held[number]
                same = len(held) == len(rows)
                array = values if same else values.take(pa.array(np.searchsorted(held, rows)))
                if known is not None and (typed or _promoted(known.type, array.type)):
                    array = cast(array, target)
            arrays.append(array)
        return arrays

    def _arrow_type(self, column: Field) -> pa.DataType:
        arrow = arrow_type(self._request.schema.by_id[column.id].type)
        if arrow is None:  # deletes by such a column, as columns to read are checked before
            raise StorageError(
                f"'{column.name}' has a type that is not read here: {column.type}",
                hint="use table.scan(spark, …)",
            )
        return arrow

    def _read(self, leaves: Mapping[int, ParquetLeaf], rows: NDArray[np.int64]) -> None:
        if not leaves:
            return
        stored = list(leaves.values())
        dense = len(rows) > _DENSE * self._rows
        ranges = None if dense else _ranges(rows)
        indexes = (
            [None] * len(stored) if dense else page_indexes(self._source, self._inside, self._group, stored)
        )
        columns = read_columns(self._source, self._inside.footer, stored, self._group.number, ranges, indexes)
        for number, column in zip(leaves, columns, strict=True):
            values = column.combine_chunks()
            if dense and len(rows) < self._rows:
                values = values.take(pa.array(rows))
            self._held[number] = (rows, values)

    def _absent(
        self, field_id: int, known: Field | None, target: pa.DataType, rows: NDArray[np.int64]
    ) -> pa.Array:
        """A column that the file lacks: its partition's value, its default, or null."""
        if known is None:
            return constant(None, target, len(rows))
        if field_id in self._file.constants:
            return constant(self._file.constants[field_id], target, len(rows))
        default = self._request.schema.by_id[field_id].initial_default
        if default is None or not known.nested:
            return constant(default, target, len(rows))
        (root,) = (each for each in self._request.schema.columns if each.name == known.parts[0])
        array = self._nested(root, rows)
        for name in known.parts[1:]:  # where a struct is null, its fields are null, not their defaults
            array = array.flatten()[array.type.get_field_index(name)]
        return array

    def _nested(self, column: Column, rows: NDArray[np.int64]) -> pa.Array:
        """A struct, list or map: its row group is read whole, and converted to the table's schema by ids."""
        leaves = self._file.stored.mapping.with_ids(self._inside.footer.leaves)
        own = [leaf for leaf in leaves if leaf.field_id in _leaf_ids(column)]
        target = arrow_type(column.type)
        if target is None:
            raise StorageError(
                f"'{column.name}' has a type that is not read here: {column.type}",
                hint="omit the column, or use table.scan(spark, …)",
            )
        if not own:
            return constant(None, target, len(rows))
        table = read_row_group(self._source, self._group.number, [own[0].path[0]])
        stored = table.column(0).type
        taken = table.take(pa.array(rows)).column(0).combine_chunks()
        return project(taken, stored, column.type, self._file.stored.mapping)


def _leaf_ids(column: Column) -> frozenset[int]:
    return frozenset(part.id for part in walk((column,)))


def _promoted(kind: str, stored: pa.DataType) -> bool:
    """Whether stored values need the table's type before they are compared."""
    return kind in (
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
    ) and not pa.types.is_timestamp(stored)


def _ranges(rows: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ascending numbers as half-open ranges.

    >>> _ranges(np.array([1, 2, 3, 7]))
    [(1, 4), (7, 8)]
    """
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    starts = rows[np.concatenate(([0], breaks))]
    ends = rows[np.concatenate((breaks - 1, [len(rows) - 1]))] + 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
