"""Summaries against what the rows of random files say."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from rookery.collect.summary import ColumnSummary, TableSummary, first_of_each, summarize
from rookery.model import Certainty, Value
from rookery.sidecar import State, store_of
from tests.collect.by_rows import analyse_by_rows
from tests.prune import typed
from tests.prune.random_tables import RandomTable, Row, random_table
from tests.tables.memory_format import MemoryWriter
from tests.where.naive import ordered

ALWAYS_TIGHT = ("boolean", "int", "long", "decimal(9, 0)", "date", "time", "timestamp", "timestamptz")


@pytest.fixture
def table(tmp_path: Path) -> RandomTable:
    return random_table(tmp_path, seed="summary", commits=3)


def summary(table: RandomTable, state: State | None, wanted: Any = None) -> TableSummary:
    return summarize(table.load(), table.store, table.snapshot(), state, wanted)


def assert_exact(found: TableSummary, rows: list[Row], *, described: bool = True) -> None:
    assert found.rows == len(rows)
    for column in found.columns:
        values = [row[column.field.name] for row in rows]
        present = [value for value in values if value is not None]
        assert column.nulls == values.count(None), column
        assert column.size is not None
        if described:
            assert column.coverage == 1.0
            assert column.ndv is not None
            assert column.ndv.value == column.ndv.low == column.ndv.high == distinct(present), column
            assert column.ndv.kind is Certainty.EXACT
        _assert_extremes(column, [value for value in present if value == value])


def distinct(values: list[Value]) -> int:
    """How many values there are; sketches leave out what is empty."""
    return len({ordered(0.0 if value == 0 else value) for value in values if value not in ("", b"")})


def _assert_extremes(column: ColumnSummary, numbers: list[Value]) -> None:
    kind = column.field.type
    for found, choose, beyond in ((column.low, min, False), (column.high, max, True)):
        if found.reason is not None:
            assert kind not in ALWAYS_TIGHT, found.reason
        elif not numbers:
            assert found.value is None
        else:
            value = choose(numbers, key=lambda each: each.encode() if isinstance(each, str) else each)
            actual = _shown(kind, value)
            assert found.value == actual or not found.exact
            assert found.value >= actual if beyond else found.value <= actual
            assert found.exact or kind not in ALWAYS_TIGHT


def _shown(kind: str, value: Value) -> Any:
    return value if kind in ("string", "boolean") else typed.arrow(kind, [value])[0].as_py()


def test_all_of_it_is_exact(table: RandomTable) -> None:
    rows = [row for rows in table.rows.values() for row in rows]
    assert_exact(summary(table, None), rows, described=False)
    state = table.analyse()
    assert_exact(summary(table, state), rows)
    assert summary(table, state).files == len(table.rows)


def among(chosen: set[str], files: pa.Table) -> NDArray[np.bool_]:
    return np.array([path in chosen for path in files["path"].to_pylist()], bool)


def test_a_part_of_the_files(table: RandomTable) -> None:
    """Of any files, by those alone: also if the sketches of the table are of more."""
    state = table.analyse()
    for _ in range(5):
        chosen = set(table.rng.sample(sorted(table.rows), table.rng.randrange(len(table.rows) + 1)))
        assert_exact(
            summary(table, state, partial(among, chosen)),
            [row for path in chosen for row in table.rows[path]],
        )
    table.append_rows(table.random_rows(4), table.random_rows(3))
    chosen = {*table.rng.sample(sorted(table.rows), 2), list(table.rows)[-1]}
    rows = [row for path in chosen for row in table.rows[path]]
    assert_exact(summary(table, state, partial(among, chosen)), rows, described=False)


def test_files_in_two_segments_are_counted_once(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("long", "string"), seed="two segments", commits=2)
    table.analyse("c0")
    state = table.analyse("c1")
    assert len(state.header.segments) == 2
    assert_exact(summary(table, state), [row for rows in table.rows.values() for row in rows])
    only_first = np.array([True, False, True, False, True])
    assert first_of_each(pa.array(["a", "a", "b", "b", "c"])).tolist() == only_first.tolist()
    assert not len(first_of_each(pa.array([], pa.string())))


def test_files_that_are_not_analysed_yet(tmp_path: Path) -> None:
    """The number of distinct values is between that of the others, and that plus the rows of these."""
    table = random_table(tmp_path, ("long",), commits=0)
    table.append_rows([{"c0": n} for n in range(6)])
    state = table.analyse()
    table.append_rows([{"c0": n} for n in (5, 6, 7)], [{"c0": None}])
    (column,) = summary(table, state).columns
    assert column.ndv is not None
    assert (column.ndv.value, column.ndv.low, column.ndv.high) == (6, 6, 9)  # nine values that are not null
    assert (column.ndv.kind, column.coverage) == (Certainty.SKETCHED, 0.6)
    assert (column.low.value, column.high.value, column.nulls) == (0, 7, 1)


def test_nothing_is_known_and_nothing_is_left(tmp_path: Path) -> None:
    writer = MemoryWriter(tmp_path, {"id": "long"})
    writer.append([{"id": n} for n in range(5)])
    store, table = store_of(writer.open()), writer.open()
    found = summarize(table, store, table.snapshots[1], None)
    assert (found.columns[0].ndv, found.columns[0].coverage) == (None, 0.0)
    state = analyse_by_rows(writer, store)
    writer.append([{"id": 1}])
    writer.remove_file_of(4)
    table = writer.open()
    (column,) = summarize(table, store, table.snapshots[3], state).columns
    assert column.ndv is not None
    assert (column.ndv.kind, column.ndv.value, column.coverage) == (Certainty.STALE, 1, 0.0)


def test_deleted_rows(tmp_path: Path) -> None:
    writer = MemoryWriter(tmp_path, {"id": "long", "word": "string"})
    writer.append([{"id": n, "word": None if n % 2 else f"w{n}"} for n in range(6)])
    writer.append([{"id": 10, "word": "x"}])
    writer.delete_rows({5, 0})
    store, table = store_of(writer.open()), writer.open()
    state = analyse_by_rows(writer, store)
    found = summarize(table, store, table.snapshots[3], state)
    number, word = found.columns
    assert (found.rows, found.files_with_deletes) == (7, 1)
    assert number.ndv is not None
    assert (number.ndv.value, number.nulls) == (5, 0)
    assert ((number.low.value, number.low.exact), (number.high.value, number.high.exact)) == (
        (0, False),
        (10, True),
    )
    assert (word.nulls, word.unknown["nulls"]) == (None, "1 of 2 files with deleted rows")
