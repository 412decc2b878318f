"""Predicates as Spark SQL's text, for Spark to apply them again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import UUID

from rookery.model.calendar import NANOS_A_MICRO, day_text, time_text, timestamp_text
from rookery.model.predicate import (
    Always,
    And,
    Compare,
    In,
    IsNaN,
    IsNull,
    Like,
    Never,
    Opaque,
    Or,
    Predicate,
    Value,
)
from rookery.model.table import Field
from rookery.model.type_names import base_type, scale_of
from rookery.where.patterns import like_pattern

_Spell: TypeAlias = Callable[[str, Any], str]


def spell(predicate: Predicate) -> str:
    """Return Spark SQL that is true where the predicate is.

    >>> from rookery.model.predicate import Op
    >>> spell(Compare(Field(1, "day", "date"), Op.LT, 19_753))
    "`day` < DATE '2024-01-31'"
    """
    match predicate:
        case And(parts):
            return " AND ".join(map(_part, parts))
        case Or(parts):
            return " OR ".join(map(_part, parts))
        case Always():
            return "TRUE"
        case Never():
            return "FALSE"
        case Opaque(text):
            return text
        case Compare(field, op, value):
            return f"{_name(field)} {op} {spell_value(field.type, value)}"
        case In(field, values, negated):
            listed = ", ".join(spell_value(field.type, value) for value in values)
            return f"{_name(field)} {'NOT ' if negated else ''}IN ({listed})"
        case IsNull(field, negated):
            return f"{_name(field)} IS {'NOT ' if negated else ''}NULL"
        case IsNaN(field, negated):
            return f"{'NOT ' if negated else ''}isnan({_name(field)})"
        case Like():
            return _like(predicate)


def _part(predicate: Predicate) -> str:
    return f"({spell(predicate)})" if isinstance(predicate, And | Or | Opaque) else spell(predicate)


def _name(field: Field) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in field.parts)


def _like(leaf: Like) -> str:
    pattern = like_pattern(leaf)
    negation = "NOT " if leaf.negated else ""
    if pattern is None:
        return f"{_name(leaf.field)} {negation}RLIKE {quote_text(f'^(?:{leaf.regex})$')}"
    return f"{_name(leaf.field)} {negation}LIKE {quote_text(pattern)}"


def spell_value(type_name: str, value: Value) -> str:
    """Return a typed literal.

    >>> spell_value("decimal(5, 2)", -105), spell_value("timestamptz", 500_000)
    ('-1.05BD', "TIMESTAMP '1970-01-01 00:00:00.500000Z'")
    """
    return _SPELLERS[base_type(type_name)](type_name, value)


def quote_text(text: str) -> str:
    r"""Return a string literal that Spark reads back as *text*, for any handling of escapes.

    >>> quote_text("NL"), quote_text("it's")
    ("'NL'", "CAST(X'69742773' AS STRING)")
    """
    if any(special in text for special in ("'", "\\", "\0", "${")):
        return f"CAST({_bytes('binary', text.encode())} AS STRING)"
    return f"'{text}'"


def _integer(type_name: str, value: int) -> str:
    return str(value)


def _boolean(type_name: str, value: bool) -> str:
    return str(value).upper()


def _text(type_name: str, value: str) -> str:
    return quote_text(value)


def _bytes(type_name: str, value: bytes) -> str:
    return f"X'{value.hex().upper()}'"


def _uuid(type_name: str, value: bytes) -> str:
    return quote_text(str(UUID(bytes=value)))


def _floating(type_name: str, value: float) -> str:
    if math.isnan(value):
        return "CAST('NaN' AS DOUBLE)"
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS DOUBLE)"
    digits = repr(float(value))
    return f"CAST('{digits}' AS DOUBLE)" if "e" in digits else f"{digits}D"


def _decimal(type_name: str, value: int) -> str:
    scale = scale_of(type_name)
    digits = str(abs(value)).rjust(scale + 1, "0")
    point = len(digits) - scale
    fraction = f".{digits[point:]}" if scale else ""
    return f"{'-' if value < 0 else ''}{digits[:point]}{fraction}BD"


def _date(type_name: str, value: int) -> str:
    return f"DATE '{day_text(value)}'"


def _time(type_name: str, value: int) -> str:
    return f"TIME '{time_text(value)}'"


def _timestamp(type_name: str, value: int) -> str:
    text = timestamp_text(value if type_name.endswith("_ns") else value * NANOS_A_MICRO)
    zoned = type_name.startswith("timestamptz")
    return f"TIMESTAMP{'' if zoned else '_NTZ'} '{text}{'Z' if zoned else ''}'"


_SPELLERS: dict[str, _Spell] = {
    "int": _integer,
    "long": _integer,
    "decimal": _decimal,
    "float": _floating,
    "double": _floating,
    "string": _text,
    "boolean": _boolean,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamp_ns": _timestamp,
    "timestamptz": _timestamp,
    "timestamptz_ns": _timestamp,
    "binary": _bytes,
    "fixed": _bytes,
    "uuid": _uuid,
}
