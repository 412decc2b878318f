"""Tables of types that Spark has not, written by PyIceberg and read without Spark."""

from __future__ import annotations

import operator
import random
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import time
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as ice
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, LongType, NestedField, TimeType, UUIDType

import rookery
from rookery.api.lake import Lake
from rookery.api.table import TableHandle
from rookery.model import Value
from tests.differential.asking import Held
from tests.differential.tally import Tally
from tests.differential.truth import difference
from tests.differential.world import Find
from tests.prune import typed

_KINDS = {"u": "uuid", "f": "fixed[4]", "t": "time"}
_TYPES = {"u": UUIDType(), "f": FixedType(4), "t": TimeType()}
_ARROW = {"u": pa.uuid(), "f": pa.binary(4), "t": pa.time64("us")}
_OPS: Sequence[tuple[Any, Callable[[Any, Any], bool]]] = (
    (ice.EqualTo, operator.eq),
    (ice.NotEqualTo, operator.ne),
    (ice.LessThan, operator.lt),
    (ice.LessThanOrEqual, operator.le),
    (ice.GreaterThan, operator.gt),
    (ice.GreaterThanOrEqual, operator.ge),
)
Row = tuple[int, Value | None, Value | None, Value | None]
Test = Callable[[Row], bool]


def run(lake: Lake, rng: random.Random, tally: Tally, predicates: int) -> None:
    """Make one table in a few commits, and compare what is read of it with what was written."""
    name = f"db.u{uuid.uuid4().hex[:10]}"
    pools = {column: typed.pool(rng, kind, rng.choice((3, 10))) for column, kind in _KINDS.items()}
    fields = [
        NestedField(place, column, kind, required=False)
        for place, (column, kind) in enumerate(({"id": LongType()} | _TYPES).items(), 1)
    ]
    catalog = lake.catalog
    metrics = rng.choice(("truncate(16)", "truncate(2)", "full", "counts", "none"))
    properties = {"write.metadata.metrics.default": metrics}
    table = catalog.create_table(name, schema=Schema(*fields), properties=properties)
    try:
        rows: list[Row] = []
        for _ in range(rng.choice((1, 3, 6))):
            fresh = [_row(rng, pools, len(rows) + number) for number in range(rng.choice((1, 5, 20)))]
            table.append(_arrow(fresh))
            rows += fresh
        tally.tables += 1
        handle = Held.of(rookery.table(name, lake))
        for _ in range(predicates):
            expression, test = _predicate(rng, pools)
            _compare(handle, expression, [row for row in rows if test(row)])
            tally.expressions += 1
    finally:
        catalog.drop_table(name)


def _row(rng: random.Random, pools: dict[str, list[Value]], number: int) -> Row:
    some = {column: rng.sample(values, min(2, len(values))) for column, values in pools.items()}
    u, f, t = (None if rng.random() < 0.15 else rng.choice(some[column]) for column in _KINDS)
    return number, u, f, t


def _arrow(rows: Sequence[Row]) -> pa.Table:
    arrays = [pa.array([row[0] for row in rows], pa.int64())]
    for place, column in enumerate(_KINDS, 1):
        values = [None if row[place] is None else native(column, row[place]) for row in rows]
        if column == "u":
            plain = pa.array([None if value is None else value.bytes for value in values], pa.binary(16))
            arrays.append(pa.ExtensionArray.from_storage(pa.uuid(), plain))
        else:
            arrays.append(pa.array(values, _ARROW[column]))
    return pa.table(arrays, names=["id", *_KINDS])


def native(column: str, value: Any) -> Any:
    """A value as PyIceberg and Arrow take it."""
    if column == "u":
        return uuid.UUID(bytes=value)
    if column == "t":
        seconds, micros = divmod(value, 1_000_000)
        return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)
    return value


def _predicate(rng: random.Random, pools: dict[str, list[Value]]) -> tuple[ice.BooleanExpression, Test]:
    if rng.random() < 0.3:
        (one, first), (two, second) = _leaf(rng, pools), _leaf(rng, pools)
        if rng.random() < 0.5:
            return ice.And(one, two), lambda row: first(row) and second(row)
        return ice.Or(one, two), lambda row: first(row) or second(row)
    return _leaf(rng, pools)


def _leaf(rng: random.Random, pools: dict[str, list[Value]]) -> tuple[ice.BooleanExpression, Test]:
    column = rng.choice(list(_KINDS))
    place = list(_KINDS).index(column) + 1
    choice = rng.random()
    made: Any
    if choice < 0.15:
        made = ice.IsNull(column)
        return made, lambda row: row[place] is None
    if choice < 0.4:
        values = [_value(rng, column, pools) for _ in range(rng.choice((2, 4)))]
        made = ice.In(column, [native(column, value) for value in values])
        return made, lambda row: row[place] in values
    form, compared = rng.choice(_OPS)
    value = _value(rng, column, pools)
    made = form(column, native(column, value))
    return made, lambda row: row[place] is not None and compared(row[place], value)


def _value(rng: random.Random, column: str, pools: dict[str, list[Value]]) -> Value:
    return rng.choice(pools[column]) if rng.random() < 0.7 else typed.value(rng, _KINDS[column])


def _compare(handle: TableHandle, expression: ice.BooleanExpression, expected: Sequence[Row]) -> None:
    found = Counter(handle.read(expression, columns=["id"]).column(0).to_pylist())
    if differs := difference(Counter(row[0] for row in expected), found):
        raise Find(f"read {expression}: {differs}")
    counted = handle.count(expression)
    if counted != len(expected):
        raise Find(f"count {expression}: {counted}, and {len(expected)} were written")
