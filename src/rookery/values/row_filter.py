"""Which rows a predicate is true of: exactly, with Spark's meaning of comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.model import Compare, In, IsNaN, IsNull, Leaf, Like, Op, Opaque, Predicate, UsageError, Value
from rookery.model.text import java_text
from rookery.values.canonical import form_of, from_rows, is_float, mask, scalar
from rookery.values.evaluate import evaluate

Columns = Callable[[int], pa.Array]
"""Returns the values of a column, by its field id, in the form of Parquet readers."""

COMPARE: Mapping[Op, Any] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


def true_rows(predicate: Predicate, columns: Columns, count: int) -> NDArray[np.bool_]:
    """Return of which rows the predicate is true."""

    def test(leaf: Leaf) -> NDArray[np.bool_]:
        return true_values(leaf, from_rows(leaf.field.type, columns(leaf.field.id)))

    def refuse(part: Opaque) -> bool:
        raise not_exact(part)

    return evaluate(predicate, test, count, refuse)


def not_exact(part: Opaque) -> UsageError:
    """Raise, as a part of a predicate cannot be decided here."""
    return UsageError(
        f"'{part.text}' cannot be decided on rows here: {part.reason}",
        hint="use table.scan(spark, …), where Spark decides it",
    )


def true_values(leaf: Leaf, values: pa.Array) -> NDArray[np.bool_]:
    """Return of which values, in their type's form, a leaf is true."""
    if isinstance(leaf, IsNull):
        return mask(values.is_valid() if leaf.negated else values.is_null())
    if isinstance(leaf, IsNaN):
        result = mask(pc.is_nan(values)) if is_float(leaf.field.type) else np.zeros(len(values), bool)
        return ~result if leaf.negated else result
    if isinstance(leaf, In):
        result = _among(leaf.field.type, values, leaf.values)
        return mask(values.is_valid()) & ~result if leaf.negated else result
    if isinstance(leaf, Like):
        result = _like(leaf, values)
        return mask(values.is_valid()) & ~result if leaf.negated else result
    return _compared(leaf, values)


def _compared(leaf: Compare, values: pa.Array) -> NDArray[np.bool_]:
    value = scalar(leaf.field.type, leaf.value)
    if not is_float(leaf.field.type):
        return mask(COMPARE[leaf.op](values, value))
    largest = mask(pc.is_nan(values))  # NaN equals NaN, and is greater than all else
    if math.isnan(leaf.value):  # type: ignore[arg-type]
        there = mask(values.is_valid())
        return {
            Op.EQ: largest,
            Op.GE: largest,
            Op.NE: there & ~largest,
            Op.LT: there & ~largest,
            Op.LE: there,
            Op.GT: np.zeros(len(values), bool),
        }[leaf.op]
    result = mask(COMPARE[leaf.op](values, value))
    return result | largest if leaf.op in (Op.GT, Op.GE) else result


def _among(type_name: str, values: pa.Array, wanted: tuple[Value, ...]) -> NDArray[np.bool_]:
    if not is_float(type_name):
        options = pa.array([scalar(type_name, value).as_py() for value in wanted], form_of(type_name))
        return mask(pc.is_in(values, value_set=options))
    numbers = [float(value) for value in wanted if not math.isnan(value)]  # type: ignore[arg-type]
    both = [*numbers, *(-number for number in numbers if number == 0)]
    result = mask(pc.is_in(values, value_set=pa.array(both, pa.float64())))
    return result | mask(pc.is_nan(values)) if len(numbers) < len(wanted) else result


def _like(leaf: Like, values: pa.Array) -> NDArray[np.bool_]:
    if leaf.regex is None:
        return mask(pc.starts_with(values, leaf.prefix.encode("utf-8", "surrogatepass")))
    regex = rf"(?s)\A(?:{leaf.regex})\z"
    if leaf.by_bytes:
        return mask(pc.match_substring_regex(values, regex.encode()))
    try:
        texts = values.cast(pa.large_string())
    except pa.ArrowInvalid:
        texts = _as_java_has(values)
    return mask(pc.match_substring_regex(texts, regex))


def _as_java_has(values: pa.Array) -> pa.Array:
    """Text that is not UTF-8 as Spark's LIKE reads it."""
    texts = [None if value is None else java_text(value) for value in values.to_pylist()]
    return pa.array(texts, pa.large_string())
