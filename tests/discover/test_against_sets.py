"""Random small tables, analysed as they would be, against the truth by sets."""

from __future__ import annotations

import tempfile
from collections import Counter
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rookery.api.discover import DiscoverReport
from rookery.discover.column import comparable_type
from tests.discover.plain_lake import add_table, analyse
from tests.lakehouse import sqlite_lake

TYPES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "double": pa.float64(),
    "decimal(9, 2)": pa.decimal128(9, 2),
    "decimal(18, 2)": pa.decimal128(18, 2),
}
Columns: TypeAlias = dict[str, tuple[str, list[Any]]]  # by name: the type, and a value for each row
Name: TypeAlias = tuple[str, tuple[str, ...]]


def values_of(kind: str, most: int) -> st.SearchStrategy[Any]:
    numbers = st.integers(0, most)
    if kind == "string":
        return numbers.map(lambda number: f"v{number}" if number else "")  # sketches leave out the empty text
    if kind == "double":
        return numbers.map(lambda number: float(number) if number else -0.0) | st.just(0.0)
    return numbers.map(lambda number: Decimal(number) / 4) if kind.startswith("decimal") else numbers


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Columns]:
    made: dict[str, Columns] = {}
    for table in ("a", "b", "c"):
        rows = draw(st.integers(1, 7))
        columns: Columns = {}
        for number in range(draw(st.integers(2, 3))):
            kind = draw(st.sampled_from([*TYPES, "long", "string"]))
            values = values_of(kind, draw(st.sampled_from([2, 6])))
            unique = draw(st.booleans()) and kind != "double"
            listed = st.lists(values if unique else values | st.none(), min_size=rows, max_size=rows)
            columns[f"c{number}"] = (kind, draw(listed))
        made[table] = columns
    return made


class Truth:
    """What is true of the rows: each column, and the first two of each table together."""

    def __init__(self, made: dict[str, Columns]) -> None:
        self.types: dict[Name, tuple[str, ...]] = {}
        self.rows: dict[Name, list[tuple[Any, ...]]] = {}
        self.uncounted: set[Name] = set()  # column sets with nulls: how many rows have none is not known
        for table, columns in made.items():
            for names in [*((name,) for name in columns), ("c0", "c1")]:
                self.types[table, names] = tuple(columns[name][0] for name in names)
                rows = zip(*(columns[name][1] for name in names), strict=True)
                self.rows[table, names] = [row for row in rows if None not in row]
                if len(names) > 1 and any(None in columns[name][1] for name in names):
                    self.uncounted.add((table, names))

    def unique(self) -> set[Name]:
        counts = {name: Counter(rows) for name, rows in self.rows.items()}
        return {name for name, each in counts.items() if each and max(each.values()) == 1}

    def foreign_keys(self) -> set[tuple[Name, Name]]:
        unique = self.unique()
        return {
            (child, parent)
            for child, parent in permutations(self.rows, 2)
            if child[0] != parent[0]
            and parent in unique
            and self._comparable(child) == self._comparable(parent)
            if self.rows[child] and set(self.rows[child]) <= set(self.rows[parent])
        }

    def _comparable(self, name: Name) -> tuple[str, ...]:
        return tuple(map(comparable_type, self.types[name]))

    def same(self, one: Name, other: Name) -> float:
        first, second = set(self.rows[one]), set(self.rows[other])
        return len(first & second) / len(first | second)

    def determines(self, table: str, one: str, other: str) -> bool:
        both = [row if one == "c0" else row[::-1] for row in self.rows[table, ("c0", "c1")]]
        return len(set(both)) == len({row[0] for row in both})

    def has_values(self, name: Name) -> bool:
        """Whether it has values that sketches hold."""
        return any(row != ("",) for row in self.rows[name])

    def is_told(self, name: Name) -> bool:
        """Whether it must be found if it is unique: it has values that are equal only if their bits are."""
        return self.has_values(name) and "double" not in self.types[name] and name not in self.uncounted


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(tables())
def test_all_that_is_true_is_found_and_nothing_else(made: dict[str, Columns]) -> None:
    truth = Truth(made)
    with tempfile.TemporaryDirectory() as folder:
        lake = sqlite_lake(Path(folder))
        for table, columns in made.items():
            rows = pa.table({name: pa.array(values, TYPES[kind]) for name, (kind, values) in columns.items()})
            files = [part for part in (rows.slice(0, 3), rows.slice(3)) if len(part)]
            add_table(lake, table, *files)
            analyse(lake, table, column_sets=[("c0", "c1")])
        report = lake.discover()
    assert report.not_compared == ()
    assert report.columns == len(truth.rows)
    assert_keys(report, truth)
    for pair in report.same_values or ():
        found = truth.same(_name(pair.table, pair.columns), _name(pair.other_table, pair.other_columns))
        has_empty = "string" in truth.types[_name(pair.table, pair.columns)]
        assert found == pair.jaccard or has_empty
    for each in report.dependencies or ():
        assert truth.determines(_name(each.table, each.columns)[0], each.columns[0], each.determines[0])


def assert_keys(report: DiscoverReport, truth: Truth) -> None:
    unique = {_name(key.table, key.columns) for key in report.unique or ()}
    assert unique <= truth.unique()
    assert {name for name in truth.unique() if truth.is_told(name)} <= unique
    keys = {
        (_name(key.table, key.columns), _name(key.parent_table, key.parent_columns))
        for key in report.foreign_keys or ()
    }
    assert keys <= truth.foreign_keys()
    told = {pair for pair in truth.foreign_keys() if truth.has_values(pair[0]) and truth.is_told(pair[1])}
    assert told <= keys
    assert all(key.confidence == 1 and key.certainty == "exact" for key in report.foreign_keys or ())


def _name(table: str, columns: tuple[str, ...]) -> Name:
    return table.removeprefix("db."), columns
