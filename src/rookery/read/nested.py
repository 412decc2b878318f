"""Structs, lists and maps of a file, brought into the table's schema by the file's column mapping."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rookery.model.schema import Column, ListOf, MapOf, Struct, Type
from rookery.read.types import arrow_type, cast, constant
from rookery.tables.column_mapping import ColumnMapping


def project(array: pa.Array, stored: pa.DataType, kind: Type, mapping: ColumnMapping) -> pa.Array:
    """Return an array, which a file has in the type *stored*, in the table's; nulls stay where they are."""
    target = arrow_type(kind)
    assert target is not None
    if isinstance(kind, Struct):
        children = [_child(array, stored, column, mapping) for column in kind.columns]
        if not children:
            return constant(None, target, len(array))
        return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
    if isinstance(kind, ListOf):
        values = project(array.values, stored.value_type, kind.element.type, mapping)
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=array.is_null())
    if isinstance(kind, MapOf):
        keys = project(array.keys, stored.key_type, kind.key.type, mapping)
        items = project(array.items, stored.item_type, kind.value.type, mapping)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=target, mask=array.is_null())
    return cast(array, target)


def _child(array: pa.Array, stored: pa.DataType, column: Column, mapping: ColumnMapping) -> pa.Array:
    for number, child in enumerate(stored):
        if mapping.is_same(child, column):
            return project(array.field(number), child.type, column.type, mapping)
    target: Any = arrow_type(column.type)
    return constant(column.initial_default, target, len(array))
