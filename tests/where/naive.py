"""A predicate asked row by row, in the plainest way: what the fast ways are compared with."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping

from rookery.model import (
    Always,
    And,
    Compare,
    In,
    IsNaN,
    IsNull,
    Like,
    Never,
    Op,
    Opaque,
    Or,
    Predicate,
    Value,
)

OPS = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def matches(predicate: Predicate, row: Mapping[str, Value | None]) -> bool:
    """Whether a row, by names of columns, makes the predicate true; what is opaque counts as true."""
    match predicate:
        case Always() | Opaque():
            return True
        case Never():
            return False
        case And(parts):
            return all(matches(part, row) for part in parts)
        case Or(parts):
            return any(matches(part, row) for part in parts)
        case IsNull(field, negated):
            return (row[field.name] is None) is not negated
        case IsNaN(field, negated):
            value = row[field.name]
            return (value is not None and value != value) is not negated
        case Compare(field, op, wanted):
            value = row[field.name]
            return value is not None and OPS[op](ordered(value), ordered(wanted))
        case In(field, values, negated):
            value = row[field.name]
            return value is not None and (ordered(value) in map(ordered, values)) is not negated
        case Like(field, prefix, regex, negated):
            text = row[field.name]
            if text is None:
                return False
            assert isinstance(text, str)
            found = text.startswith(prefix) and (regex is None or re.fullmatch(regex, text) is not None)
            return found is not negated


def ordered(value: Value) -> tuple[bool, Value]:
    """NaN equals itself and is the largest."""
    nan = isinstance(value, float) and math.isnan(value)
    return (nan, 0.0 if nan else value)
