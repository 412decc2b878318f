"""Predicates on columns of types that Spark has not, against the rows that were written."""

from __future__ import annotations

import operator
import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as ice

import rookery
from rookery.api.table import TableHandle
from rookery.api.where import Where, bind
from rookery.model import StorageError, Value
from rookery.model.type_names import base_type
from tests.differential import numbers
from tests.differential.asking import NOT_READ, Held, check_files, prune_all
from tests.differential.columns import Column
from tests.differential.tally import Tally
from tests.differential.truth import difference, short
from tests.differential.unread_tables import MAIN, UnreadTable, build
from tests.differential.world import Find, World
from tests.prune import typed

_OPS: Sequence[tuple[str, Any, Callable[[Any, Any], bool]]] = (
    ("=", ice.EqualTo, operator.eq),
    ("!=", ice.NotEqualTo, operator.ne),
    ("<", ice.LessThan, operator.lt),
    ("<=", ice.LessThanOrEqual, operator.le),
    (">", ice.GreaterThan, operator.gt),
    (">=", ice.GreaterThanOrEqual, operator.ge),
)
_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND
_FAR = {"'9999-12-31'": 2_932_896 * _DAY, "DATE '0001-01-01'": -719_162 * _DAY}
Truth = Callable[[Mapping[str, Any]], bool | None]  # of a row; None is SQL's unknown


@dataclass(frozen=True)
class Asked:
    """A predicate in SQL, PyIceberg's form of the same if it has one, and what it is of a row."""

    sql: str
    expression: ice.BooleanExpression | None
    truth: Truth


def run(world: World, rng: random.Random, tally: Tally, predicates: int) -> None:
    """Make one table, and compare what is read of it, and of its branches, with what was written."""
    table = UnreadTable(world, rng, f"lake.db.u{uuid.uuid4().hex[:10]}")
    try:
        try:
            build(table)
            tally.tables += 1
            _check_statistics(table, tally)
            handle = Held.of(rookery.table(table.name, world.lake))
            maker = Maker(rng, list(table.columns.values()))
            for _ in range(predicates):
                _compare(table, handle, maker.make(), tally)
        except Exception as error:
            told = str(error) if isinstance(error, Find) else short(error)
            raise Find("\n".join([*table.steps, told])) from error
    finally:
        table.drop()


def _check_statistics(table: UnreadTable, tally: Tally) -> None:
    report = rookery.table(table.name, table.world.lake).stats()
    for column in report.columns:
        if column.name in table.columns:
            tally.statistics += 1
            values = [row.values[column.name] for row in table.rows[MAIN]]
            numbers.compare(column, values, removed=table.removed)


def _compare(table: UnreadTable, handle: TableHandle, asked: Asked, tally: Tally) -> None:
    """Ask the table as it is, or one of its snapshots, be it of a branch."""
    snapshot = table.rng.choice([None, None, *table.versions])
    rows = table.rows[MAIN] if snapshot is None else table.versions[snapshot]
    matching = [row for row in rows if asked.truth(row.values)]
    by_expression = asked.expression is not None and table.rng.random() < 0.4
    where: Where = asked.expression if by_expression else asked.sql
    told = f"{table.name}, snapshot {snapshot}, where {where}"
    loaded, store = handle.load()
    current = loaded.snapshot(snapshot)
    pruning = prune_all(loaded, store, current, bind(where, loaded, current))
    check_files(pruning, {row.file for row in matching}, told, tally)
    try:
        found = handle.read(where, snapshot=snapshot)
    except StorageError as error:
        if not NOT_READ.search(str(error)):
            raise
        tally.refused["files that only Spark reads"] += 1
        return
    tally.predicates += not by_expression
    tally.expressions += by_expression
    tally.matching += 0 < len(matching) < len(rows)
    names = list(table.columns)
    expected = Counter((row.number, *(row.values[name] for name in names)) for row in matching)
    if differs := difference(expected, Counter(_rows(found))):
        raise Find(f"read {told}: {differs}")
    counted = handle.count(where, snapshot=snapshot)
    if counted != len(matching):
        raise Find(f"count {told}: {counted}, and {len(matching)} were written")


def _rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(_form(column).to_pylist() for column in found.columns), strict=True))


def _form(column: pa.ChunkedArray) -> pa.Array:
    """Values in the form that predicates have them."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ExtensionArray):
        return whole.storage
    is_time = pa.types.is_timestamp(whole.type) or pa.types.is_time(whole.type)
    return whole.cast(pa.int64()) if is_time else whole


class Maker:
    """Makes predicates over some columns."""

    def __init__(self, rng: random.Random, columns: Sequence[Column]) -> None:
        self._rng = rng
        self._columns = columns

    def make(self, depth: int = 2) -> Asked:
        rng = self._rng
        choice = rng.random()
        if depth == 0 or choice < 0.6:
            return rng.choice((self._compared, self._compared, self._listed, self._between, self._null))()
        one, two = self.make(depth - 1), self.make(depth - 1)
        if choice < 0.75:
            made = None if one.expression is None else ice.Not(one.expression)
            return Asked(f"NOT ({one.sql})", made, lambda row: _not(one.truth(row)))
        both = one.expression is not None and two.expression is not None
        if choice < 0.9:
            made = ice.And(one.expression, two.expression) if both else None  # type: ignore[arg-type]
            return Asked(
                f"({one.sql}) AND ({two.sql})", made, lambda row: _and(one.truth(row), two.truth(row))
            )
        made = ice.Or(one.expression, two.expression) if both else None  # type: ignore[arg-type]
        return Asked(
            f"({one.sql}) OR ({two.sql})",
            made,
            lambda row: _not(_and(_not(one.truth(row)), _not(two.truth(row)))),
        )

    def _value(self, column: Column) -> Any:
        return (
            self._rng.choice(column.values)
            if self._rng.random() < 0.7
            else typed.value(self._rng, column.kind)
        )

    def _compared(self) -> Asked:
        rng = self._rng
        column = rng.choice(self._columns)
        name, value = column.name, self._value(column)
        op, form, compared = rng.choice(_OPS)
        if column.kind.endswith("_ns") and rng.random() < 0.1:
            text, far = rng.choice(list(_FAR.items()))
            return Asked(f"{name} {op} {text}", None, lambda row: _of(row[name], compared, far))
        if column.kind.startswith("fixed") and rng.random() < 0.2:  # of another length
            cut = value[: rng.randrange(4)]
            return Asked(f"{name} {op} X'{cut.hex()}'", None, lambda row: _of(row[name], compared, cut))
        if rng.random() < 0.1:
            sql = f"{name} <=> {spelled(rng, column.kind, value)}"
            return Asked(sql, None, lambda row: row[name] == value)
        native = _native(rng, column.kind, value)
        made = None if native is None else form(name, native)
        sql = f"{name} {op} {spelled(rng, column.kind, value)}"
        return Asked(sql, made, lambda row: _of(row[name], compared, value))

    def _listed(self) -> Asked:
        rng = self._rng
        column, negated = rng.choice(self._columns), rng.random() < 0.3
        name = column.name
        values = [self._value(column) for _ in range(rng.choice((1, 2, 4, 12)))]
        form = rng.choice(_FORMS[base_type(column.kind)])
        sql = f"{name} {'NOT ' if negated else ''}IN ({', '.join(map(form, values))})"
        natives = [_native(rng, column.kind, value) for value in values]
        made = None if None in natives else (ice.NotIn if negated else ice.In)(name, natives)
        return Asked(
            sql, made, lambda row: None if row[name] is None else (row[name] in values) is not negated
        )

    def _between(self) -> Asked:
        rng = self._rng
        column, negated = rng.choice(self._columns), rng.random() < 0.3
        name = column.name
        low, high = sorted((self._value(column), self._value(column)))
        one, two = spelled(rng, column.kind, low), spelled(rng, column.kind, high)
        sql = f"{name} {'NOT ' if negated else ''}BETWEEN {one} AND {two}"
        return Asked(
            sql, None, lambda row: None if row[name] is None else (low <= row[name] <= high) is not negated
        )

    def _null(self) -> Asked:
        name, negated = self._rng.choice(self._columns).name, self._rng.random() < 0.5
        made = ice.NotNull(name) if negated else ice.IsNull(name)
        sql = f"{name} IS {'NOT ' if negated else ''}NULL"
        return Asked(sql, made, lambda row: (row[name] is None) is not negated)


def _of(value: Any, compared: Callable[[Any, Any], bool], other: Any) -> bool | None:
    return None if value is None else compared(value, other)


def _not(known: bool | None) -> bool | None:
    return None if known is None else not known


def _and(one: bool | None, two: bool | None) -> bool | None:
    if one is False or two is False:
        return False
    return None if one is None or two is None else True


# -- literals, as people write them


def _clock(nanos: int, digits: int) -> str:
    seconds, fraction = divmod(nanos, _SECOND)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:09}"[: 9 + digits]


def _moment(nanos: int, between: str = " ") -> str:
    days, rest = divmod(nanos, _DAY)
    day = (datetime(1970, 1, 1) + timedelta(days=days)).date().isoformat()
    return f"{day}{between}{_clock(rest, 9)}"


def _uuid(value: Any) -> str:
    return f"'{uuid.UUID(bytes=value)}'"


def _hex(value: Any) -> str:
    return f"X'{value.hex()}'"


_LOCAL = (
    lambda value: f"'{_moment(value)}'",
    lambda value: f"'{_moment(value, 'T')}'",
    lambda value: f"TIMESTAMP_NTZ '{_moment(value)}'",
    lambda value: f"TIMESTAMP '{_moment(value)}Z'",
    lambda value: f"CAST('{_moment(value)}' AS TIMESTAMP_NTZ)",
)
_INSTANT = (
    lambda value: f"'{_moment(value)}Z'",
    lambda value: f"'{_moment(value)}'",
    lambda value: f"TIMESTAMP '{_moment(value)}Z'",
    lambda value: f"TIMESTAMP '{_moment(value + 7200 * _SECOND)}+02:00'",
    lambda value: f"CAST('{_moment(value, 'T')}' AS TIMESTAMP)",
)
_TIME = (
    lambda value: f"'{_clock(value * 1000, 6)}'",
    lambda value: f"TIME '{_clock(value * 1000, 6)}'",
    lambda value: f"CAST('{_clock(value * 1000, 6)}' AS TIME)",
)
_FORMS: Mapping[str, Sequence[Callable[[Any], str]]] = {
    "uuid": (_uuid,),
    "fixed": (_hex, lambda value: f"CAST({_hex(value)} AS BINARY)"),
    "time": _TIME,
    "timestamp_ns": _LOCAL,
    "timestamptz_ns": _INSTANT,
}


def spelled(rng: random.Random, kind: str, value: Value) -> str:
    return rng.choice(_FORMS[base_type(kind)])(value)


def _native(rng: random.Random, kind: str, value: Any) -> Any:
    """The value as PyIceberg's expressions take it, which have microseconds but in text."""
    match base_type(kind):
        case "uuid":
            return uuid.UUID(bytes=value)
        case "time":
            seconds, micros = divmod(value, 1_000_000)
            return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)
        case "timestamp_ns" | "timestamptz_ns":
            zone = UTC if kind == "timestamptz_ns" else None
            if value % 1000:
                return _moment(value, "T") + ("Z" if zone else "")
            return datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=value // 1000)
    return value
