"""What `stats` says of each column, against all rows of the copy."""

from __future__ import annotations

from typing import Any

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

_ORDERED = ("int", "long", "date", "timestamp", "timestamptz", "string")


def check(history: History, copy: Copy, tally: Tally) -> None:
    """Bounds hold all values; where no row was ever removed, nulls and distinct values are counted."""
    report = rookery.table(history.name, history.world.lake).stats()
    if not history.removed and report.rows != copy.data.num_rows:
        raise Find(f"stats: {report.rows} rows, and Spark has {copy.data.num_rows}")
    for column in report.columns:
        values = _values(copy.data, column.name)
        if values is not None:
            tally.statistics += 1
            _check(column, values, removed=history.removed)


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


def _check(column: ColumnStats, values: pa.Array, *, removed: bool) -> None:
    told = f"stats: {column}"
    if column.nulls is not None:
        if removed and column.nulls < values.null_count:
            raise Find(f"{told}: Spark has {values.null_count} nulls, and rows were only removed")
        if not removed and column.nulls != values.null_count:
            raise Find(f"{told}: Spark has {values.null_count} nulls")
    base = base_type(column.type)
    if base in _ORDERED and values.null_count < len(values):
        ends = pc.min_max(_comparable(values)).as_py()
        least, most = plain(column.type, ends["min"]), plain(column.type, ends["max"])
        if column.min is not None and _after(column.min, least):
            raise Find(f"{told}: Spark has {least!r}, which is less")
        if column.max is not None and _after(most, column.max):
            raise Find(f"{told}: Spark has {most!r}, which is more")
    if column.ndv is not None and column.coverage == 1 and base in _ORDERED and not removed:
        distinct = set(
            values.drop_null().to_pylist() if base == "string" else _comparable(values).to_pylist()
        )
        true = len(distinct - {None, ""})  # DataSketches has no empty texts
        low, high = column.ndv_low or 0, column.ndv_high or 0
        if not low <= true + ("" in distinct) or not true <= high:
            raise Find(f"{told}: Spark has {true} distinct values")


def _comparable(values: pa.Array) -> pa.Array:
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _after(one: Any, two: Any) -> bool:
    return bool(one.encode() > two.encode() if isinstance(one, str) else one > two)
