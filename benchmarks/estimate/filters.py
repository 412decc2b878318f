"""Filters on a table, made at random from values that occur in it: the same for every estimator."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

_SIZES = (1, 1, 2, 2, 3)  # conditions of a filter
_MOST_LISTED = 5  # values of an IN
_OR = 0.1  # of the filters
_PREFIXES = (3, 5, 8)


@dataclass(frozen=True)
class Filtered:
    """A table that is filtered: the name, rows of it, and the columns that filters use."""

    name: str
    rows: pa.Table
    columns: tuple[str, ...]

    def values(self, number: int) -> dict[str, Any]:
        """The values of a row."""
        return {name: self.rows[name][number].as_py() for name in self.columns}


def filters(table: Filtered, rng: random.Random, count: int) -> list[str]:
    """Return predicates in SQL that Rookery, Spark and DuckDB understand; none is there twice."""
    made: dict[str, None] = {}
    for _ in range(100 * count):
        made[_filter(table, rng)] = None
        if len(made) == count:
            return list(made)
    raise ValueError(f"{table.name} has too few values for {count} different filters")


def pairs(table: Filtered, rng: random.Random, columns: Sequence[str], count: int) -> list[str]:
    """Return equalities on several columns at once, with the values of one row."""
    made: dict[str, None] = {}
    for _ in range(count * 100):
        row = table.values(rng.randrange(table.rows.num_rows))
        if len(made) < count and all(row[name] is not None for name in columns):
            made[" AND ".join(f"{name} = {literal(row[name])}" for name in columns)] = None
    return list(made)


def _filter(table: Filtered, rng: random.Random) -> str:
    names = rng.sample(table.columns, min(rng.choice(_SIZES), len(table.columns)))
    row, other = (table.values(rng.randrange(table.rows.num_rows)) for _ in range(2))
    conditions = [_condition(rng, table, name, row[name], other[name]) for name in names]
    return (" OR " if rng.random() < _OR else " AND ").join(conditions)


def _condition(rng: random.Random, table: Filtered, name: str, value: Any, other: Any) -> str:
    if value is None or other is None:
        return f"{name} IS {rng.choice(('NULL', 'NOT NULL'))}"
    kinds: list[Callable[[], str]] = [
        lambda: f"{name} = {literal(value)}",
        lambda: f"{name} IN ({', '.join(_listed(rng, table, name, value))})",
        lambda: f"{name} <> {literal(value)}",
    ]
    low, high = sorted((value, other))
    if isinstance(value, str):
        prefix = value[: rng.choice(_PREFIXES)]
        if not set(prefix) & set("%_\\'"):
            kinds.append(lambda: f"{name} LIKE '{prefix}%'")
    else:
        kinds += [
            lambda: f"{name} {rng.choice(('<', '<=', '>', '>='))} {literal(value)}",
            lambda: f"{name} BETWEEN {literal(low)} AND {literal(high)}",
        ] * 2
    return rng.choice(kinds)()


def _listed(rng: random.Random, table: Filtered, name: str, value: Any) -> list[str]:
    count = rng.randrange(1, _MOST_LISTED)
    others = [table.rows[name][rng.randrange(table.rows.num_rows)].as_py() for _ in range(count)]
    return list(dict.fromkeys(literal(each) for each in (value, *others) if each is not None))


def literal(value: Any) -> str:
    """Return a value as SQL."""
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, Decimal | int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    return "'" + str(value).replace("'", "''") + "'"
