"""The types of columns in Arrow, as reads return them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rookery.model.schema import Column, ListOf, MapOf, Struct, Type
from rookery.model.type_names import fixed_length, precision_and_scale

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.uuid(),
}


def arrow_type(kind: Type) -> pa.DataType | None:
    """Return the Arrow type of a column's type, or None for one that cannot be read here."""
    if isinstance(kind, Struct):
        children = [arrow_field(child) for child in kind.columns]
        return None if any(child is None for child in children) else pa.struct(children)
    if isinstance(kind, ListOf):
        element = arrow_field(kind.element)
        return None if element is None else pa.list_(element)
    if isinstance(kind, MapOf):
        key, value = arrow_type(kind.key.type), arrow_field(kind.value)
        return None if key is None or value is None else pa.map_(key, value)
    if (digits := precision_and_scale(kind.name)) is not None:
        return pa.decimal128(*digits)
    if (length := fixed_length(kind.name)) is not None:
        return pa.binary(length)
    return _PRIMITIVES.get(kind.name)


def arrow_field(column: Column) -> pa.Field | None:
    """Return a column in Arrow; every one may be null, due to defaults and old files."""
    kind = arrow_type(column.type)
    return None if kind is None else pa.field(column.name, kind)


def cast(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Bring an array into a type, as columns are widened: int to long, float to double, decimals wider."""
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if whole.type == kind:
        return whole
    if isinstance(whole, pa.ExtensionArray):
        whole = whole.storage
    if pa.types.is_null(whole.type):
        return pa.nulls(len(whole), kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, whole.cast(kind.storage_type))
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(whole.type):
        # The zone that a file states is ignored: the table's type counts.
        return whole.cast(pa.timestamp(kind.unit, whole.type.tz), safe=False).cast(pa.int64()).cast(kind)
    return whole.cast(kind)


def constant(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a column of one value."""
    if isinstance(value, pa.Scalar):  # in the form of its type, as `values.canonical` has it
        return _from_form(value, kind, rows)
    if value is None:
        return pa.nulls(rows, kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, constant(value, kind.storage_type, rows))
    return pa.repeat(pa.scalar(value, kind), rows)


def _from_form(value: pa.Scalar, kind: pa.DataType, rows: int) -> pa.Array:
    if not value.is_valid:
        return pa.nulls(rows, kind)
    storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if pa.types.is_date32(storage):
        value = value.cast(pa.int32())
    scalar = value.cast(storage)
    repeated = pa.repeat(scalar, rows)
    return repeated if storage is kind else pa.ExtensionArray.from_storage(kind, repeated)
