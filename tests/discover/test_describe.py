"""What is compared, and what is left out with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rookery.api.discover import DiscoverKind, discovered
from rookery.api.lake import Lake
from rookery.discover import describe_table
from rookery.model import UsageError
from rookery.sidecar import store_of
from tests.collect.by_rows import analyse_by_rows
from tests.discover.plain_lake import add_table, analyse
from tests.lakehouse import sqlite_lake
from tests.tables.memory_format import MemoryWriter


def numbers(*values: int | None, **more: object) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), **more})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return sqlite_lake(tmp_path)


def reasons(lake: Lake) -> dict[tuple[str, str | None], str]:
    return {(each.table, each.column): each.reason for each in lake.discover().not_compared}


def test_never_analysed_and_empty(lake: Lake) -> None:
    add_table(lake, "never", numbers(1))
    lake.catalog.create_table("db.empty", numbers(1).schema)
    report = lake.discover()
    assert report.columns == 0
    assert (report.foreign_keys, report.unique, report.same_values) == ((), (), ())
    assert "never analyzed" in reasons(lake)["db.never", None]
    assert "no rows" in reasons(lake)["db.empty", None]


def test_stale(lake: Lake) -> None:
    """Files that came or went since: what the sketches say is not of the table."""
    add_table(lake, "t", numbers(1, 2))
    analyse(lake, "t")
    assert reasons(lake) == {}
    lake.load("db.t").append(numbers(2))
    assert reasons(lake)["db.t", None].startswith("stale: 1 file not described")
    analyse(lake, "t")
    assert lake.discover().unique == ()
    lake.load("db.t").overwrite(numbers(7))
    assert "2 described files removed" in reasons(lake)["db.t", None]


def test_a_column_that_is_not_described_in_all_files(lake: Lake) -> None:
    add_table(lake, "t", numbers(1, 2, x=[1, 2]))
    analyse(lake, "t", column_sets=[("id", "x")])
    lake.load("db.t").append(numbers(3, x=[3]))
    analyse(lake, "t", columns=("id",))
    report = lake.discover()
    assert {each.columns for each in report.unique or ()} >= {("id",)}
    assert "not analyzed in all files" in reasons(lake)["db.t", "x"]


def test_a_type_that_has_no_sketches(lake: Lake) -> None:
    rows = numbers(1, 2, x=pa.array([[1], [2]], pa.list_(pa.int64())))
    add_table(lake, "t", rows)
    analyse(lake, "t")
    report = lake.discover()
    assert {each.columns for each in report.unique or ()} == {("id",)}  # a list has any number of values


def test_int_and_long_are_not_compared(lake: Lake) -> None:
    """Their bytes differ, and so do the hashes."""
    for name, kind in (("ints", pa.int32()), ("longs", pa.int64()), ("more", pa.int64())):
        add_table(lake, name, pa.table({"id": pa.array([1, 2, 3], kind)}))
        analyse(lake, name)
    pairs = {(key.table, key.parent_table) for key in lake.discover().foreign_keys or ()}
    assert pairs == {("db.longs", "db.more"), ("db.more", "db.longs")}


def test_deleted_rows(tmp_path: Path) -> None:
    """Values are those of the rows left; how many rows that are is not known, so no key is sure."""
    writer = MemoryWriter(tmp_path, {"id": "long"})
    writer.append([{"id": n} for n in range(20)])
    store = store_of(writer.open())
    analyse_by_rows(writer, store)
    (before,) = describe_table(writer.open(), store).columns
    assert (before.deletes, before.rows_exact, before.distinct) == (False, True, 20)
    writer.delete_rows({3})
    assert describe_table(writer.open(), store).columns == ()  # the file is another one now
    analyse_by_rows(writer, store)
    facts = describe_table(writer.open(), store)
    (column,) = facts.columns
    assert (column.deletes, column.rows_exact, column.distinct, column.rows_high) == (True, False, 19, 20)
    assert discovered([facts], {DiscoverKind.UNIQUE}, 0.99).unique == ()
    (key,) = discovered([facts], {DiscoverKind.UNIQUE}, 0.9).unique or ()
    assert (key.deletes, key.confidence) == (True, 0.95)


def test_a_repeat_in_another_file_is_seen(lake: Lake) -> None:
    """One value in five is in both files, in a column too large for a whole sketch."""
    values = np.arange(12_000)
    add_table(lake, "t", numbers(*values), numbers(*(values + 11_900)))
    analyse(lake, "t")
    table, store = lake.open("db.t")
    (column,) = describe_table(table, store).columns
    assert column.is_sampled
    assert column.in_two_files
    assert lake.discover(min_confidence=0.01).unique == ()
    add_table(lake, "u", numbers(*values), numbers(*(values + 12_000)))
    analyse(lake, "u")
    assert [key.table for key in lake.discover().unique or ()] == ["db.u"]


def test_dependencies(lake: Lake) -> None:
    rows = pa.table(
        {
            "zip": ["1", "1", "2", "3", "3"],
            "city": ["a", "a", "a", "b", "b"],
            "street": ["x", "y", "x", "x", "x"],
            "floor": [1, 1, 1, None, 2],
        }
    )
    add_table(lake, "t", rows)
    analyse(
        lake,
        "t",
        column_sets=[("zip", "city"), ("zip", "street"), ("city", "floor"), ("zip", "city", "street")],
    )
    report = lake.discover(kinds=["dependency"])
    found = {(each.columns, each.determines) for each in report.dependencies or ()}
    # A city has one floor at most, but one of its rows none: that is not counted together.
    assert found == {(("zip",), ("city",)), (("zip", "street"), ("city",)), (("floor",), ("city",))}
    assert (report.unique, report.foreign_keys, report.same_values) == (None, None, None)


def test_references_within_a_table_and_by_names(lake: Lake) -> None:
    add_table(lake, "customers", numbers(*range(1, 31), parent=[1] * 30))
    add_table(lake, "orders", pa.table({"customer_id": [2, 2, 30], "line": [1, 2, 3]}))
    for name in ("customers", "orders"):
        analyse(lake, name)
    found = {(key.columns[0], key.parent_columns[0]): key for key in lake.discover().foreign_keys or ()}
    assert set(found) == {("customer_id", "id"), ("line", "id"), ("parent", "line")}
    assert [str(found[pair].likely) for pair in found] == ["high", "low", "low"]
    assert found["customer_id", "id"].coverage == pytest.approx(2 / 30)
    assert found["customer_id", "id"].range_coverage == pytest.approx(29 / 30)


def test_a_table_that_cannot_be_read_does_not_hide_the_others(lake: Lake) -> None:
    for name in ("good", "bad"):
        add_table(lake, name, numbers(1, 2))
        analyse(lake, name)
    table = lake.load("db.bad")
    Path(table.metadata_location.removeprefix("file://")).write_text("{")
    report = lake.discover()
    assert [key.table for key in report.unique or ()] == ["db.good"]
    assert [each.table for each in report.not_compared] == ["db.bad"]


def test_bad_requests(lake: Lake) -> None:
    with pytest.raises(UsageError, match="has no tables"):
        lake.discover()
    add_table(lake, "t", numbers(1))
    with pytest.raises(UsageError, match="'keys' cannot be discovered"):
        lake.discover(kinds=["keys"])
    with pytest.raises(UsageError, match="2 is not a confidence"):
        lake.discover(min_confidence=2)
