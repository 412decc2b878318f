"""Which state is used: the best one of this table that can be read. One out of reach is not absent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.model import FormatError, MissingFileError, Place, StorageError
from rookery.sidecar import State, Store
from rookery.sidecar.usable import from_best_cached_state, from_best_state
from tests.collect.plain import PlainTable


@pytest.fixture
def table(tmp_path: Path) -> PlainTable:
    """A table with a state for each of its three snapshots."""
    made = PlainTable(tmp_path, pa.schema([("k", pa.int64())]))
    for start in range(0, 30, 10):
        made.append(pa.table({"k": list(range(start, start + 10))}))
        made.analyse()
    return made


def snapshot_ids(table: PlainTable) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.table.refresh().snapshots()]


def state_of(table: PlainTable, snapshot_id: int) -> Path:
    (name,) = [name for _, of, name in table.store.states() if of == snapshot_id]
    return Path(table.store.path(name))


def used(
    table: PlainTable, make: Callable[[State], int] = lambda state: state.header.snapshot_id
) -> int | None:
    return from_best_state(table.load(), table.store, table.snapshot(), make)


def used_cached(
    table: PlainTable,
    notes: list[str],
    make: Callable[[State], int] = lambda state: state.header.snapshot_id,
) -> int | None:
    return from_best_cached_state(table.load(), table.store, table.snapshot(), make, notes)


def test_the_newest_ancestor_is_best(table: PlainTable) -> None:
    first, second, third = snapshot_ids(table)
    assert (used(table), used_cached(table, [])) == (third, third)
    table.table.manage_snapshots().set_current_snapshot(snapshot_id=second).commit()
    assert (used(table), used_cached(table, [])) == (second, second)
    state_of(table, second).unlink()
    table.store.cache.clear()
    assert (used(table), used_cached(table, [])) == (first, first)


def test_a_state_of_no_ancestor_is_better_than_none(table: PlainTable) -> None:
    first, second, third = snapshot_ids(table)
    table.table.manage_snapshots().set_current_snapshot(snapshot_id=first).commit()
    for gone in (first, second):
        state_of(table, gone).unlink()
    assert (used(table), used_cached(table, [])) == (third, third)


def test_no_state(tmp_path: Path) -> None:
    table = PlainTable(tmp_path, pa.schema([("k", pa.int64())]))
    notes: list[str] = []
    assert from_best_state(table.load(), table.store, None, lambda state: state) is None
    table.append(pa.table({"k": [1]}))
    assert (used(table), used_cached(table, notes), notes) == (None, None, [])


@pytest.mark.parametrize("change", ["cut", "empty", "flip"])
def test_a_damaged_state_is_passed_over(table: PlainTable, change: str) -> None:
    _, second, third = snapshot_ids(table)
    path, notes = state_of(table, third), list[str]()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "flip": data}[change])
    assert used(table) == second
    assert used_cached(table, notes) == second
    assert [note.split(":")[0] for note in notes] == ["a state is skipped"]


@pytest.mark.parametrize(
    "error", [FormatError(Place("segment"), "a segment", "none"), MissingFileError("gone")]
)
def test_a_state_with_a_damaged_segment_is_passed_over(table: PlainTable, error: Exception) -> None:
    _, second, third = snapshot_ids(table)

    def make(state: State) -> int:
        if state.header.snapshot_id == third:
            raise error
        return state.header.snapshot_id

    notes: list[str] = []
    assert (used(table, make), used_cached(table, notes, make)) == (second, second)
    assert len(notes) == 1


def test_out_of_reach_is_an_error_where_the_state_is_needed(table: PlainTable) -> None:
    def make(state: State) -> int:
        raise StorageError("access denied")

    notes: list[str] = []
    with pytest.raises(StorageError, match="access denied"):
        used(table, make)
    assert used_cached(table, notes, make) is None
    assert len(notes) == 3  # the states of three snapshots were tried


def test_a_folder_that_cannot_be_listed(table: PlainTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def listing(_: Store) -> dict[str, int]:
        raise StorageError("access denied")

    monkeypatch.setattr(Store, "listing", listing)
    notes: list[str] = []
    with pytest.raises(StorageError):
        used(table)
    assert (used_cached(table, notes), notes) == (None, ["indexes are not used: access denied"])


def test_a_programming_error_is_never_hidden(table: PlainTable) -> None:
    def make(state: State) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        used(table, make)
    with pytest.raises(ZeroDivisionError):
        used_cached(table, [], make)


def test_the_state_of_an_earlier_table_of_that_name_is_not_used(table: PlainTable) -> None:
    _, second, third = snapshot_ids(table)
    state = table.store.read_state(state_of(table, third).name)
    state_of(table, third).unlink()
    table.store.write_state(replace(state, header=replace(state.header, table_uuid="another")))
    assert used(table) == second
    assert used_cached(table, []) == second


def test_a_cached_state_is_not_read_again(table: PlainTable) -> None:
    third = snapshot_ids(table)[-1]
    assert used_cached(table, []) == third
    for path in Path(table.store.location).glob("*"):
        os.truncate(path, 0)
    assert used_cached(table, []) == third
    assert used(table) is None


def test_states_that_have_gone_since_they_were_listed(table: PlainTable) -> None:
    """As another process removes them: the next call lists the folder again."""
    first, second, third = snapshot_ids(table)
    assert used_cached(table, []) == third
    paths = [state_of(table, gone) for gone in (second, third)]
    for path in paths:
        path.unlink()
    assert used_cached(table, []) == third  # from the cache
    table.store.cache.drop(("state", table.store.path(paths[1].name)))
    notes: list[str] = []
    assert used_cached(table, notes) == first
    assert len(notes) == 2
    notes.clear()
    assert (used_cached(table, notes), notes) == (first, [])
