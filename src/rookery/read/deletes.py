"""The rows of a data file that are deleted: by deletion vectors, by position, by equality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rookery.io import open_source, shown
from rookery.model import Place, StorageError
from rookery.model.schema import Schema
from rookery.parquet.structure import damaged
from rookery.puffin import DeletionVector, open_puffin
from rookery.read.types import arrow_type, cast
from rookery.tables.column_mapping import field_id
from rookery.tables.files import EQUALITY_DELETES, PATH_FIELD, POSITION_DELETES, POSITION_FIELD


@dataclass(frozen=True, slots=True, eq=False)
class EqualityDelete:
    """Rows that have one of these combinations of values are deleted."""

    field_ids: tuple[int, ...]
    values: pa.Table  # a column a field, in the order of the ids


@dataclass(frozen=True, slots=True, eq=False)
class Deleted:
    """The deletes of a file."""

    positions: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    equality: tuple[EqualityDelete, ...] = ()


NOTHING = Deleted()


class DeleteReader:
    """Reads delete files, each once; several data files may share one."""

    def __init__(self, schema: Schema, io_properties: Mapping[str, str]) -> None:
        self._schema = schema
        self._io = io_properties
        self._positions: dict[str, pa.Table] = {}
        self._equality: dict[str, EqualityDelete] = {}

    def deleted(self, path: str, rows: Sequence[Mapping[str, Any]]) -> Deleted:
        """Return what the delete files *rows*, as `FILE_SCHEMA` has them, delete of a data file."""
        positions = [self._deleted_positions(path, row) for row in rows if row["content"] == POSITION_DELETES]
        equality = [self._equality_delete(row) for row in rows if row["content"] == EQUALITY_DELETES]
        joined = np.unique(np.concatenate(positions)) if positions else NOTHING.positions
        return Deleted(joined, tuple(equality))

    def _deleted_positions(self, path: str, row: Mapping[str, Any]) -> NDArray[np.int64]:
        if row["format"] == "puffin":
            return self._vector(row)
        name = row["path"]
        if name not in self._positions:
            self._positions[name] = self._table(row, (PATH_FIELD, POSITION_FIELD))
        positions = self._positions[name]
        own = positions.filter(pc.equal(positions.column(0), path))
        return np.asarray(own.column(1).combine_chunks(), np.int64)

    def _vector(self, row: Mapping[str, Any]) -> NDArray[np.int64]:
        offset, length = row["content_offset"], row["content_size"]
        with open_source(row["path"], self._io) as source:
            if offset is not None and length is not None:
                return DeletionVector.decode(
                    source.read(offset, length), place=Place(source.name, offset)
                ).positions()
            with open_puffin(source) as reader:
                wanted = row["referenced_data_file"]
                for blob in reader.metadata.blobs:
                    if blob.properties.get("referenced-data-file") == wanted:
                        return DeletionVector.from_blob(blob, reader.read(blob), source.name).positions()
        raise StorageError(f"{shown(row['path'])} has no deletion vector of {shown(str(wanted))}")

    def _equality_delete(self, row: Mapping[str, Any]) -> EqualityDelete:
        name = row["path"]
        if name not in self._equality:
            ids = tuple(row["equality_ids"] or ())
            self._equality[name] = EqualityDelete(ids, self._table(row, ids))
        return self._equality[name]

    def _table(self, row: Mapping[str, Any], field_ids: Sequence[int]) -> pa.Table:
        """The columns of a delete file by field id, in the types that the table has now."""
        if row["format"] != "parquet":
            raise StorageError(
                f"{shown(row['path'])}: deletes in {row['format']} cannot be read here",
                hint="use table.scan(spark, …)",
            )
        with open_source(row["path"], self._io) as source, damaged(Place(source.name), "a delete file"):
            table = pq.ParquetFile(pa.BufferReader(source.read_all())).read()
        places = {field_id(field): number for number, field in enumerate(table.schema)}
        arrays, names = [], []
        for number in field_ids:
            if number not in places:
                raise StorageError(
                    f"{shown(row['path'])} lacks the field {number}", hint="use table.scan(spark, …)"
                )
            array = table.column(places[number])
            known = self._schema.by_id.get(number)
            kind = arrow_type(known.type) if known is not None else None
            arrays.append(cast(array, kind) if kind is not None else array.combine_chunks())
            names.append(str(number))
        return pa.table(arrays, names=names)


def matches(delete: EqualityDelete, columns: Sequence[pa.Array]) -> NDArray[np.bool_]:
    """Return which rows, given by the columns of the delete's fields, it deletes; null equals null."""
    count = len(columns[0]) if columns else 0
    codes = np.zeros(count + delete.values.num_rows, np.int64)
    for column, deleted in zip(columns, delete.values.columns, strict=True):
        both = _joined(_comparable(column), _comparable(deleted.combine_chunks()))
        encoded = both.dictionary_encode(null_encoding="encode")
        size = len(encoded.dictionary) + 1
        codes = codes * size + np.asarray(encoded.indices.fill_null(size - 1), np.int64)
        codes = np.unique(codes, return_inverse=True)[1].astype(
            np.int64
        )  # small again, so that none overflows
    return np.isin(codes[:count], codes[count:])


def _joined(first: pa.Array, second: pa.Array) -> pa.Array:
    """Both in one; those of a column that was dropped have the types that they were stored in."""
    if first.type == second.type:
        return pa.concat_arrays([first, second])
    parts = [pa.table([array], names=["both"]) for array in (first, second)]
    return pa.concat_tables(parts, promote_options="permissive").column(0).combine_chunks()


def _comparable(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array
