"""The types of columns as Spark shows them, in its DDL and in Arrow."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pyarrow as pa

from rookery.model import UsageError, column_named, quote_part
from rookery.model.nested_arrays import with_leaves
from rookery.model.schema import Column, ListOf, MapOf, Schema, Struct, Type
from rookery.model.type_names import fixed_length, precision_and_scale

_SPARK = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "string": "string",
    "binary": "binary",
    "uuid": "string",
}


def spark_columns(schema: Schema, names: Sequence[str] | None) -> str:
    """Return the columns of a table, or some of them, as DDL."""
    chosen = schema.columns if names is None else [column_named(schema.columns, name) for name in names]
    return ", ".join(f"{quote_part(column.name)} {_type(column.type, column.name)}" for column in chosen)


def _type(kind: Type, column: str) -> str:
    if isinstance(kind, Struct):
        return f"struct<{', '.join(map(_part, kind.columns))}>"
    if isinstance(kind, ListOf):
        return f"array<{_type(kind.element.type, column)}>"
    if isinstance(kind, MapOf):
        return f"map<{_type(kind.key.type, column)}, {_type(kind.value.type, column)}>"
    if (digits := precision_and_scale(kind.name)) is not None:
        return f"decimal({digits[0]},{digits[1]})"
    if fixed_length(kind.name) is not None:
        return "binary"
    if kind.name not in _SPARK:
        raise UsageError(
            f"Spark has no type for '{column}', a {kind}", hint="name the other columns in the option columns"
        )
    return _SPARK[kind.name]


def _part(column: Column) -> str:
    return f"{quote_part(column.name)}: {_type(column.type, column.name)}"


def for_spark(rows: pa.Table) -> pa.Table:
    """Return rows as Spark accepts them: UUIDs as text, fixed binary as binary, nested ones too."""
    for place, column in enumerate(rows.schema):
        if not _is_known(column.type):
            array = with_leaves(rows.column(place).combine_chunks(), _leaf_for_spark)
            rows = rows.set_column(place, column.name, array)
    return rows


def _is_known(kind: pa.DataType) -> bool:
    """Whether Spark has a type for one of Arrow's."""
    if isinstance(kind, pa.UuidType) or pa.types.is_fixed_size_binary(kind):
        return False
    return all(_is_known(kind.field(place).type) for place in range(kind.num_fields))


def _leaf_for_spark(array: pa.Array) -> pa.Array:
    if isinstance(array.type, pa.UuidType):
        values = array.storage.to_pylist()
        texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in values]
        return pa.array(texts, pa.string())
    return array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array
