"""What partitions prove: a predicate on a column, projected through the transform of the partition.

Each leaf is converted to one on the partition's value that is true wherever the leaf may be. Transforms of
time that older writers rounded towards 1970 are treated with the same tolerance as in Iceberg.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.model import (
    ALWAYS,
    Compare,
    Field,
    In,
    IsNaN,
    IsNull,
    Leaf,
    Like,
    Op,
    Predicate,
    Value,
    all_of,
    any_of,
)
from rookery.model.text import proven_text
from rookery.model.type_names import base_type, scale_of
from rookery.prune.bounds import Bounds, might_match
from rookery.tables.partitioning import PartitionField, Transform, TransformKind
from rookery.values.canonical import MOST_DIGITS, SUPPORTED, decimal_of, form_of, unscaled_of
from rookery.values.evaluate import evaluate

_LOOSE = {Op.LT: Op.LE, Op.GT: Op.GE}
_LEAST = {"int": 2**31, "long": 2**63}  # with a minus


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A partition field as a column of its own: the position of its value, and its source."""

    place: int
    source_id: int
    transform: Transform
    source_type: str
    field: Field  # of the value


def partition_columns(spec: Sequence[PartitionField], types: Mapping[int, str]) -> list[PartitionColumn]:
    """Return the fields of a spec that are usable for pruning; *types* are those of the source columns."""
    columns = []
    for place, part in enumerate(spec):
        kind = types.get(part.source_id)
        transform = part.transform
        if kind is None or transform.kind is TransformKind.OTHER:
            continue  # dropped columns, transforms that cannot be used
        if base_type(kind) not in SUPPORTED:
            continue  # nested columns, types of the future
        result = transform.result_type(kind)
        if base_type(result) in SUPPORTED:
            value = Field(part.id, part.name, result)
            columns.append(
                PartitionColumn(
                    place=place, source_id=part.source_id, transform=transform, source_type=kind, field=value
                )
            )
    return columns


def might_match_partitions(
    predicate: Predicate, columns: Sequence[PartitionColumn], partitions: Sequence[str]
) -> NDArray[np.bool_]:
    """Return which partitions of one spec, as `FILE_SCHEMA` has them in JSON, may have matching rows."""
    decoded = [json.loads(text) for text in partitions]
    bounds: dict[int, Bounds] = {}

    def of(column: PartitionColumn) -> Bounds:
        if column.place not in bounds:
            values = [values[column.place] for values in decoded]
            bounds[column.place] = _bounds(column, in_form(column.field.type, values))
        return bounds[column.place]

    return test_partitions(predicate, columns, of, len(partitions))


def _bounds(column: PartitionColumn, values: pa.Array) -> Bounds:
    """The bounds of the rows of each partition; with identity, Iceberg's rows have its value."""
    kind = column.field.type
    bounds = Bounds.of_values(kind, values)
    if kind != "string" or column.transform.kind is TransformKind.IDENTITY:
        return bounds
    lower, upper = proven_text(values, values, pa.array(np.ones(len(values), bool)))
    return replace(bounds, lower=lower, upper=upper)


def test_partitions(
    predicate: Predicate,
    columns: Sequence[PartitionColumn],
    bounds: Callable[[PartitionColumn], Bounds],
    count: int,
) -> NDArray[np.bool_]:
    """Return where the predicate may be true, given the bounds of the partition fields."""

    def test(leaf: Leaf) -> NDArray[np.bool_]:
        may_match = np.ones(count, bool)
        for column in columns:
            if column.source_id == leaf.field.id:
                reduced = projected(leaf, column)
                if reduced is not ALWAYS:
                    known = bounds(column)
                    may_match &= evaluate(reduced, lambda part, known=known: might_match(part, known), count)  # type: ignore[misc]
        return may_match

    return evaluate(predicate, test, count)


def in_form(kind: str, values: Sequence[Any]) -> pa.Array:
    """Bring partition values, as JSON has them, into their type's form."""
    if base_type(kind) in ("binary", "fixed", "uuid"):
        values = [None if value is None else bytes.fromhex(value) for value in values]
    elif base_type(kind) == "string":
        values = [None if value is None else value.encode("utf-8", "surrogatepass") for value in values]
    elif base_type(kind) == "decimal":
        scale = scale_of(kind)
        values = [None if value is None else decimal_of(int(value), scale) for value in values]
    elif base_type(kind) == "boolean":
        values = [None if value is None else int(value) for value in values]
    return pa.array(values, form_of(kind))


def projected(leaf: Leaf, column: PartitionColumn) -> Predicate:
    """Return a predicate on the partition's value that is true if the leaf may be true of a row."""
    if column.transform.kind is TransformKind.IDENTITY:
        return replace(leaf, field=column.field) if leaf.field.type == column.field.type else ALWAYS
    if isinstance(leaf, IsNull):
        return IsNull(column.field, leaf.negated)
    if isinstance(leaf, IsNaN):
        return ALWAYS
    if isinstance(leaf, Like):
        return _prefix(leaf, column)
    if isinstance(leaf, In):
        if leaf.negated:
            return IsNull(column.field, negated=True)
        return any_of(*(_equal(value, column) for value in leaf.values))
    if leaf.op is Op.EQ:
        return _equal(leaf.value, column)
    if leaf.op is Op.NE or column.transform.kind is TransformKind.BUCKET:
        return IsNull(column.field, negated=True)
    return _ordered(leaf, column)


def _equal(value: Value, column: PartitionColumn) -> Predicate:
    result = transformed(value, column)
    if _wraps(value, result, column):
        return IsNull(column.field, negated=True)
    if column.transform.kind is TransformKind.TIME and int(result) < 0:
        return In(column.field, (result, int(result) + 1))
    return Compare(column.field, Op.EQ, result)


def _ordered(leaf: Compare, column: PartitionColumn) -> Predicate:
    """Transforms that keep the order keep comparisons, loosely."""
    result = transformed(leaf.value, column)
    op = _LOOSE.get(leaf.op, leaf.op)
    if _wraps(leaf.value, result, column):
        return IsNull(column.field, negated=True)
    if column.transform.kind is TransformKind.TIME and op is Op.LE and int(result) < 0:
        result = int(result) + 1
    if column.transform.kind is TransformKind.TRUNCATE and op is Op.LE:
        return any_of(Compare(column.field, op, result), *_wrapped(column, column.transform.width))
    return Compare(column.field, op, result)


def _wraps(value: Value, result: Value, column: PartitionColumn) -> bool:
    """Whether truncation leaves the type: Java's overflows, for decimals it fails.

    Numbers that were int when they were written wrap as int.
    """
    kind = base_type(column.field.type)
    if column.transform.kind is not TransformKind.TRUNCATE or kind not in ("int", "long", "decimal"):
        return False
    if kind == "decimal":
        return bool(abs(int(result)) >= 10**MOST_DIGITS)
    return any(int(result) < -least <= int(value) for least in _LEAST.values())


def _wrapped(column: PartitionColumn, width: int) -> list[Predicate]:
    """Where the partitions of the least numbers are, among those of the greatest."""
    kinds = {"int": ("int",), "long": ("int", "long")}.get(column.field.type, ())
    return [
        all_of(Compare(column.field, Op.GE, _LEAST[kind] - width), Compare(column.field, Op.LT, _LEAST[kind]))
        if kind != column.field.type
        else Compare(column.field, Op.GE, _LEAST[kind] - width)
        for kind in kinds
    ]


def _prefix(leaf: Like, column: PartitionColumn) -> Predicate:
    if leaf.negated or column.transform.kind is not TransformKind.TRUNCATE or not leaf.prefix:
        return IsNull(column.field, negated=True)
    width = column.transform.width
    if len(leaf.prefix) < width:
        return Like(column.field, leaf.prefix)
    return Compare(column.field, Op.EQ, leaf.prefix[:width])


def transformed(value: Value, column: PartitionColumn) -> Value:
    """Apply a transform to a value in its column's form; the result is in its own type's form."""
    kind = column.source_type
    given: Any = value
    if base_type(kind) == "decimal":
        given = decimal_of(int(value), scale_of(kind))
    result = column.transform.apply(given, kind)
    if isinstance(result, Decimal):
        return unscaled_of(result, scale_of(kind))
    assert result is not None  # only null becomes null
    value_seen: Value = result
    return value_seen
