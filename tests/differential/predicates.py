"""Random predicates over a table's columns, as SQL text and, where they have the form, as PyIceberg's."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from pyiceberg import expressions as ice

from rookery.model import Value
from rookery.model.type_names import base_type
from tests.differential.columns import Column, Path, is_utf8, paths, quoted
from tests.prune import typed

_OPS: tuple[tuple[str, Any], ...] = (
    ("=", ice.EqualTo),
    ("!=", ice.NotEqualTo),
    ("<", ice.LessThan),
    ("<=", ice.LessThanOrEqual),
    (">", ice.GreaterThan),
    (">=", ice.GreaterThanOrEqual),
)
_NO_VALUES = ("abc", "", "1x", "2020-02-31", "0x10", "1e400", " 1 ", "+5", "tru")
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Asked:
    """A predicate, and PyIceberg's form of the same, if it has one."""

    sql: str
    expression: ice.BooleanExpression | None = None


class Predicates:
    """Makes predicates over some columns."""

    def __init__(
        self, rng: random.Random, columns: Sequence[Column], *, qualifier: str = "", lenient: bool = False
    ) -> None:
        self._rng = rng
        self._paths = list(paths(columns, qualifier=qualifier))
        dot = f"{qualifier}." if qualifier else ""
        self._groups = [dot + quoted(column.name) for column in columns if not column.is_leaf]
        self._lenient = lenient  # texts that are no numbers or times are null, and not an error

    def make(self, depth: int = 3) -> Asked:
        rng = self._rng
        choice = rng.random()
        if depth == 0 or choice < 0.55:
            return self._leaf()
        parts = [self.make(depth - 1) for _ in range(rng.choice((2, 2, 3)))]
        if choice < 0.7:
            inner = parts[0]
            return Asked(
                f"NOT ({inner.sql})", None if inner.expression is None else ice.Not(inner.expression)
            )
        word, joined = (" AND ", ice.And) if choice < 0.85 else (" OR ", ice.Or)
        forms = [part.expression for part in parts if part.expression is not None]
        return Asked(
            word.join(f"({part.sql})" for part in parts), joined(*forms) if len(forms) == len(parts) else None
        )

    def _leaf(self) -> Asked:
        rng = self._rng
        path = rng.choice(self._paths)
        name = rng.choice((path.sql, path.text)) if rng.random() < 0.9 else path.sql.upper()
        plain = ".".join(path.names)
        shapes = [self._compared, self._compared, self._compared, self._listed, self._between, self._null]
        if path.column.kind == "string":
            shapes += [self._like, self._like]
        if path.column.kind in ("float", "double"):
            shapes.append(self._nan)
        if path.column.kind == "boolean":
            shapes.append(self._truth)
        shape: Callable[[Path, str, str], Asked] = rng.choice(shapes)
        return shape(path, name, plain)

    def _value(self, column: Column) -> Value:
        rng = self._rng
        if column.values and rng.random() < 0.8:
            return rng.choice(column.values)
        return typed.value(rng, column.kind)

    def _compared(self, path: Path, name: str, plain: str) -> Asked:
        rng = self._rng
        value = self._value(path.column)
        op, form = rng.choice(_OPS) if rng.random() < 0.6 else _OPS[0]
        native = native_of(path.column.kind, value)
        text = spelled(rng, path.column.kind, value)
        if self._lenient and rng.random() < 0.1:
            return Asked(f"{name} {op} '{rng.choice(_NO_VALUES)}'")
        if rng.random() < 0.05:
            return Asked(f"{name} <=> {rng.choice((text, 'NULL'))}")
        if rng.random() < 0.1:
            return Asked(f"{text} {_FLIPPED[op]} {name}")
        if native is None or rng.random() < 0.5:
            return Asked(f"{name} {op} {text}")
        return Asked(f"{name} {op} {exactly(path.column.kind, value)}", form(plain, native))

    def _listed(self, path: Path, name: str, plain: str) -> Asked:
        rng = self._rng
        negated = rng.random() < 0.3
        values = [self._value(path.column) for _ in range(rng.choice((1, 2, 3, 12)))]
        natives = [native_of(path.column.kind, value) for value in values]
        word = "NOT IN" if negated else "IN"
        if all(native is not None for native in natives) and rng.random() < 0.3:
            listed = ", ".join(exactly(path.column.kind, value) for value in values)
            return Asked(f"{name} {word} ({listed})", (ice.NotIn if negated else ice.In)(plain, natives))
        # Members of several types are brought to one by Spark, and left to it.
        mixed = rng.random() < 0.25
        texts = [(spelled if mixed else _exactly)(rng, path.column.kind, value) for value in values]
        texts += ["NULL"] if rng.random() < 0.1 else []
        return Asked(f"{name} {word} ({', '.join(texts)})")

    def _between(self, path: Path, name: str, plain: str) -> Asked:
        ends = [self._value(path.column), self._value(path.column)]
        if self._rng.random() < 0.8:
            ends.sort(key=typed_order)
        low, high = (spelled(self._rng, path.column.kind, end) for end in ends)
        word = "NOT BETWEEN" if self._rng.random() < 0.3 else "BETWEEN"
        return Asked(f"{name} {word} {low} AND {high}")

    def _null(self, path: Path, name: str, plain: str) -> Asked:
        if self._groups and self._rng.random() < 0.1:
            return Asked(f"{self._rng.choice(self._groups)} IS NOT NULL")
        if self._rng.random() < 0.5:
            return Asked(f"{name} IS NULL", ice.IsNull(plain))
        return Asked(f"{name} IS NOT NULL", ice.NotNull(plain))

    def _nan(self, path: Path, name: str, plain: str) -> Asked:
        if self._rng.random() < 0.5:
            return Asked(f"isnan({name})", ice.IsNaN(plain))
        return Asked(f"NOT isnan({name})", ice.NotNaN(plain))

    def _truth(self, path: Path, name: str, plain: str) -> Asked:
        return Asked(self._rng.choice((name, f"NOT {name}", f"{name} IS TRUE", f"{name} IS NOT FALSE")))

    def _like(self, path: Path, name: str, plain: str) -> Asked:
        rng = self._rng
        text = str(self._value(path.column)).encode(errors="surrogateescape").decode(errors="replace")
        cut = text[: rng.randrange(len(text) + 1)]
        if rng.random() < 0.3 and cut:
            return Asked(f"startswith({name}, {quote(cut)})", ice.StartsWith(plain, cut))
        pattern = _escaped(cut) + rng.choice(("%", "%", "%", "_", "%" + _escaped(text[len(cut) + 1 :]), ""))
        word = "NOT LIKE" if rng.random() < 0.3 else "LIKE"
        return Asked(f"{name} {word} {quote(pattern)}")


def typed_order(value: Value) -> Any:
    return (value != value, value if value == value else 0.0)


def native_of(kind: str, value: Value) -> Any:
    """The value as PyIceberg's expressions take it; None if they do not."""
    base = base_type(kind)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if base == "date":
        return date(1970, 1, 1) + timedelta(days=int(value))
    if base in ("timestamp", "timestamptz"):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(value))
        return moment if base == "timestamptz" else moment.replace(tzinfo=None)
    if base == "decimal":
        return Decimal(_digits(kind, int(value)))
    if base == "uuid":
        return UUID(bytes=value)  # type: ignore[arg-type]
    return value if is_utf8(value) else None


def quote(text: str) -> str:
    if not is_utf8(text):
        return f"CAST(X'{text.encode(errors='surrogateescape').hex()}' AS STRING)"
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _escaped(text: str) -> str:
    return "".join("\\" + letter if letter in "\\%_" else letter for letter in text)


def _exactly(rng: random.Random, kind: str, value: Value) -> str:
    return exactly(kind, value)


def exactly(kind: str, value: Value) -> str:
    """A literal of the column's own type."""
    match base_type(kind):
        case "boolean":
            return str(value).upper()
        case "float" | "double":
            return f"CAST('{_number(float(value))}' AS {kind.upper()})"
        case "decimal":
            return f"CAST('{_digits(kind, int(value))}' AS {kind.upper()})"
        case "date":
            return f"DATE '{_day(int(value))}'"
        case "timestamp":
            return f"TIMESTAMP_NTZ '{_moment(int(value))}'"
        case "timestamptz":
            return f"TIMESTAMP '{_moment(int(value))}Z'"
        case "string":
            return quote(str(value))
        case "binary" | "fixed":
            assert isinstance(value, bytes)
            return f"X'{value.hex()}'"
        case "uuid":
            return f"'{UUID(bytes=value)}'"  # type: ignore[arg-type]
    return str(value)


def spelled(rng: random.Random, kind: str, value: Value) -> str:
    """A literal as people write it, of its type or of another."""
    if rng.random() < 0.3:
        return exactly(kind, value)
    match base_type(kind):
        case "int" | "long":
            forms = [
                f"{value}",
                f"'{value}'",
                f"'0{value}'" if int(value) >= 0 else f"' {value} '",
                f"{value}.0",
                f"{value}.5",
                f"CAST({value} AS BIGINT)",
                f"{value}BD",
            ]
            forms += [f"{value}D"] if abs(int(value)) < 2**60 else []
            return rng.choice([*forms, f"{value}"])
        case "float" | "double":
            number = _number(float(value))
            forms = [
                f"CAST('{number}' AS DOUBLE)",
                f"CAST('{number}' AS FLOAT)",
                f"'{number}'",
                f"double('{number}')",
            ]
            if math.isfinite(float(value)):
                forms += [
                    number + "D",
                    f"{float(value):.3g}D",
                    f"{round(float(value))}"[:18],
                    f"{float(value):.2f}"[:30],
                    rng.choice(("16777217", "9007199254740993", "0.1", "1e-1", "1.6777217E7")),
                ]
            return rng.choice(forms)
        case "decimal":
            digits = _digits(kind, int(value))
            forms = [digits, digits + "BD", digits + ("5" if "." in digits else ".5"), digits.split(".")[0]]
            return rng.choice([*forms, f"'{digits}'", f"{float(digits)!r}D"])
        case "date":
            day = _day(int(value))
            forms = [
                f"'{day}'",
                f"CAST('{day}' AS DATE)",
                f"TIMESTAMP '{day} 00:00:00'",
                f"TIMESTAMP_NTZ '{day} 12:00:00'",
            ]
            return rng.choice(forms)
        case "timestamp" | "timestamptz":
            moment = _moment(int(value))
            forms = [
                f"'{moment}'",
                f"TIMESTAMP '{moment}'",
                f"TIMESTAMP_NTZ '{moment}'",
                f"DATE '{moment[:10]}'",
            ]
            forms += [f"TIMESTAMP '{moment}+02:00'", f"CAST('{moment}' AS TIMESTAMP)", f"'{moment[:10]}'"]
            return rng.choice(forms)
        case "boolean":
            return rng.choice((f"'{value}'", str(value).lower()))
        case "uuid":
            text = str(UUID(bytes=value))  # type: ignore[arg-type]
            return rng.choice((f"'{text}'", f"'{text}'", f'"{text}"', f"'{text.upper()}'", f"'{text[:9]}'"))
        case "binary" | "fixed":
            assert isinstance(value, bytes)
            return (
                f"X'{value.hex()}'"
                if rng.random() < 0.7 or not value.isascii()
                else f"CAST({quote(value.decode())} AS BINARY)"
            )
    if not is_utf8(value):
        return exactly(kind, value)
    return rng.choice(_TEXTS)(rng, str(value) + rng.choice(("", "", "a", "~")))


def _adjacent(rng: random.Random, text: str) -> str:
    """One text in two literals, or with a quotation mark in between: settings tell."""
    cut = rng.randrange(len(text) + 1)
    return quote(text[:cut]) + rng.choice((" ", "")) + quote(text[cut:])


def _double_quoted(rng: random.Random, text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unescaped(rng: random.Random, text: str) -> str:
    """Backslashes as they are: what they mean, settings tell."""
    return "'" + text.replace("'", "").rstrip("\\") + "'"


_TEXTS: tuple[Callable[[random.Random, str], str], ...] = (
    *[lambda rng, text: quote(text)] * 5,
    _adjacent,
    _double_quoted,
    _unescaped,
)


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("-" if value < 0 else "") + "Infinity" if math.isinf(value) else repr(value)


def _digits(kind: str, unscaled: int) -> str:
    scale = int(kind.rstrip(")").split(",")[1])
    digits = f"{abs(unscaled):0{scale + 1}d}"
    sign = "-" if unscaled < 0 else ""
    return sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)


def _day(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def _moment(micros: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(microseconds=micros)).isoformat(" ", "microseconds")
