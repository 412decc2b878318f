"""Iceberg's schemas in the types of the model."""

from __future__ import annotations

from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from rookery.model.schema import Column, ListOf, MapOf, Primitive, Schema, Struct, Type


def schema_of(schema: IcebergSchema) -> Schema:
    """Return a schema of PyIceberg's."""
    return Schema(tuple(map(_column, schema.fields)), schema.schema_id)


def _column(field: NestedField) -> Column:
    return Column(
        id=field.field_id,
        name=field.name,
        type=type_of(field.field_type),
        required=field.required,
        initial_default=field.initial_default,
        doc=field.doc,
    )


def type_of(kind: IcebergType) -> Type:
    """Return a type of PyIceberg's."""
    if isinstance(kind, StructType):
        return Struct(tuple(map(_column, kind.fields)))
    if isinstance(kind, ListType):
        return ListOf(_column(kind.element_field))
    if isinstance(kind, MapType):
        return MapOf(_column(kind.key_field), _column(kind.value_field))
    return Primitive(str(kind))
