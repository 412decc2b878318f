"""Zone maps: metrics of files from their lists, by column, so that a predicate reads only its own columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.model import Field
from rookery.model.text import proven_text
from rookery.model.uuids import proven_uuids
from rookery.tables import IDENTITY
from rookery.values.canonical import from_bytes

FILE_COLUMNS = (*IDENTITY, "deletes", "row_groups")
"""The columns of a file as a whole: its identity, its deletes, and how many row groups it
has, which segments of earlier versions do not state."""

COLUMN_SCHEMA = pa.schema(
    [
        ("size", pa.int64()),
        ("values", pa.int64()),
        ("nulls", pa.int64()),
        ("nans", pa.int64()),
        ("lower", pa.binary()),
        ("upper", pa.binary()),
    ]
)
"""The metrics of a column of each file; null where the list does not state them."""

_NANOSECONDS = ("timestamp_ns", "timestamptz_ns")
_MICROSECONDS = ("timestamp", "timestamptz")
_SECOND = 1_000_000
_PROVEN = {"string": proven_text, "uuid": proven_uuids}
_MAPS = ("column_sizes", "value_counts", "null_counts", "nan_counts", "lower_bounds", "upper_bounds")


@dataclass(frozen=True, slots=True, eq=False)
class ZoneMap:
    """A row a file: of the files, and of each column by its field id."""

    files: pa.Table
    columns: Mapping[int, pa.Table]

    @classmethod
    def of(cls, listed: pa.Table) -> ZoneMap:
        """Convert the maps of file lists, by file, to columns by field id."""
        files = listed.select([name for name in FILE_COLUMNS if name in listed.column_names])
        return cls(files, _columns(listed))

    @classmethod
    def concat(cls, parts: Sequence[ZoneMap]) -> ZoneMap:
        """Put zone maps one below the other."""
        ids = {number for part in parts for number in part.columns}
        files = pa.concat_tables([part.files for part in parts], promote_options="default")
        return cls(files, {n: pa.concat_tables([part.column(n) for part in parts]) for n in sorted(ids)})

    def __len__(self) -> int:
        return int(self.files.num_rows)

    def column(self, field_id: int) -> pa.Table:
        """Return the metrics of a column, all null if none are known."""
        metrics = self.columns.get(field_id)
        return nothing_known(len(self)) if metrics is None else metrics

    def filter(self, mask: np.ndarray) -> ZoneMap:
        """Return the files for which *mask* is true."""
        chosen = pa.array(mask)
        return ZoneMap(
            self.files.filter(chosen),
            {number: column.filter(chosen) for number, column in self.columns.items()},
        )

    def equals(self, other: ZoneMap) -> bool:
        """Whether both are equal."""
        return (
            self.files.equals(other.files)
            and self.columns.keys() == other.columns.keys()
            and all(column.equals(other.columns[number]) for number, column in self.columns.items())
        )


def nothing_known(files: int) -> pa.Table:
    """Return a column of which nothing is known."""
    return pa.table([pa.nulls(files, field.type) for field in COLUMN_SCHEMA], schema=COLUMN_SCHEMA)


def proven(field: Field, column: pa.Table, files: pa.Table) -> pa.Table:
    """Return what the metrics of a column prove, with a row for each of *files*; null if not proved.

    - A file has as many values as rows. A writer that counts otherwise has left rows out.
    - Rows whose struct is null are null in its fields too, but not every writer counts those: Iceberg's ORC
      does not, and neither does its Parquet for floats. So nulls in structs count only if all rows are null.
    - Writers of ORC have given microseconds for the bounds of nanoseconds. And Java reads times before 1970
      from ORC that was not written by Java a second earlier than the writer's bounds have them.
    - Text in bounds may represent bytes that are not UTF-8, and UUIDs have two orders.

    In lists and maps a row has any number of values: their counts are returned as they are.
    """
    proved: dict[str, pa.Array] = {}
    if field.type in _PROVEN:
        lower, upper = (column[end].combine_chunks() for end in ("lower", "upper"))
        lower, upper = _PROVEN[field.type](lower, upper, _one_row_group(files))
        proved = {"lower": lower, "upper": upper}
    if field.repeated:
        return _with(column, proved)
    rows, nulls = files["rows"].combine_chunks(), column["nulls"].combine_chunks()
    whole = pc.equal(column["values"].combine_chunks(), rows)
    believed = pc.equal(nulls, rows) if field.nested else pc.fill_null(whole, True)
    proved |= {"values": rows, "nulls": pc.if_else(pc.fill_null(believed, False), nulls, None)}
    if field.type in (*_NANOSECONDS, *_MICROSECONDS):
        orc = pc.equal(files["format"].combine_chunks(), "orc")
        if pc.any(orc).as_py():
            proved |= _times_of_orc(field, column, orc)
    return _with(column, proved)


def _times_of_orc(field: Field, column: pa.Table, orc: pa.Array) -> dict[str, pa.Array]:
    lower, upper = (column[end].combine_chunks() for end in ("lower", "upper"))
    if field.type in _NANOSECONDS:
        return {"lower": pc.if_else(orc, None, lower), "upper": pc.if_else(orc, None, upper)}
    return {
        "lower": pc.if_else(orc, _moved(lower, -_SECOND), lower),
        "upper": pc.if_else(orc, _moved(upper, _SECOND), upper),
    }


def _moved(bounds: pa.Array, by: int) -> pa.Array:
    """Bounds in microseconds, those before 1970 moved; what has another width is unknown."""
    numbers = from_bytes("timestamp", bounds)
    moved = pc.if_else(pc.less(numbers, 0), pc.add(numbers, by), numbers)
    if by < 0:
        moved = pc.if_else(pc.greater(moved, numbers), None, moved)  # beyond the least number there is
    data = pa.py_buffer(moved.fill_null(0).to_numpy().astype("<i8"))
    stored = pa.Array.from_buffers(pa.binary(8), len(moved), [None, data]).cast(pa.binary())
    return pc.if_else(moved.is_valid(), stored, None)


def _with(column: pa.Table, proved: Mapping[str, pa.Array]) -> pa.Table:
    return pa.table([proved.get(name, column[name]) for name in COLUMN_SCHEMA.names], schema=COLUMN_SCHEMA)


def _one_row_group(files: pa.Table) -> pa.Array:
    if "row_groups" not in files.column_names:
        return pa.array(np.zeros(files.num_rows, bool))
    return pc.fill_null(pc.equal(files["row_groups"].combine_chunks(), 1), False)


def column_of(listed: pa.Table, field_id: int) -> pa.Table:
    """Return one column of files as `FILE_SCHEMA` has them."""
    return _columns(listed, {field_id}).get(field_id, nothing_known(listed.num_rows))


def _columns(listed: pa.Table, wanted: Collection[int] | None = None) -> dict[int, pa.Table]:
    known = [name for name in _MAPS if name in listed.column_names]
    spread = {name: _spread(listed[name], wanted) for name in known}
    ids = sorted({number for by_id in spread.values() for number in by_id})
    return {
        number: pa.table(
            [
                spread.get(name, {}).get(number, pa.nulls(listed.num_rows, field.type))
                for name, field in zip(_MAPS, COLUMN_SCHEMA, strict=True)
            ],
            schema=COLUMN_SCHEMA,
        )
        for number in ids
    }


def _spread(column: pa.ChunkedArray, wanted: Collection[int] | None) -> dict[int, pa.Array]:
    """Convert a column of maps to an array for each key: its values, null where a map lacks it."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if not len(array) or array.null_count == len(array):
        return {}
    offsets = np.asarray(array.offsets)
    lengths = np.diff(offsets)
    lengths[np.asarray(array.is_null())] = 0
    rows = np.repeat(np.arange(len(array)), lengths)
    entries = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else lengths
    places = np.arange(len(rows)) - np.repeat(entries, lengths) + np.repeat(offsets[:-1], lengths)
    keys = np.asarray(array.keys)[places]
    order = np.argsort(keys, kind="stable")
    ids, starts = np.unique(keys[order], return_index=True)
    arrays: dict[int, pa.Array] = {}
    if not len(ids):
        return arrays
    for number, chosen in zip(ids.tolist(), np.split(order, starts[1:]), strict=True):
        if wanted is None or number in wanted:
            at = np.zeros(len(array), np.int64)
            missing = np.ones(len(array), bool)
            at[rows[chosen]] = places[chosen]
            missing[rows[chosen]] = False
            arrays[number] = array.items.take(pa.array(at, mask=missing))
    return arrays
