"""Declaring and dropping indexes: no data is read, and nothing that is known is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.indexes.declare import declare, declared_on, indexed_names, newest_state, undeclare
from rookery.model import UsageError
from rookery.sidecar import Index, Store, store_of
from tests.collect.by_rows import analyse_by_rows
from tests.tables.memory_format import MemoryTable, MemoryWriter

BLOOM = Index("bloom", 1, "long", 0.001)
BITMAP = Index("bitmap", 2, "string")


@pytest.fixture
def writer(tmp_path: Path) -> MemoryWriter:
    made = MemoryWriter(tmp_path, {"Id": "long", "word": "string", "WORD": "string"})
    made.append([{"Id": n, "word": "w", "WORD": "x"} for n in range(5)])
    return made


@pytest.fixture
def table(writer: MemoryWriter) -> MemoryTable:
    return writer.open()


@pytest.fixture
def store(table: MemoryTable) -> Store:
    return store_of(table)


def test_before_any_analysis(table: MemoryTable, store: Store) -> None:
    declare(table, store, "bloom", "Id")
    declare(table, store, "bitmap", "word")
    assert declared_on(table, store).indexes == (BLOOM, BITMAP)
    state = newest_state(table, store)
    assert state is not None
    assert (state.files.num_rows, state.header.segments, state.header.snapshot_id) == (0, (), 1)


def test_on_a_table_without_snapshots(tmp_path: Path) -> None:
    table = MemoryWriter(tmp_path, {"Id": "long"}).open()
    declare(table, store_of(table), "bloom", "Id")
    assert declared_on(table, store_of(table)).indexes == (BLOOM,)


def test_what_was_collected_stays(writer: MemoryWriter, table: MemoryTable, store: Store) -> None:
    before = analyse_by_rows(writer, store)
    declare(table, store, "bloom", "Id")
    undeclare(table, store, "bloom", "Id")
    declare(table, store, "bitmap", "word")
    after = newest_state(table, store)
    assert after is not None
    assert (after.thetas, after.header.segments) == (before.thetas, before.header.segments)
    assert after.files.equals(before.files)
    assert after.header.indexes == (BITMAP,)


def test_declared_again_with_another_rate(table: MemoryTable, store: Store) -> None:
    declare(table, store, "bloom", "Id")
    declare(table, store, "bloom", "Id", 0.25)
    assert declared_on(table, store).indexes == (Index("bloom", 1, "long", 0.25),)


def test_names_in_another_case(table: MemoryTable, store: Store) -> None:
    declare(table, store, "bloom", "ID")
    undeclare(table, store, "bloom", "iD")
    assert declared_on(table, store).indexes == ()
    declare(table, store, "bitmap", "word")
    declare(table, store, "bitmap", "WORD")
    with pytest.raises(UsageError, match="has no bitmap index on 'Word'"):  # which of the two?
        undeclare(table, store, "bitmap", "Word")
    undeclare(table, store, "bitmap", "WORD")
    assert declared_on(table, store).indexes == (BITMAP,)


@pytest.mark.parametrize(
    ("kind", "column", "fpp", "message"),
    [
        ("tree", "Id", None, "there is no index 'tree'"),
        ("bloom", "nothing", None, "there is no column 'nothing'"),
        ("bloom", "Word", None, "there are several columns 'Word'"),
        ("bloom", "Id", 2.0, "false-positive rate of 2 is not possible"),
        ("bitmap", "word", 0.1, "false-positive rate of 0.1 is not possible"),
    ],
)
def test_refused(
    table: MemoryTable, store: Store, kind: str, column: str, fpp: float | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        declare(table, store, kind, column, fpp)
    assert declared_on(table, store).indexes == ()
    assert newest_state(table, store) is None


@pytest.mark.parametrize(("kind", "column"), [("bloom", "word"), ("bitmap", "Id"), ("tree", "Id")])
def test_what_is_not_declared_cannot_be_dropped(
    table: MemoryTable, store: Store, kind: str, column: str
) -> None:
    declare(table, store, "bloom", "Id")
    with pytest.raises(UsageError, match=f"has no {kind} index on '{column}'"):
        undeclare(table, store, kind, column)
    assert declared_on(table, store).indexes == (BLOOM,)


def test_a_dropped_column_is_shown_by_its_number(table: MemoryTable) -> None:
    names = indexed_names(table, [BLOOM, Index("bloom", 77, "long", 0.1)])
    assert (names[1], names[77]) == ("Id", "field 77, which was dropped")
