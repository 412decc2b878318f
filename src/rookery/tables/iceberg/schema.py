"""The leaf columns of an Iceberg schema."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from rookery.model import Field


def leaves(schema: Schema) -> tuple[Field, ...]:
    """Return the primitive columns, nested ones too, in the order of the schema."""
    return tuple(_fields(schema.fields, "", False))


def _fields(fields: tuple[NestedField, ...], prefix: str, repeated: bool) -> Iterator[Field]:
    for field in fields:
        yield from _leaf(field, prefix + field.name, field.field_type, repeated)


def _leaf(field: NestedField, name: str, kind: IcebergType, repeated: bool) -> Iterator[Field]:
    if isinstance(kind, StructType):
        yield from _fields(kind.fields, f"{name}.", repeated)
    elif isinstance(kind, ListType):
        element = kind.element_field
        yield from _leaf(element, f"{name}.element", element.field_type, True)
    elif isinstance(kind, MapType):
        for part in (kind.key_field, kind.value_field):
            yield from _leaf(part, f"{name}.{part.name}", part.field_type, True)
    else:
        yield Field(field.field_id, name, str(kind), field.required, repeated)
