"""Partition fields and sort orders as users write them: `day(ts)`, `bucket(16, id)`, `ts desc nulls last`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import NestedField

from rookery.model import UsageError

_FIRST_ID = 1000  # of partition fields, by the specification
_CALL = re.compile(r"(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^(),]+?)\s*(?:,\s*(\d+)\s*)?\)")
_COMMA = re.compile(r",(?![^(]*\))")  # outside of brackets
_SORTED = re.compile(r"(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.I)
_TIMES: dict[str, Callable[[], Transform[Any, Any]]] = {
    "year": YearTransform,
    "month": MonthTransform,
    "day": DayTransform,
    "hour": HourTransform,
}
_WIDTHS: dict[str, tuple[Callable[[int], Transform[Any, Any]], str]] = {
    "bucket": (BucketTransform, "bucket"),
    "truncate": (TruncateTransform, "trunc"),
}
_HINT = "use a column, year(c), month(c), day(c), hour(c), bucket(16, c) or truncate(4, c)"


def _parts(texts: Sequence[str]) -> list[str]:
    """Return the parts of texts that may list several with commas.

    >>> _parts(["bucket(16, id), day(ts)", "city"])
    ['bucket(16, id)', 'day(ts)', 'city']
    """
    return [part.strip() for text in texts for part in _COMMA.split(text) if part.strip()]


def partition_spec(texts: Sequence[str], schema: Schema) -> PartitionSpec:
    """Return the partition spec that texts describe, such as `day(ts)`."""
    fields: list[PartitionField] = []
    for number, text in enumerate(_parts(texts)):
        transform, column, name = _transform(text, schema)
        if any(field.source_id == column.field_id for field in fields):
            raise UsageError(f"'{text}': a column can partition a table only once", hint=_HINT)
        if not column.field_type.is_primitive or not transform.can_transform(column.field_type):
            raise UsageError(f"'{text}': {column.name} is {column.field_type}", hint=_HINT)
        fields.append(PartitionField(column.field_id, _FIRST_ID + number, transform, name))
    return PartitionSpec(*fields)


def _transform(text: str, schema: Schema) -> tuple[Transform[Any, Any], NestedField, str]:
    call = _CALL.fullmatch(text)
    if call is None:
        column = find_column(text, schema)
        return IdentityTransform(), column, text
    function, before, name, after = call.groups()
    function, width = function.lower(), before or after
    column = find_column(name, schema)
    time = function.removesuffix("s")
    if time in _TIMES and width is None:
        return _TIMES[time](), column, f"{name}_{time}"
    if function in _WIDTHS and width is not None and int(width) > 0:
        make, ending = _WIDTHS[function]
        return make(int(width)), column, f"{name}_{ending}"
    if function == "identity" and width is None:
        return IdentityTransform(), column, name
    raise UsageError(f"'{text}' does not partition a table", hint=_HINT)


def sort_order(texts: Sequence[str], schema: Schema) -> SortOrder:
    """Return the sort order that texts describe, such as `ts desc nulls first`."""
    return SortOrder(*(_sort_field(text, schema) for text in _parts(texts)))


def _sort_field(text: str, schema: Schema) -> SortField:
    match = _SORTED.fullmatch(text)
    assert match is not None
    name, direction, nulls = match.groups()
    column = find_column(name, schema)
    if not column.field_type.is_primitive:
        raise UsageError(
            f"--sort {text}: {name} is {column.field_type}", hint="sort by columns of numbers, times or texts"
        )
    descending = (direction or "").lower() == "desc"
    first = nulls.lower() == "first" if nulls else not descending
    return SortField(
        source_id=column.field_id,
        transform=IdentityTransform(),
        direction=SortDirection.DESC if descending else SortDirection.ASC,
        null_order=NullOrder.NULLS_FIRST if first else NullOrder.NULLS_LAST,
    )


def find_column(name: str, schema: Schema) -> NestedField:
    """Return a column by its name; a field of a struct as `a.b`."""
    try:
        return schema.find_field(name)
    except ValueError as error:
        names = ", ".join(schema.column_names)
        raise UsageError(f"there is no column '{name}'", hint=f"columns are {names}") from error
