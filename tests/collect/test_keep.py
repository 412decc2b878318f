"""The new state: after any history, exactly the live files, and the distinct values of their rows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.model import Snapshot
from rookery.sidecar import State, Store, store_of
from rookery.sidecar.live import file_keys, live_files
from rookery.sketch import union
from tests.collect.by_rows import analyse_by_rows, prepared, sketch_of, vectors_of
from tests.tables.memory_format import MemoryTable, MemoryWriter

STEPS = st.lists(
    st.sampled_from(["append", "append", "remove", "delete", "restore", "column", "analyse", "analyse id"]),
    min_size=1,
    max_size=9,
)


def current(table: MemoryTable) -> Snapshot:
    found = table.snapshot()
    assert found is not None
    return found


@settings(max_examples=20)
@given(STEPS, st.data())
def test_a_state_describes_its_snapshot_exactly(steps: list[str], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = MemoryWriter(Path(folder), {"id": "long", "word": "string"})
        writer.append([{"id": 0, "word": "a"}])
        store = store_of(writer.open())
        ids = [0]
        for number, step in enumerate(steps, 1):
            columns = ("id",) if step == "analyse id" else ()
            if step == "append":
                writer.append([{"id": 10 * number + n, "word": f"w{n}", "c": n or None} for n in range(3)])
                ids.append(10 * number)
            elif step == "remove" and len(ids) > 1:
                writer.remove_file_of(ids.pop(data.draw(st.integers(0, len(ids) - 1))))
            elif step == "delete":
                writer.delete_rows({ids[-1] + data.draw(st.integers(1, 2))})
            elif step == "restore":
                writer.restore_rows()
            elif step == "column" and all(each.name != "c" for each in writer.open().fields()):
                writer.add_column("c", "long")
            elif step.startswith("analyse"):
                analyse_by_rows(writer, store, *columns)
        found = analyse_by_rows(writer, store)
        assert_exact(writer, store, found)
        assert prepared(writer.open(), store).groups == []


def assert_exact(writer: MemoryWriter, store: Store, found: State) -> None:
    table = writer.open()
    at = current(table)
    live = live_files(table, at, None, decode_all=True)
    header = found.header
    assert (header.snapshot_id, header.data_manifests) == (at.id, live.data_lists)
    assert set(found.files["key"].to_pylist()) == set(file_keys(live.decoded).to_pylist())
    # No segment without a live file is named.
    assert set(found.files["segment"].to_pylist()) == set(range(len(header.segments)))
    assert found.complete(table.fields()) == {field.id for field in table.fields()}
    vectors = vectors_of(table, live.deletes)
    paths = live.decoded["path"].to_pylist()
    for field in table.fields():
        exact = union(sketch_of(writer, path, field, vectors.get(path)) for path in paths)
        assert found.thetas[field.id] == exact, field.name
    read = store.read_state(store.ranked([at.id])[0])
    assert (read.header, read.thetas) == (header, found.thetas)
    assert read.files.equals(found.files)


def test_a_column_left_out_while_files_changed_is_not_registered(tmp_path: Path) -> None:
    """Its sketch would be of other files; its segments stay, so that only new files are read for it."""
    writer = MemoryWriter(tmp_path, {"id": "long", "word": "string"})
    writer.append([{"id": 1, "word": "a"}])
    store = store_of(writer.open())
    analyse_by_rows(writer, store)
    writer.append([{"id": 2, "word": "b"}])
    found = analyse_by_rows(writer, store, "id")
    assert (set(found.thetas), set(found.header.types), found.is_whole) == ({1}, {1, 2}, False)
    work = prepared(writer.open(), store)
    assert [[field.name for field in group.fields] for group in work.groups] == [["word"]]
    assert [group.files.num_rows for group in work.groups] == [1]
    found = analyse_by_rows(writer, store)
    assert (found.ndv(1), found.ndv(2), found.is_whole) == (2, 2, True)


def test_there_are_no_more_distinct_values_than_values(tmp_path: Path) -> None:
    """An estimate that is above the number of rows is lowered to it, and registered so."""
    writer = MemoryWriter(tmp_path, {"id": "long"})
    rng = np.random.default_rng(1)
    limited = []
    for _ in range(6):
        writer.append([{"id": int(value)} for value in rng.integers(0, 2**60, 9_000)])
        found = analyse_by_rows(writer, store_of(writer.open()))
        rows, estimate = sum(found.files["rows"].to_pylist()), found.thetas[1].estimate()
        assert found.ndv(1) == min(int(estimate.value), rows)
        assert bool(found.header.ndvs) == (int(estimate.value) > rows)
        limited.append(bool(found.header.ndvs))
    assert set(limited) == {True, False}
