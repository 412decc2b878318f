"""Random values of every type, in the form that predicates have them, and random leaves about them."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rookery.model import Compare, Field, In, IsNaN, IsNull, Leaf, Op, Predicate, Value, all_of, any_of
from rookery.model.schema import Primitive
from rookery.model.type_names import base_type
from rookery.read.types import arrow_type
from rookery.values.canonical import form_of
from rookery.where.patterns import begins_with, like

KINDS = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(4, 2)",
    "decimal(9, 0)",
    "decimal(18, 6)",
    "decimal(38, 10)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "timestamp_ns",
    "timestamptz_ns",
    "string",
    "binary",
    "fixed[4]",
    "uuid",
)
LETTERS = "ab%_\\zé￿\ud7ff\ue000𐀀\U0010ffff"
PREFIX = "a common prefix, longer than sixteen letters, "
DAY = 86_400_000_000


def _whole(bits: int) -> Callable[[random.Random], int]:
    edges = (0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))

    def make(rng: random.Random) -> int:
        if rng.random() < 0.2:
            return rng.choice(edges)
        reach = rng.choice((10, 1000, 2 ** (bits - 1)))
        return rng.randrange(-reach, reach)

    return make


def _double(rng: random.Random) -> float:
    if rng.random() < 0.5:
        return rng.choice((0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -1.7976931348623157e308))
    return rng.choice((rng.randrange(-5, 5) / 4, rng.uniform(-1e3, 1e3), rng.uniform(-1, 1) * 1e200))


def _single(rng: random.Random) -> float:
    value = rng.choice((_double(rng), 1e-45, 3.4028234663852886e38))
    value = (
        value if math.isinf(value) or math.isnan(value) or abs(value) < 3.4e38 else math.copysign(1, value)
    )
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _moment(unit: int) -> Callable[[random.Random], int]:
    """Times around 1970, at the edges of days, hours and years."""

    def make(rng: random.Random) -> int:
        days = rng.choice((0, -1, 365, -365, rng.randrange(-100_000, 60_000)))
        inside = rng.choice((0, 1, -1, 3_600_000_000, -3_600_000_000, rng.randrange(DAY)))
        return (days * DAY + inside) * unit + (rng.randrange(unit) if unit > 1 else 0)

    return make


def _text(rng: random.Random) -> str:
    if rng.random() < 0.15:
        return rng.choice(("", "a", PREFIX))
    start = rng.choice(("", "", PREFIX, "\U0010ffff" * 20, "a" * 15))
    return start + "".join(rng.choice(LETTERS) for _ in range(rng.randrange(4)))


def _binary(rng: random.Random) -> bytes:
    start = rng.choice((b"", b"", b"\xff" * 18, PREFIX.encode()))
    return start + bytes(rng.choice((0, 1, 97, 0x7F, 0x80, 0xFF)) for _ in range(rng.randrange(4)))


def _sized(width: int) -> Callable[[random.Random], bytes]:
    return lambda rng: bytes(rng.choice((0, 1, 0x7F, 0x80, 0xFF)) for _ in range(width))


def _decimal(kind: str) -> Callable[[random.Random], int]:
    most = 10 ** int(kind.split("(")[1].split(",")[0]) - 1
    return lambda rng: rng.choice(
        (0, most, -most, rng.randint(-min(500, most), 500), rng.randint(-most, most))
    )


_MAKERS: Mapping[str, Callable[[random.Random], Value]] = {
    "boolean": lambda rng: rng.random() < 0.5,
    "int": _whole(32),
    "long": _whole(64),
    "float": _single,
    "double": _double,
    "date": lambda rng: rng.choice((0, -1, 1, -365, rng.randrange(-100_000, 60_000))),
    "time": lambda rng: rng.choice((0, DAY - 1, rng.randrange(DAY))),
    "timestamp": _moment(1),
    "timestamptz": _moment(1),
    "timestamp_ns": _moment(1000),
    "timestamptz_ns": _moment(1000),
    "string": _text,
    "binary": _binary,
    "uuid": _sized(16),
}


def value(rng: random.Random, kind: str) -> Value:
    """A value of a type."""
    base = base_type(kind)
    if base == "decimal":
        return _decimal(kind)(rng)
    if base == "fixed":
        return _sized(int(kind[6:-1]))(rng)
    return _MAKERS[base](rng)


def pool(rng: random.Random, kind: str, size: int) -> list[Value]:
    """Values to choose from, so that some occur often and predicates meet them."""
    return [value(rng, kind) for _ in range(size)]


def arrow(kind: str, values: Sequence[Value | None]) -> pa.Array:
    """Values in their type's form."""
    turn: Callable[[Any], Any] | None = None
    if kind == "string":
        turn = _encoded
    elif kind == "boolean":
        turn = int
    elif kind.startswith("decimal"):
        scale = int(kind.rstrip(")").split(",")[1])
        turn = lambda unscaled: Decimal(f"{unscaled}E-{scale}")  # noqa: E731
    given = values if turn is None else [None if value is None else turn(value) for value in values]
    return pa.array(given, form_of(kind))


def _encoded(text: str) -> bytes:
    """Text in bytes, which are not UTF-8 where it has surrogates for them."""
    return text.encode(errors="surrogateescape")


def stored(kind: str, values: Sequence[Value | None]) -> pa.Array:
    """The same as Parquet readers give them, in the type of the column."""
    formed = arrow(kind, values)
    target = arrow_type(Primitive(kind))
    assert target is not None
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, formed.cast(target.storage_type))
    if pa.types.is_date32(target):
        formed = formed.cast(pa.int32())
    if pa.types.is_string(target):
        return formed.cast(pa.binary()).view(target)  # a cast would refuse what is not UTF-8
    return formed.cast(target)


def leaf(rng: random.Random, field: Field, values: Sequence[Value]) -> Predicate:
    """A leaf of some kind, about one of the values more often than not."""
    wanted = rng.choice(values) if rng.random() < 0.7 else value(rng, field.type)
    choice = rng.random()
    if choice < 0.1:
        return IsNull(field, rng.random() < 0.5)
    if choice < 0.2 and base_type(field.type) in ("float", "double"):
        return IsNaN(field, rng.random() < 0.5)
    if choice < 0.4 and field.type == "string":
        return _like(rng, field, str(wanted))
    if choice < 0.6:
        size = rng.choice((2, 3, 12, 40))
        members = {repr(v): v for v in (*(rng.choice(values) for _ in range(size // 2 + 1)), wanted)}
        members |= {repr(v): v for v in pool(rng, field.type, size // 2)}
        return In(field, _distinct(members.values()), rng.random() < 0.4)
    return Compare(field, rng.choice(list(Op)), _unsigned(wanted))


def tree(
    rng: random.Random, fields: Sequence[Field], pools: Mapping[str, Sequence[Value]], depth: int
) -> Any:
    """A predicate of leaves, AND and OR."""
    if depth and rng.random() < 0.6:
        parts = [tree(rng, fields, pools, depth - 1) for _ in range(rng.randrange(2, 4))]
        return rng.choice((all_of, any_of))(*parts)
    field = rng.choice(fields)
    return leaf(rng, field, pools[field.name])


def _distinct(values: Any) -> tuple[Value, ...]:
    """As binding leaves them: one zero, one NaN."""
    found: dict[Any, Value] = {}
    for each in values:
        found.setdefault("nan" if each != each else each, _unsigned(each))
    return tuple(found.values())


def _unsigned(value: Value) -> Value:
    return 0.0 if isinstance(value, float) and value == 0 else value


def _like(rng: random.Random, field: Field, text: str) -> Predicate:
    cut = text[: rng.randrange(len(text) + 1)]
    negated = rng.random() < 0.4
    if rng.random() < 0.5:
        return begins_with(field, cut, negated=negated)
    escaped = "".join("\\" + letter if letter in "%_\\" else letter for letter in cut)
    rest = text[len(cut) + 1 :]
    tail = "".join("\\" + letter if letter in "%_\\" else letter for letter in rest)
    return like(field, escaped + rng.choice(("_" + tail, "%" + tail, "%a%", "_", "")), negated=negated)


def is_leaf(predicate: Predicate) -> bool:
    return isinstance(predicate, Leaf)
