"""What `stats` says of each column, against all of its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

import rookery
from rookery.api.statistics import ColumnStats
from rookery.api.values import plain
from rookery.model.type_names import base_type
from tests.differential.history import History
from tests.differential.tally import Tally
from tests.differential.truth import Copy
from tests.differential.world import Find

_ORDERED = ("int", "long", "date", "timestamp", "timestamptz", "string", "uuid", "fixed")
_ORDERED += ("time", "timestamp_ns", "timestamptz_ns")


def check(history: History, copy: Copy, tally: Tally) -> None:
    """Bounds hold all values; where no row was ever removed, nulls and distinct values are counted."""
    report = rookery.table(history.name, history.world.lake).stats()
    if not history.removed and report.rows != copy.data.num_rows:
        raise Find(f"stats: {report.rows} rows, and Spark has {copy.data.num_rows}")
    for column in report.columns:
        values = _values(copy.data, column.name)
        if values is not None:
            tally.statistics += 1
            compare(column, _forms(column, values), removed=history.removed)


def _values(data: pa.Table, dotted: str) -> pa.Array | None:
    """The values of a leaf; names with dots in them, and what is in lists, are left out."""
    first, *more = dotted.split(".")
    if data.column_names.count(first) != 1:
        return None
    found = data.column(first).combine_chunks()
    for name in more:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(name) < 0:
            return None
        found = pc.struct_field(found, name)
    return None if pa.types.is_nested(found.type) else found


def _forms(column: ColumnStats, values: pa.Array) -> list[Any]:
    """Values as `compare` takes them, from those that Spark has."""
    if base_type(column.type) not in _ORDERED:
        return [True if there else None for there in values.is_valid().to_pylist()]
    if column.type == "uuid":
        return [None if text is None else UUID(text).bytes for text in values.to_pylist()]
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_string(values.type):
        values = values.cast(pa.binary())
    return list(values.to_pylist())


def compare(column: ColumnStats, values: Sequence[Any], *, removed: bool) -> None:
    """Compare with all values of a column: numbers, also for times, and bytes for all else."""
    told = f"stats: {column}"
    found = {value for value in values if value is not None}
    nulls = sum(value is None for value in values)
    if column.nulls is not None:
        if removed and column.nulls < nulls:
            raise Find(f"{told}: there are {nulls} nulls, and rows were only removed")
        if not removed and column.nulls != nulls:
            raise Find(f"{told}: there are {nulls} nulls")
    if base_type(column.type) not in _ORDERED:
        return
    # Other bytes are shown in a way that does not order as they do.
    if found and (column.type != "string" or all(map(_is_utf8, found))):
        least, most = _shown(column.type, min(found)), _shown(column.type, max(found))
        if column.min is not None and _after(column.min, least):
            raise Find(f"{told}: there is {least!r}, which is less")
        if column.max is not None and _after(most, column.max):
            raise Find(f"{told}: there is {most!r}, which is more")
    if column.ndv is not None and column.coverage == 1 and not removed:
        true = len(found - {b""})  # DataSketches has no empty texts
        low, high = column.ndv_low or 0, column.ndv_high or 0
        if not low <= true + (b"" in found) or not true <= high:
            raise Find(f"{told}: there are {true} distinct values")


def _shown(kind: str, value: Any) -> Any:
    """A value as `stats` shows it."""
    if kind == "string":
        return value.decode()
    return str(UUID(bytes=value)) if kind == "uuid" else plain(kind, value)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _after(one: Any, two: Any) -> bool:
    return bool(one.encode() > two.encode() if isinstance(one, str) else one > two)
