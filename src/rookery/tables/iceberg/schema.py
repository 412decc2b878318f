"""The leaf columns of an Iceberg schema."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from rookery.model import Field


def leaves(schema: Schema) -> tuple[Field, ...]:
    """Return the primitive columns, nested ones too, in the order of the schema."""
    return tuple(_fields(schema.fields, (), False))


def _fields(fields: tuple[NestedField, ...], parent: tuple[str, ...], repeated: bool) -> Iterator[Field]:
    for field in fields:
        yield from _leaf(field, (*parent, field.name), repeated)


def _leaf(field: NestedField, path: tuple[str, ...], repeated: bool) -> Iterator[Field]:
    kind: IcebergType = field.field_type
    if isinstance(kind, StructType):
        yield from _fields(kind.fields, path, repeated)
    elif isinstance(kind, ListType):
        yield from _leaf(kind.element_field, (*path, "element"), True)
    elif isinstance(kind, MapType):
        for part in (kind.key_field, kind.value_field):
            yield from _leaf(part, (*path, part.name), True)
    else:
        filled = field.initial_default is not None
        yield Field(field.field_id, ".".join(path), str(kind), field.required, repeated, filled, path)
