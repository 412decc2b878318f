"""The types that a table can store, for those that files have."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rookery.model import UsageError

_MOST_DIGITS = 38  # of a decimal
_UNSIGNED = {pa.uint8(): pa.int32(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
_SMALL = (pa.int8(), pa.int16())


def stored_type(kind: pa.DataType, column: str) -> pa.DataType:
    """Return the type that stores all values of a type; a type without values stays null.

    >>> stored_type(pa.uint32(), "n"), stored_type(pa.timestamp("ms"), "t")
    (DataType(int64), TimestampType(timestamp[us]))
    """
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return stored_type(kind.value_type, column)
    if pa.types.is_nested(kind):
        return _nested(kind, column)
    if isinstance(kind, pa.BaseExtensionType):
        return kind if kind == pa.uuid() else stored_type(kind.storage_type, column)
    stored = _primitive(kind)
    if stored is None:
        raise UsageError(f"column {column}: a table cannot store {kind}", hint="convert or drop the column")
    return stored


def _nested(kind: pa.DataType, column: str) -> pa.DataType:
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct([_part(part, f"{column}.{part.name}") for part in kind])
    if pa.types.is_map(kind):
        key = pa.field(kind.key_field.name, stored_type(kind.key_type, f"{column}.key"), nullable=False)
        return pa.map_(key, _part(kind.item_field, f"{column}.value"))
    if _is_list(kind):
        return pa.large_list(_part(kind.value_field, f"{column}.element").with_name("element"))
    name = "a struct without fields" if pa.types.is_struct(kind) else str(kind)
    raise UsageError(f"column {column}: a table cannot store {name}", hint="convert or drop the column")


def _is_list(kind: pa.DataType) -> bool:
    checks = (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_fixed_size_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
    )
    return any(check(kind) for check in checks)


def _part(field: pa.Field, column: str) -> pa.Field:
    return pa.field(field.name, stored_type(field.type, column))


def _primitive(kind: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if kind in _UNSIGNED:
        return _UNSIGNED[kind]
    if kind == pa.uint64():
        return pa.decimal128(20, 0)
    if kind in _SMALL:
        return pa.int32()
    if types.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale) if _is_stored_decimal(kind) else None
    if types.is_float16(kind):
        return pa.float32()
    if types.is_date(kind):
        return pa.date32()
    if types.is_time(kind):
        return pa.time64("us")
    kept = (types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_fixed_size_binary)
    return kind if any(check(kind) for check in kept) else None


def _is_stored_decimal(kind: pa.DataType) -> bool:
    return bool(kind.precision <= _MOST_DIGITS and 0 <= kind.scale <= kind.precision)


def without_nulls(kind: pa.DataType) -> pa.DataType:
    """Return a type with text in place of types without values.

    >>> without_nulls(pa.large_list(pa.null()))
    LargeListType(large_list<item: large_string>)
    """
    if pa.types.is_null(kind):
        return pa.large_string()
    if pa.types.is_struct(kind):
        return pa.struct([part.with_type(without_nulls(part.type)) for part in kind])
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(without_nulls(kind.value_type)))
    if pa.types.is_map(kind):
        item = kind.item_field
        return pa.map_(kind.key_field, item.with_type(without_nulls(item.type)))
    return kind


def stored_schema(schema: pa.Schema, file: str) -> pa.Schema:
    """Return the columns of a file as a table stores them; all may be null."""
    names: set[str] = set()
    for name in schema.names:
        if not name:
            raise UsageError(f"{file}: a column has no name", hint="give every column a name")
        if name in names:
            raise UsageError(f"{file}: there are two columns '{name}'", hint="rename or drop one")
        names.add(name)
    return pa.schema([_stored_field(field, file) for field in schema])


def _stored_field(field: pa.Field, file: str) -> pa.Field:
    try:
        return pa.field(field.name, stored_type(field.type, field.name))
    except UsageError as error:
        raise UsageError(f"{file}: {error.message}", hint=error.hint) from error


def merged(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type that stores the values of both, or None.

    >>> merged(pa.int32(), pa.int64()), merged(pa.null(), pa.date32()), merged(pa.int64(), pa.large_string())
    (DataType(int64), DataType(date32[day]), None)
    """
    if first == second:
        return first
    try:
        schemas = [pa.schema([("c", kind)]) for kind in (first, second)]
        unified = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return stored_type(unified, "c") if _are_alike(first, second) else None


def _are_alike(first: pa.DataType, second: pa.DataType) -> bool:
    """Whether the values of two types keep their meaning in a common one: Arrow merges more types."""
    if {pa.types.is_decimal(kind) for kind in (first, second)} == {True, False}:
        return not any(map(pa.types.is_floating, (first, second)))  # which would round decimals
    kinds = (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_boolean, pa.types.is_temporal)
    if pa.types.is_null(first) or pa.types.is_null(second):
        return True
    return all(check(first) == check(second) for check in kinds)


def cast_column(column: pa.Array, kind: pa.DataType, name: str, file: str) -> pa.Array:
    """Return a column in a type; no value changes."""
    try:
        column.validate(full=True)  # texts may be no UTF-8, and decimals have too many digits
        if column.type == kind:
            return column
        if pa.types.is_run_end_encoded(column.type):
            column = pc.run_end_decode(column)
        stored = column.cast(kind)
        if _lacks_elements(stored):
            raise pa.ArrowInvalid("an element that is required has no value")
        return stored
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"{file}: column {name} cannot be stored as {kind}: {reason}",
            hint="convert the column in the file; nothing was loaded",
        ) from error


def _lacks_elements(values: pa.Array) -> bool:
    """Whether a required element of a list or map is null: a cast checks the parts of structs alone."""
    if isinstance(values, pa.StructArray):
        return any(map(_lacks_elements, values.flatten()))
    if isinstance(values, pa.MapArray):
        field, elements = values.type.item_field, values.items
    elif isinstance(values, pa.LargeListArray):
        field, elements = values.type.value_field, values.flatten()
    else:
        return False
    return bool(elements.null_count and not field.nullable) or _lacks_elements(elements)
