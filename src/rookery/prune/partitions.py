"""What partitions prove: a predicate on a column, seen through the transform that made the partition.

Each leaf is turned into one on the partition's value that is true wherever the leaf may be. Transforms of
time that older writers rounded towards 1970 are met with the slack that Iceberg gives them.
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
from rookery.model.type_names import base_type
from rookery.prune.bounds import Bounds, might_match
from rookery.tables.partitioning import PartitionField, Transform, TransformKind
from rookery.values.canonical import MOST_DIGITS, SUPPORTED, decimal_of, form_of, scale_of, unscaled_of
from rookery.values.evaluate import evaluate

_LOOSE = {Op.LT: Op.LE, Op.GT: Op.GE}
_LEAST = {"int": 2**31, "long": 2**63}  # with a minus


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A partition field as a column of its own: where its value stands, and what it is made from."""

    place: int
    source_id: int
    transform: Transform
    source_type: str
    field: Field  # of the value


def partition_columns(spec: Sequence[PartitionField], types: Mapping[int, str]) -> list[PartitionColumn]:
    """Return the fields of a spec that can prove something; *types* are those of the source columns."""
    found = []
    for place, part in enumerate(spec):
        kind = types.get(part.source_id)
        transform = part.transform
        if kind is None or transform.kind is TransformKind.OTHER:
            continue  # columns that are gone, transforms of which nothing follows
        if base_type(kind) not in SUPPORTED:
            continue  # nested columns, types of the future
        result = transform.result_type(kind)
        if base_type(result) in SUPPORTED:
            value = Field(part.id, part.name, result)
            found.append(PartitionColumn(place, part.source_id, transform, kind, value))
    return found


def might_match_partitions(
    predicate: Predicate, columns: Sequence[PartitionColumn], partitions: Sequence[str]
) -> NDArray[np.bool_]:
    """Return which partitions of one spec, as manifests have them in JSON, may hold rows that match."""
    decoded = [json.loads(text) for text in partitions]
    bounds: dict[int, Bounds] = {}

    def of(column: PartitionColumn) -> Bounds:
        if column.place not in bounds:
            values = [values[column.place] for values in decoded]
            bounds[column.place] = _bounds(column, in_form(column.field.type, values))
        return bounds[column.place]

    return test_partitions(predicate, columns, of, len(partitions))


def _bounds(column: PartitionColumn, values: pa.Array) -> Bounds:
    """What is known of the rows of each partition; those of an identity have its value in Iceberg."""
    kind = column.field.type
    found = Bounds.of_values(kind, values)
    if kind != "string" or column.transform.kind is TransformKind.IDENTITY:
        return found
    lower, upper = proven_text(values, values, pa.array(np.ones(len(values), bool)))
    return replace(found, lower=lower, upper=upper)


def test_partitions(
    predicate: Predicate,
    columns: Sequence[PartitionColumn],
    bounds: Callable[[PartitionColumn], Bounds],
    count: int,
) -> NDArray[np.bool_]:
    """Return where the predicate may be true, given what the partition fields' values lie between."""

    def test(leaf: Leaf) -> NDArray[np.bool_]:
        found = np.ones(count, bool)
        for column in columns:
            if column.source_id == leaf.field.id:
                seen = projected(leaf, column)
                if seen is not ALWAYS:
                    known = bounds(column)
                    found &= evaluate(seen, lambda part, known=known: might_match(part, known), count)  # type: ignore[misc]
        return found

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
    """Return what is true of a partition's value if the leaf may be true of a row."""
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
    seen = transformed(value, column)
    if _wraps(value, seen, column):
        return IsNull(column.field, negated=True)
    if column.transform.kind is TransformKind.TIME and int(seen) < 0:
        return In(column.field, (seen, int(seen) + 1))
    return Compare(column.field, Op.EQ, seen)


def _ordered(leaf: Compare, column: PartitionColumn) -> Predicate:
    """Transforms that keep the order keep comparisons, loosely."""
    seen = transformed(leaf.value, column)
    op = _LOOSE.get(leaf.op, leaf.op)
    if _wraps(leaf.value, seen, column):
        return IsNull(column.field, negated=True)
    if column.transform.kind is TransformKind.TIME and op is Op.LE and int(seen) < 0:
        seen = int(seen) + 1
    if column.transform.kind is TransformKind.TRUNCATE and op is Op.LE:
        return any_of(Compare(column.field, op, seen), *_wrapped(column, column.transform.width))
    return Compare(column.field, op, seen)


def _wraps(value: Value, seen: Value, column: PartitionColumn) -> bool:
    """Whether truncation leaves the type: Java's goes on from the other end, for decimals it fails.

    Numbers that were int when they were written wrap as int.
    """
    kind = base_type(column.field.type)
    if column.transform.kind is not TransformKind.TRUNCATE or kind not in ("int", "long", "decimal"):
        return False
    if kind == "decimal":
        return bool(abs(int(seen)) >= 10**MOST_DIGITS)
    return any(int(seen) < -least <= int(value) for least in _LEAST.values())


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
    """Apply a transform to a value in its column's form; what comes is in the form of the result."""
    kind = column.source_type
    given: Any = value
    if base_type(kind) == "decimal":
        given = decimal_of(int(value), scale_of(kind))
    seen = column.transform.apply(given, kind)
    if isinstance(seen, Decimal):
        return unscaled_of(seen, scale_of(kind))
    assert seen is not None  # only null becomes null
    value_seen: Value = seen
    return value_seen
