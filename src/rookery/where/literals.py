"""Literals in the form of the column that they are compared with, under Spark's rules (ANSI mode).

Spark casts both sides of a comparison to a common type. Where that can be undone without loss, the comparison
becomes one with a value of the column's own type; where it cannot, `Inexact` is raised; and what Spark would
refuse, or what is certainly a mistake, is a `UsageError`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias
from uuid import UUID

from rookery.model.calendar import NANOS_A_MICRO
from rookery.model.errors import UsageError
from rookery.model.predicate import NEVER, Compare, In, IsNull, Op, Predicate, Value
from rookery.model.table import Field
from rookery.model.type_names import base_type, precision_and_scale
from rookery.where import timestamps
from rookery.where.binding import Inexact, check_type
from rookery.where.text_values import NAN, boolean_in, double_in, integer_in
from rookery.where.timestamps import MICROS_A_DAY

_EXACT_DOUBLE = 2**53
_EXACT_DIGITS = 10**15
_MOST_DIGITS = 38
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)


class Kind(StrEnum):
    """A literal before it is compared with a column."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    STRING = "string"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    BINARY = "binary"
    NULL = "null"


NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal and its Python value: int, Decimal, float, str, bool, bytes or None.

    Dates are days since 1970-01-01, the other times microseconds; `TIMESTAMP` is an instant, `TIMESTAMP_NTZ`
    a local time. Both may have nanoseconds beside, which only columns of nanoseconds are compared with.
    """

    kind: Kind
    value: Any
    nanos: int = 0


NULL = Literal(Kind.NULL, None)
_Bind: TypeAlias = Callable[[Field, Op, Literal, tzinfo], Predicate]


def compare(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    """Return the leaf that is true where Spark finds `field op literal` true.

    >>> count, utc = Field(1, "count", "int"), timestamps.session_zone("UTC")
    >>> leaf = compare(count, Op.LT, Literal(Kind.DECIMAL, Decimal("1.5")), utc)
    >>> leaf.op, leaf.value
    (<Op.LE: '<='>, 1)
    >>> compare(count, Op.EQ, Literal(Kind.DECIMAL, Decimal("1.5")), utc)
    Never()
    """
    bind = _BINDERS.get(base_type(field.type))
    if bind is None:
        raise Inexact(f"columns of type {field.type} are not compared")
    return NEVER if literal.kind is Kind.NULL else bind(field, op, literal, zone)


def among(field: Field, literals: Sequence[Literal], zone: tzinfo, *, negated: bool = False) -> Predicate:
    """Return `field IN (literals)`, or NOT IN, which is never true if one of them is null."""
    check_type(field)
    given = [literal for literal in literals if literal.kind is not Kind.NULL]
    values: dict[Value, None] = {}
    for literal in _widened(field, given):
        leaf = compare(field, Op.EQ, literal, zone)
        if isinstance(leaf, Compare):
            values[leaf.value] = None
    if negated and len(given) < len(literals):
        return NEVER
    if not values:
        return IsNull(field, negated=True) if negated else NEVER
    if len(values) == 1:
        return Compare(field, Op.NE if negated else Op.EQ, next(iter(values)))
    return In(field, tuple(values), negated)


def _widened(field: Field, literals: list[Literal]) -> list[Literal]:
    """Spark brings the members of a list to one type before it compares them."""
    kinds = {literal.kind for literal in literals}
    if kinds <= NUMBERS:
        if Kind.DOUBLE in kinds and len(kinds) > 1:
            return [Literal(Kind.DOUBLE, float(literal.value)) for literal in literals]
        if base_type(field.type) in ("int", "long", "decimal"):
            _check_width(field, literals)
    elif len(kinds) > 1:
        raise Inexact("the list mixes types")
    return literals


def mismatch(field: Field, literal: Literal) -> UsageError:
    """Return the error of a comparison that is meaningless."""
    shown = f"'{literal.value}'" if literal.kind is Kind.STRING else f"a literal of type {literal.kind}"
    return UsageError(
        f"type mismatch: column '{field.name}' is of type {field.type} and cannot be compared with {shown}",
        hint=_HINTS.get(base_type(field.type), "compare it with a literal of its own type"),
    )


_HINTS = {
    "string": "put the value in quotes: 'value'",
    "boolean": "compare it with TRUE or FALSE",
    "date": "write DATE '2024-01-31'",
    "timestamp": "write TIMESTAMP_NTZ '2024-01-31 12:30:00'",
    "timestamptz": "write TIMESTAMP '2024-01-31 12:30:00'",
    "time": "write '12:30:00'",
    "binary": "write X'0AFF'",
    "fixed": "write X'0AFF'",
    "uuid": "write 'f79c3e09-677c-4bbd-a479-3f349cb785e7'",
    "int": "compare it with a whole number, without quotes",
    "long": "compare it with a whole number, without quotes",
    "decimal": "compare it with a number, without quotes",
    "float": "compare it with a number, without quotes",
    "double": "compare it with a number, without quotes",
}


def nanos_of(literal: Literal) -> int:
    """Return the nanoseconds of a time beside its microseconds."""
    return timestamps.nanos_in(literal.value) if literal.kind is Kind.STRING else literal.nanos


def _place(field: Field, op: Op, below: int, exact: bool, low: int, high: int) -> Predicate:
    """Compare whole numbers in low…high with *below*, or, if not *exact*, a point between it and the next."""
    if not exact and op in (Op.EQ, Op.NE):
        return NEVER if op is Op.EQ else IsNull(field, negated=True)
    if not exact:
        op, below = (Op.LE, below) if op in (Op.LT, Op.LE) else (Op.GE, below + 1)
    if low <= below <= high:
        return Compare(field, op, below)
    always = op is Op.NE or op in ((Op.LT, Op.LE) if below > high else (Op.GT, Op.GE))
    return IsNull(field, negated=True) if always else NEVER


def _bind_integer(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    bits = 31 if field.type == "int" else 63
    low, high = -(2**bits), 2**bits - 1
    value = literal.value
    if literal.kind is Kind.STRING:
        value = integer_in(value)
    elif literal.kind is Kind.DOUBLE:
        if math.isnan(value) or math.isinf(value):
            return _place(field, op, low - 1 if value < 0 else high + 1, True, low, high)
        if bits == 63 and _EXACT_DOUBLE <= abs(value) <= 2.0**63:
            raise Inexact("Spark compares the column as a double, which has too few digits for it")
    elif literal.kind in NUMBERS:
        _check_width(field, [literal])
        if op not in (Op.EQ, Op.NE) and not -(2**63) <= value <= 2**63 - 1:
            raise Inexact("Spark decides this without the column, for nulls too")
    if value is None or literal.kind not in (*NUMBERS, Kind.STRING):
        raise mismatch(field, literal)
    below = math.floor(value)
    return _place(field, op, below, below == value, low, high)


def _bind_decimal(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    precision, scale = _decimal(field)
    high = 10**precision - 1
    value = double_in(literal.value) if literal.kind is Kind.STRING else literal.value
    if value is None or literal.kind not in (*NUMBERS, Kind.STRING):
        raise mismatch(field, literal)
    if isinstance(value, float):
        below, exact = _decimal_double(value, precision, scale)
    else:
        _check_width(field, [literal])
        scaled = Fraction(value) * 10**scale
        below = math.floor(scaled)
        exact = below == scaled
    return _place(field, op, below, exact, -high, high)


def _decimal_double(value: float, precision: int, scale: int) -> tuple[int, bool]:
    """Place a double among decimals, which Spark casts to doubles: up to 15 digits stay apart by it."""
    beyond = float(10 ** (precision - scale))
    if math.isnan(value) or abs(value) > beyond:
        return (-1 if value < 0 else 1) * 10 ** (precision + 1), True
    scaled = Fraction(value) * 10**scale
    if abs(scaled) >= _EXACT_DIGITS:
        raise Inexact("Spark compares the column as a double, which has too few digits for it")
    below = math.floor(scaled)
    for near in (below, below + 1):
        if float(Fraction(near, 10**scale)) == value:
            return near, True
    return below, False


def _decimal(field: Field) -> tuple[int, int]:
    digits = precision_and_scale(field.type)
    if digits is None:
        raise Inexact(f"columns of type {field.type} are not compared")
    return digits


def _check_width(field: Field, literals: Sequence[Literal]) -> None:
    """Spark rounds where the common type of both sides would need more than 38 digits."""
    if all(literal.kind is Kind.INTEGER for literal in literals) and base_type(field.type) != "decimal":
        return
    precision, scale = _decimal(field) if base_type(field.type) == "decimal" else (20, 0)
    digits, scales = [precision - scale], [scale]
    for literal in literals:
        _, figures, exponent = Decimal(literal.value).as_tuple()
        assert isinstance(exponent, int)
        scales.append(max(-exponent, 0))
        # Spark treats a whole number as a decimal of 20 digits at most, depending on its position.
        digits.append(max(len(figures) + exponent, 20 if literal.kind is Kind.INTEGER else 0))
    if max(digits) + max(scales) > _MOST_DIGITS:
        raise Inexact(f"Spark rounds, as both sides do not fit a decimal of {_MOST_DIGITS} digits")


def _bind_floating(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    value = double_in(literal.value) if literal.kind is Kind.STRING else literal.value
    if value is None or literal.kind not in (*NUMBERS, Kind.STRING):
        raise mismatch(field, literal)
    value = float(value)
    value = NAN if math.isnan(value) else value + 0.0  # turns -0.0 into 0.0
    if field.type == "float" and op in (Op.EQ, Op.NE) and not math.isnan(value) and single(value) != value:
        return NEVER if op is Op.EQ else IsNull(field, negated=True)
    return Compare(field, op, value)


def single(value: float) -> float:
    """Return the nearest value that 32 bits hold.

    >>> single(0.5), single(1e39)
    (0.5, inf)
    """
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _bind_string(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    if literal.kind in NUMBERS:
        raise mismatch(field, literal)
    if literal.kind is not Kind.STRING:
        raise Inexact(f"Spark casts the column to {literal.kind}")
    return Compare(field, op, literal.value)


def _bind_boolean(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    value = boolean_in(literal.value) if literal.kind is Kind.STRING else literal.value
    if value is None or literal.kind not in (Kind.BOOLEAN, Kind.STRING):
        raise mismatch(field, literal)
    return Compare(field, op, value)


def _bind_date(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    exact = True
    match literal.kind:
        case Kind.DATE:
            day = literal.value
        case Kind.STRING:
            day = timestamps.day_in(literal.value)
        case Kind.TIMESTAMP:
            day, exact = timestamps.day_of(literal.value, zone)
        case Kind.TIMESTAMP_NTZ:
            day, rest = divmod(literal.value, MICROS_A_DAY)
            exact = rest == 0
        case _:
            day = None
    if day is None:
        raise mismatch(field, literal)
    return _place(field, op, day, exact, -(2**31), 2**31 - 1)


def _bind_local(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    match literal.kind:
        case Kind.DATE:
            local: int | None = literal.value * MICROS_A_DAY
        case Kind.STRING:
            local = timestamps.local_in(literal.value)
        case Kind.TIMESTAMP:
            local = timestamps.steady_local(literal.value, zone)
        case Kind.TIMESTAMP_NTZ:
            local = literal.value
        case _:
            local = None
    return _micros(field, op, literal, local)


def _bind_instant(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    match literal.kind:
        case Kind.DATE:
            instant: int | None = timestamps.to_instant(literal.value * MICROS_A_DAY, zone)
        case Kind.STRING:
            instant = timestamps.instant_in(literal.value, zone)
        case Kind.TIMESTAMP:
            instant = literal.value
        case Kind.TIMESTAMP_NTZ:
            instant = timestamps.to_instant(literal.value, zone)
        case _:
            instant = None
    return _micros(field, op, literal, instant)


def _bind_time(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    value = timestamps.time_in(literal.value) if literal.kind is Kind.STRING else literal.value
    return _micros(field, op, literal, value if literal.kind in (Kind.TIME, Kind.STRING) else None)


def _micros(field: Field, op: Op, literal: Literal, micros: int | None) -> Predicate:
    if micros is None:
        raise mismatch(field, literal)
    if not field.type.endswith("_ns"):
        return Compare(field, op, micros)
    nanos = micros * NANOS_A_MICRO + nanos_of(literal)
    # Such columns reach from 1677 to 2262: all their values lie on one side of any other time.
    return _place(field, op, nanos, True, -(2**63), 2**63 - 1)


def _bind_bytes(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    if literal.kind not in (Kind.BINARY, Kind.STRING):
        raise mismatch(field, literal)
    value = literal.value.encode() if literal.kind is Kind.STRING else literal.value
    if field.type.startswith("fixed[") and op in (Op.EQ, Op.NE) and len(value) != int(field.type[6:-1]):
        return NEVER if op is Op.EQ else IsNull(field, negated=True)
    return Compare(field, op, value)


def _bind_uuid(field: Field, op: Op, literal: Literal, zone: tzinfo) -> Predicate:
    if literal.kind in NUMBERS:
        raise mismatch(field, literal)
    # Spark shows a UUID as text; that of full length, in lower case, orders as the bytes do.
    if literal.kind is not Kind.STRING or not _UUID.fullmatch(literal.value):
        raise Inexact("Spark compares UUIDs as text, and this is none in lower case")
    return Compare(field, op, UUID(literal.value).bytes)


_BINDERS: dict[str, _Bind] = {
    "int": _bind_integer,
    "long": _bind_integer,
    "decimal": _bind_decimal,
    "float": _bind_floating,
    "double": _bind_floating,
    "string": _bind_string,
    "boolean": _bind_boolean,
    "date": _bind_date,
    "time": _bind_time,
    "timestamp": _bind_local,
    "timestamp_ns": _bind_local,
    "timestamptz": _bind_instant,
    "timestamptz_ns": _bind_instant,
    "binary": _bind_bytes,
    "fixed": _bind_bytes,
    "uuid": _bind_uuid,
}
