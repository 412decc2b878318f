"""The file set: every live file once, whichever state, segments and manifests it is made of."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.collect.analyze import analyze
from rookery.collect.choose import Choice
from rookery.model import Snapshot
from rookery.model.cache import clear_caches
from rookery.prune.fileset import FileSet, file_set
from rookery.sidecar import Index, Store, store_of
from rookery.sidecar.live import live_files
from rookery.tables import Table
from tests.collect.plain import NO_SPARK
from tests.prune.random_tables import RandomTable, random_table
from tests.tables.memory_format import MemoryWriter

COLUMNS = ("path", "rows", "size", "partition", "spec_id", "format")


def plain(table: Table, store: Store, snapshot: Snapshot) -> FileSet:
    """The files by manifests alone."""
    return FileSet(store, None, live_files(table, snapshot, None, decode_all=True))


def described(files: FileSet, table: Table) -> dict[str, Any]:
    """What is known of each file, by its path."""
    listed = files.files.select(COLUMNS).to_pylist()
    bounds = [files.bounds(field) for field in table.fields()]
    known = [
        [
            (each.lower[n].as_py(), each.upper[n].as_py(), each.values[n], each.nulls[n], each.nans[n])
            for each in bounds
        ]
        for n in range(len(files))
    ]
    manifests = [files.live.lists[place].path for place in files.lists]
    found = {row["path"]: (row, *rest) for row, *rest in zip(listed, known, manifests, strict=True)}
    assert len(found) == len(files), "a file is there twice"
    return found


def assert_same(table: Table, store: Store, snapshot: Snapshot) -> FileSet:
    found = file_set(table, store, snapshot)
    assert described(found, table) == described(plain(table, store, snapshot), table)
    return found


STEPS = st.lists(
    st.sampled_from(["append", "append", "analyse", "analyse one", "remove", "delete", "column"]), max_size=8
)


@settings(max_examples=15)
@given(STEPS, st.data())
def test_all_live_files_whatever_has_happened(steps: list[str], data: st.DataObject) -> None:
    """Of the current snapshot and of all before: the same files as manifests alone have."""
    with tempfile.TemporaryDirectory() as folder:
        writer = MemoryWriter(Path(folder), {"id": "long", "word": "string"})
        writer.append([{"id": 0, "word": "a"}])
        store = store_of(writer.open())
        first: list[int] = [0]  # an id in each live file
        deleted = False
        for number, step in enumerate(steps, 1):
            if step == "append":
                writer.append([{"id": 10 * number + n, "word": f"w{n}"} for n in range(3)])
                first.append(10 * number)
            elif step == "remove" and len(first) > 1:
                writer.remove_file_of(first.pop(data.draw(st.integers(0, len(first) - 1))))
            elif step == "delete":
                writer.delete_rows({first[-1] + 1})
                deleted = True
            elif step == "column":
                writer.add_column(f"more{number}", "long")
            elif step.startswith("analyse") and not deleted:  # files with deletes need an engine
                chosen = Choice(columns=("id",)) if step == "analyse one" else Choice()
                analyze(lambda: NO_SPARK, writer.open(), store, chosen)
        table = writer.open()
        for snapshot in table.snapshots.values():
            assert_same(table, store, snapshot)


@pytest.fixture
def table(tmp_path: Path) -> RandomTable:
    """Three manifests of a state in one segment, and a fourth that it does not know."""
    made = random_table(tmp_path, ("long", "string"), seed="files", commits=3)
    made.add_index("bloom", "c0")
    made.analyse()
    made.append_rows(made.random_rows(3), made.random_rows(2))
    return made


def test_only_new_manifests_are_decoded(table: RandomTable) -> None:
    files = assert_same(table.load(), table.store, table.snapshot())
    assert (files.live.known, len(files.live.lists), files.fresh) == (3, 4, 2)
    assert (files.live.decoded.num_rows, len(files)) == (2, len(table.rows))
    table.analyse()
    files = assert_same(table.load(), table.store, table.snapshot())
    assert (files.live.known, files.fresh, len(files.places)) == (4, 0, 2)


def test_an_index_covers_the_files_of_its_segments(table: RandomTable) -> None:
    files = table.view().files
    covered = files.covered(Index("bloom", 1, "long", 0.001))
    assert covered.tolist() == [True] * (len(files) - 2) + [False] * 2
    for other in (
        Index("bloom", 2, "long", 0.001),
        Index("bloom", 1, "int", 0.001),
        Index("bloom", 1, "long", 0.5),
    ):
        assert not files.covered(other).any()
    assert (
        not plain(table.load(), table.store, table.snapshot()).covered(Index("bloom", 1, "long", 0.001)).any()
    )


def test_a_file_in_two_segments_is_there_once(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("long", "string"), seed="twice", commits=2)
    table.analyse("c0")
    table.append_rows(table.random_rows(2))
    table.analyse("c1")
    files = assert_same(table.load(), table.store, table.snapshot())
    assert (files.fresh, len(files)) == (0, len(table.rows))
    positions = [number for place in files.places for number in place.numbers.tolist()]
    assert len(positions) == 2 * (len(files) - 1) + 1
    assert set(positions) == set(range(len(files)))
    for place in files.places:  # an ordinal leads to the same file
        paths = files.segment(place.segment).files["path"].take(place.ordinals).to_pylist()
        assert paths == files.files["path"].take(place.numbers).to_pylist()


@pytest.mark.parametrize("damage", ["gone", "cut", "other"])
def test_a_segment_that_is_damaged_costs_only_speed(table: RandomTable, damage: str) -> None:
    table.analyse()
    old, new = table.segment_paths()
    if damage == "gone":
        new.unlink()
    elif damage == "cut":
        new.write_bytes(new.read_bytes()[:-20])
    else:
        shutil.copy(old, new)
    clear_caches()
    files = assert_same(table.load(), table.store, table.snapshot())
    assert files.fresh > 0  # by the state before
    assert {note.partition(":")[0] for note in files.notes} == {"a state is skipped"}
    assert described(files, table.load()).keys() == table.rows.keys()
    for path in table.segment_paths():
        path.unlink()
    clear_caches()
    files = assert_same(table.load(), table.store, table.snapshot())
    assert files.fresh == len(files)  # by a state that only declares the index
    for path in Path(table.store.location).glob("state-*.puffin"):
        path.write_bytes(b"damaged")
    clear_caches()
    files = assert_same(table.load(), table.store, table.snapshot())
    assert (files.fresh, files.state) == (len(files), None)
    assert {note.partition(":")[0] for note in files.notes} == {"a state is skipped"}


def test_cached_and_read_again_are_the_same(table: RandomTable) -> None:
    loaded, at = table.load(), table.snapshot()
    first = file_set(loaded, table.store, at)
    known = described(first, loaded)
    assert file_set(loaded, table.store, at) is first
    assert first.opening_cost() > 0
    assert first.opening_cost() == 0
    clear_caches()
    again = file_set(loaded, table.store, at)
    again.expect_all_columns()
    assert again is not first
    assert described(again, loaded) == known
    assert 0 < again.nbytes < 1 << 20


def test_snapshots_before_and_after_the_state(table: RandomTable) -> None:
    """A state serves any snapshot: files that were not there yet are not shown, and none is missing."""
    table.analyse()
    loaded = table.load()
    counts = [len(assert_same(loaded, table.store, each)) for each in loaded.ancestors(table.snapshot())]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 4
    first = list(loaded.ancestors(table.snapshot()))[-1]
    table.table.manage_snapshots().set_current_snapshot(snapshot_id=first.id).commit()
    table.append_rows(table.random_rows(2))
    files = assert_same(table.load(), table.store, table.snapshot())
    assert files.fresh == 1


def test_manifests_that_were_written_again(tmp_path: Path) -> None:
    """Files that the state knows stand in manifests that it does not, among new ones."""
    table = random_table(tmp_path, ("long",), commits=0)
    for start in (0, 10, 20):
        table.append_rows(*([{"c0": start + n}] for n in range(3)))
    table.analyse()
    table.append_rows([{"c0": 30}], [{"c0": 31}])
    for value in (11, 30, 2):
        table.table.delete(f"c0 == {value}")
        table.append_rows([{"c0": 100 + value}])
        files = assert_same(table.load(), table.store, table.snapshot())
    assert (len(files), files.fresh) == (11, 4)
    assert len(set(files.lists.tolist())) == len(files.live.lists) == 7
    live, loaded = files.live, table.load()  # other writers list them in another order
    back = np.arange(len(live.keys))[::-1]
    turned = replace(
        live,
        decoded=live.decoded.take(back),
        keys=live.keys.take(back),
        decoded_lists=live.decoded_lists[back],
    )
    assert described(FileSet(table.store, files.state, turned), loaded) == described(files, loaded)
