"""Structs, lists and maps of a file, brought into the table's schema: children are found by their ids."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from rookery.read.types import arrow_type, cast, constant

_FIELD_ID = b"PARQUET:field_id"


def project(array: pa.Array, stored: pa.DataType, kind: IcebergType) -> pa.Array:
    """Return an array, whose type *stored* has field ids, in the table's type; nulls stay where they are."""
    target = arrow_type(kind)
    assert target is not None
    if isinstance(kind, StructType):
        children = [_child(array, stored, field) for field in kind.fields]
        if not children:
            return constant(None, target, len(array))
        return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
    if isinstance(kind, ListType):
        values = project(array.values, stored.value_type, kind.element_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=array.is_null())
    if isinstance(kind, MapType):
        keys = project(array.keys, stored.key_type, kind.key_type)
        items = project(array.items, stored.item_type, kind.value_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=target, mask=array.is_null())
    return cast(array, target)


def _child(array: pa.Array, stored: pa.DataType, field: NestedField) -> pa.Array:
    for number, found in enumerate(stored):
        if _id(found) == field.field_id:
            return project(array.field(number), found.type, field.field_type)
    target: Any = arrow_type(field.field_type)
    return constant(field.initial_default, target, len(array))


def _id(field: pa.Field) -> int | None:
    said = (field.metadata or {}).get(_FIELD_ID)
    return None if said is None else int(said)
