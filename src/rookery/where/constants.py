"""Constant expressions of Spark SQL, worked out to literals: casts, signs, sums and typed literals."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, TypeAlias

from sqlglot import exp

from rookery.model.errors import UsageError
from rookery.where import timestamps
from rookery.where.binding import Inexact
from rookery.where.literals import (
    NULL,
    Kind,
    Literal,
    nanos_of,
    single,
)
from rookery.where.text_values import NAN, boolean_in, double_in, integer_in
from rookery.where.timestamps import EPOCH_DAY, MICROS_A_DAY, trimmed

_WIDE = Context(prec=100)
_LONGEST = 80  # digits; Spark has no number longer than 38
_NUMBER = re.compile(r"(?P<whole>\d+)|(?P<decimal>\d+\.\d*|\.\d+)|(?P<double>[\d.]+[eE][+-]?\d+)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_DT = exp.DataType.Type
_BITS = {_DT.TINYINT: 7, _DT.SMALLINT: 15, _DT.INT: 31, _DT.BIGINT: 63}
_TYPE_FUNCTIONS = {
    "bigint": _DT.BIGINT,
    "smallint": _DT.SMALLINT,
    "tinyint": _DT.TINYINT,
    "binary": _DT.BINARY,
    "decimal": _DT.DECIMAL,
}
_UNITS = {"DAY": (0, 1), "DAYS": (0, 1), "WEEK": (0, 7), "WEEKS": (0, 7)} | {
    "MONTH": (1, 0),
    "MONTHS": (1, 0),
    "YEAR": (12, 0),
    "YEARS": (12, 0),
}
_Cast: TypeAlias = Callable[[Literal, exp.DataType, tzinfo], Literal | None]


def constant(node: exp.Expression, zone: tzinfo) -> Literal | None:
    """Return the literal that an expression evaluates to, or None if it is not constant.

    >>> from sqlglot import parse_one
    >>> sum_ = parse_one("DATE '1970-01-31' + INTERVAL 1 MONTH", read="spark")
    >>> constant(sum_, timestamps.session_zone("UTC"))
    Literal(kind=<Kind.DATE: 'date'>, value=58, nanos=0)
    """
    match node:
        case exp.Paren():
            return constant(node.this, zone)
        case exp.Literal():
            return Literal(Kind.STRING, node.this) if node.is_string else _number(node.this)
        case exp.RawString():
            return Literal(Kind.STRING, node.this)
        case exp.Boolean():
            return Literal(Kind.BOOLEAN, bool(node.this))
        case exp.Null():
            return NULL
        case exp.HexString():
            digits = str(node.this)
            return Literal(Kind.BINARY, bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")))
        case exp.Cast() | exp.TsOrDsToDate() | exp.Anonymous():
            return _cast(node, zone)
        case exp.Collate():
            raise Inexact("collations are left to Spark")
        case exp.Neg() | exp.Add() | exp.Sub() | exp.Mul() | exp.Concat():
            return _folded(node, zone)
    return None


def _number(text: str) -> Literal:
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise Inexact("the number is not understood")
    if match["double"]:
        value = double_in(text)
        if value is None or math.isinf(value):
            raise UsageError(f"{text} is out of the range of doubles", hint="doubles reach to about 1.8e308")
        return Literal(Kind.DOUBLE, value)
    return Literal(Kind.INTEGER, int(text)) if match["whole"] else Literal(Kind.DECIMAL, Decimal(text))


def _cast(node: exp.Expression, zone: tzinfo) -> Literal | None:
    inner, to = node.this, node.args.get("to")
    if isinstance(node, exp.TsOrDsToDate):
        if node.args.get("format") is not None:
            return None
        to = exp.DataType(this=_DT.DATE)
    elif isinstance(node, exp.Anonymous):
        kind = _TYPE_FUNCTIONS.get(str(node.this).lower())
        if kind is None or len(node.expressions) != 1:
            return None
        inner, to = node.expressions[0], exp.DataType(this=kind)
    if not isinstance(to, exp.DataType) or node.args.get("format") is not None:
        return None
    if to.find(exp.Collate) is not None or to.args.get("collate") is not None:
        raise Inexact("collations are left to Spark")
    given = constant(inner, zone)
    if given is None or given.kind is Kind.NULL:
        return given
    converted = _converted(given, to, zone)
    if converted is None and node.args.get("safe") and isinstance(node, exp.TryCast):
        return NULL
    if converted is None:
        raise UsageError(
            f"'{given.value}' is no {to.sql(dialect='spark')}",
            hint="Spark would refuse this cast; correct the literal",
        )
    return converted


def _converted(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    cast = _CASTS.get(to.this)
    if cast is None:
        raise Inexact(f"casts to {to.sql(dialect='spark')} are left to Spark")
    return cast(given, to, zone)


def _stays(given: Literal, to: exp.DataType) -> Inexact:
    return Inexact(f"casts of a {given.kind} to {to.sql(dialect='spark')} are left to Spark")


def _to_integer(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    limit = 2 ** _BITS[to.this]
    match given.kind:
        case Kind.STRING:
            value = integer_in(given.value)
        case Kind.DOUBLE:
            value = int(given.value) if math.isfinite(given.value) else None
        case Kind.INTEGER | Kind.DECIMAL | Kind.BOOLEAN:
            value = int(given.value)
        case _:
            raise _stays(given, to)
    return Literal(Kind.INTEGER, value) if value is not None and -limit <= value < limit else None


def _to_double(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    match given.kind:
        case Kind.STRING:
            value = double_in(given.value)
        case Kind.INTEGER | Kind.DECIMAL | Kind.DOUBLE:
            value = float(given.value)
        case _:
            raise _stays(given, to)
    if value is None or to.this == _DT.DOUBLE or math.isnan(value):
        return None if value is None else Literal(Kind.DOUBLE, NAN if math.isnan(value) else value)
    _check_rounded_once(value, given)
    return Literal(Kind.DOUBLE, single(value))


def _check_rounded_once(value: float, given: Literal) -> None:
    """Spark rounds text and decimals to 32 bits at once, which differs where 64 bits end halfway."""
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    if given.kind is not Kind.DOUBLE and (bits & 0x1FFFFFFF == 0x10000000 or 0 < abs(value) < 2.0**-126):
        raise Inexact("the number is halfway between two floats")


def _to_decimal(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    sizes = [int(size.name) for size in to.expressions if size.name.isdigit()]
    precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
    if given.kind is Kind.STRING:
        text = trimmed(given.value)
        if not _DECIMAL.fullmatch(text):
            return None
        value = Decimal(text)
    elif given.kind in (Kind.INTEGER, Kind.DECIMAL):
        value = Decimal(given.value)
    else:
        raise _stays(given, to)
    if value.adjusted() > _LONGEST or precision > 38 or scale > precision:
        return None
    value = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)
    if value.copy_abs() >= Decimal(1).scaleb(precision - scale):
        return None
    return Literal(Kind.DECIMAL, value)


def _to_text(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    if given.kind is Kind.BINARY:
        try:
            return Literal(Kind.STRING, given.value.decode())
        except UnicodeDecodeError:
            raise _stays(given, to) from None
    if given.kind not in (Kind.STRING, Kind.INTEGER):
        raise _stays(given, to)
    return Literal(Kind.STRING, str(given.value))


def _to_date(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    match given.kind:
        case Kind.STRING:
            day = timestamps.day_in(given.value)
        case Kind.TIMESTAMP:
            day = timestamps.to_local(given.value, zone) // MICROS_A_DAY
        case Kind.TIMESTAMP_NTZ:
            day = given.value // MICROS_A_DAY
        case Kind.DATE:
            day = given.value
        case _:
            raise _stays(given, to)
    return None if day is None else Literal(Kind.DATE, day)


def _to_instant(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    match given.kind:
        case Kind.STRING:
            instant = timestamps.instant_in(given.value, zone)
        case Kind.DATE:
            instant = timestamps.to_instant(given.value * MICROS_A_DAY, zone)
        case Kind.TIMESTAMP_NTZ:
            instant = timestamps.to_instant(given.value, zone)
        case Kind.TIMESTAMP:
            instant = given.value
        case _:
            raise _stays(given, to)
    return None if instant is None else Literal(Kind.TIMESTAMP, instant, nanos_of(given))


def _to_local(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    match given.kind:
        case Kind.STRING:
            local = timestamps.local_in(given.value)
        case Kind.DATE:
            local = given.value * MICROS_A_DAY
        case Kind.TIMESTAMP:
            local = timestamps.to_local(given.value, zone)
        case Kind.TIMESTAMP_NTZ:
            local = given.value
        case _:
            raise _stays(given, to)
    return None if local is None else Literal(Kind.TIMESTAMP_NTZ, local, nanos_of(given))


def _to_time(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    if given.kind is not Kind.STRING:
        raise _stays(given, to)
    micros = timestamps.time_in(given.value)
    return None if micros is None else Literal(Kind.TIME, micros)


def _to_binary(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    if given.kind not in (Kind.STRING, Kind.BINARY):
        raise _stays(given, to)
    return Literal(Kind.BINARY, given.value.encode() if given.kind is Kind.STRING else given.value)


def _to_boolean(given: Literal, to: exp.DataType, zone: tzinfo) -> Literal | None:
    if given.kind not in (Kind.STRING, Kind.BOOLEAN):
        raise _stays(given, to)
    value = boolean_in(given.value) if given.kind is Kind.STRING else given.value
    return None if value is None else Literal(Kind.BOOLEAN, value)


_CASTS: dict[Any, _Cast] = {
    **dict.fromkeys(_BITS, _to_integer),
    _DT.FLOAT: _to_double,
    _DT.DOUBLE: _to_double,
    _DT.DECIMAL: _to_decimal,
    _DT.TEXT: _to_text,
    _DT.DATE: _to_date,
    _DT.TIMESTAMP: _to_instant,
    _DT.TIMESTAMPTZ: _to_instant,
    _DT.TIMESTAMPLTZ: _to_instant,
    _DT.TIMESTAMPNTZ: _to_local,
    _DT.TIME: _to_time,
    _DT.BINARY: _to_binary,
    _DT.BOOLEAN: _to_boolean,
}


def _folded(node: exp.Expression, zone: tzinfo) -> Literal | None:
    if isinstance(node, exp.Concat):
        texts = [constant(part, zone) for part in node.expressions]
        if any(text is None or text.kind is not Kind.STRING for text in texts):
            return None
        return Literal(Kind.STRING, "".join(text.value for text in texts if text is not None))
    left, right = node.this, node.args.get("expression")
    if isinstance(left, exp.Interval) and isinstance(node, exp.Add):
        left, right = right, left
    if isinstance(right, exp.Interval):
        start = constant(left, zone)
        return None if start is None else _moved(start, right, -1 if isinstance(node, exp.Sub) else 1)
    first = constant(left, zone)
    second = constant(right, zone) if right is not None else Literal(Kind.INTEGER, 0)
    if first is None or second is None:
        return None
    if isinstance(node, exp.Neg):
        return _negated(first)
    return _sum(node, first, second)


def _negated(given: Literal) -> Literal:
    if given.kind is Kind.NULL:
        return given
    if given.kind not in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE):
        raise Inexact(f"the sign of a {given.kind} is left to Spark")
    # A decimal's own sign would round it to the digits of Python's context.
    value = given.value.copy_negate() if given.kind is Kind.DECIMAL else -given.value
    return Literal(given.kind, NAN if value != value else value)


def _sum(node: exp.Expression, first: Literal, second: Literal) -> Literal:
    kinds = {first.kind, second.kind}
    if not kinds <= {Kind.INTEGER, Kind.DECIMAL}:
        raise Inexact("this arithmetic is left to Spark")
    a, b = first.value, second.value
    if kinds == {Kind.INTEGER}:
        whole = a + b if isinstance(node, exp.Add) else a - b if isinstance(node, exp.Sub) else a * b
        if not -(2**31) <= whole < 2**31:
            raise Inexact("whole numbers might overflow, which is left to Spark")
        return Literal(Kind.INTEGER, whole)
    left, right = Decimal(a), Decimal(b)
    if max(len(left.as_tuple().digits), len(right.as_tuple().digits)) > 15:
        raise Inexact("decimals of many digits are rounded, which is left to Spark")
    if isinstance(node, exp.Mul):
        return Literal(Kind.DECIMAL, _WIDE.multiply(left, right))
    return Literal(Kind.DECIMAL, (_WIDE.add if isinstance(node, exp.Add) else _WIDE.subtract)(left, right))


def _moved(start: Literal, interval: exp.Interval, sign: int) -> Literal:
    """Add days or months to a date; other sums with intervals are left to Spark."""
    unit = _UNITS.get(interval.unit.name.upper()) if interval.unit is not None else None
    amount = interval.this.name if isinstance(interval.this, exp.Literal) else ""
    if start.kind is not Kind.DATE or unit is None or not re.fullmatch(r"[+-]?\d{1,7}", amount, re.ASCII):
        raise Inexact("this interval is left to Spark")
    months, days = (size * sign * int(amount) for size in unit)
    if not months:
        return Literal(Kind.DATE, start.value + days)
    try:
        begin = date.fromordinal(start.value + EPOCH_DAY)
        month = begin.year * 12 + begin.month - 1 + months
        first = date(month // 12, month % 12 + 1, 1)
        following = date((month + 1) // 12, (month + 1) % 12 + 1, 1)
    except ValueError as error:
        raise Inexact("the date is out of the calendar") from error
    last = (following - first).days
    return Literal(Kind.DATE, first.toordinal() - EPOCH_DAY + min(begin.day, last) - 1)
