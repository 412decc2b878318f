"""The partition of each row: Iceberg's transforms on Arrow columns.

PyIceberg computes them with a library in Rust that is not among its requirements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.partitioning import PartitionField, PartitionFieldValue, PartitionKey, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    DateType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from rookery.model import UsageError

_UNITS: tuple[tuple[type[Transform[Any, Any]], str], ...] = (
    (YearTransform, "Y"),
    (MonthTransform, "M"),
    (DayTransform, "D"),
    (HourTransform, "h"),
)
_HASHED_AS_LONG = (IntegerType, LongType, DateType, TimeType, TimestampType, TimestamptzType)
_MASK = np.uint64(0xFFFFFFFF)


def split(
    rows: pa.Table, spec: PartitionSpec, schema: Schema
) -> Iterator[tuple[PartitionKey | None, pa.Table]]:
    """Yield the rows of each partition, in their order; without partitions, all."""
    if spec.is_unpartitioned():
        yield None, rows
        return
    columns = [_values(rows, field, schema) for field in spec.fields]
    codes = np.zeros(rows.num_rows, np.int64)
    for column in columns:
        indices = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = np.unique(codes * (len(column.dictionary) + 1) + indices, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order], append=-1)) + 1
    ordered = rows.take(pa.array(order))
    start = 0
    for end in ends.tolist():
        first = int(order[start])
        values = [column.dictionary[column.indices[first].as_py()].as_py() for column in columns]
        yield _key(values, spec, schema), ordered.slice(start, end - start)
        start = end


def _key(values: list[Any], spec: PartitionSpec, schema: Schema) -> PartitionKey:
    fields = [
        PartitionFieldValue(field=field, value=value)
        for field, value in zip(spec.fields, values, strict=True)
    ]
    return PartitionKey(field_values=fields, partition_spec=spec, schema=schema)


def _values(rows: pa.Table, field: PartitionField, schema: Schema) -> pa.DictionaryArray:
    """The partition of each row by one field, with null as a value."""
    name = schema.find_column_name(field.source_id)
    if name is None:
        raise UsageError(f"the table is partitioned by a column that it no longer has: {field.name}")
    column = column_at(rows, name)
    kind = schema.find_field(field.source_id).field_type
    return transformed(column, field.transform, kind).dictionary_encode(null_encoding="encode")


def column_at(rows: pa.Table, name: str) -> pa.Array:
    """Return a column by its name, or a field of a struct by its path."""
    if name in rows.column_names:
        column = rows[name]
    else:
        first, *path = name.split(".")
        column = pc.struct_field(rows[first], path)
    combined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return combined.storage if isinstance(combined, pa.ExtensionArray) else combined


def transformed(column: pa.Array, transform: Transform[Any, Any], kind: IcebergType) -> pa.Array:
    """Return what a transform makes of a column's values."""
    if isinstance(transform, IdentityTransform):
        return column
    if isinstance(transform, VoidTransform):
        return pa.nulls(len(column), pa.int32())
    unit = next((unit for known, unit in _UNITS if isinstance(transform, known)), None)
    if unit is not None:
        return _in_units(column, unit)
    if isinstance(transform, BucketTransform) and isinstance(kind, _HASHED_AS_LONG):
        return _buckets_of_longs(column, transform.num_buckets)
    if isinstance(transform, TruncateTransform) and isinstance(kind, (IntegerType, LongType)):
        return _truncated(column, transform.width)
    return _by_distinct_value(column, transform, kind)


def _in_units(column: pa.Array, unit: str) -> pa.Array:
    """The number of years, months, days or hours since 1970, rounded down."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_date(column.type):
        whole = column.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False).astype("datetime64[D]")
    else:
        stated = np.datetime_data(np.dtype(f"datetime64[{column.type.unit}]"))[0]
        whole = (
            column.cast(pa.int64())
            .fill_null(0)
            .to_numpy(zero_copy_only=False)
            .astype(f"datetime64[{stated}]")
        )
    return pa.array(whole.astype(f"datetime64[{unit}]").astype(np.int64).astype(np.int32), mask=~valid)


def _buckets_of_longs(column: pa.Array, buckets: int) -> pa.Array:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_date(column.type) or pa.types.is_int32(column.type):
        column = column.cast(pa.int32())
    values = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    hashes = _murmur_of_longs(values) & np.uint64(0x7FFFFFFF)
    return pa.array((hashes % np.uint64(buckets)).astype(np.int32), mask=~valid)


def _truncated(column: pa.Array, width: int) -> pa.Array:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(values - np.mod(values, width), column.type, mask=~valid)  # overflows as in Java


def _murmur_of_longs(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """MurmurHash3 x86 32 of eight bytes each, with seed 0, by the specification of Iceberg."""
    words = values.view(np.uint64)
    state = np.zeros(len(words), np.uint64)
    for word in (words & _MASK, words >> np.uint64(32)):
        word = word * np.uint64(0xCC9E2D51) & _MASK
        word = _rotated(word, 15) * np.uint64(0x1B873593) & _MASK
        state = _rotated(state ^ word, 13) * np.uint64(5) + np.uint64(0xE6546B64) & _MASK
    state ^= np.uint64(8)
    state ^= state >> np.uint64(16)
    state = state * np.uint64(0x85EBCA6B) & _MASK
    state ^= state >> np.uint64(13)
    state = state * np.uint64(0xC2B2AE35) & _MASK
    return state ^ state >> np.uint64(16)


def _rotated(words: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (words << np.uint64(bits) | words >> np.uint64(32 - bits)) & _MASK


def _by_distinct_value(column: pa.Array, transform: Transform[Any, Any], kind: IcebergType) -> pa.Array:
    apply = transform.transform(kind)
    encoded = column.dictionary_encode()
    results = [apply(value) for value in encoded.dictionary.to_pylist()]
    made = (
        pa.array(results, pa.int32())
        if isinstance(transform, BucketTransform)
        else pa.array(results, column.type)
    )
    return made.take(encoded.indices)
