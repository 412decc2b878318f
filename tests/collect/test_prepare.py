"""Which state is built on, and what is missing from it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rookery.collect.choose import Choice
from rookery.collect.declared_statistics import change_by
from rookery.collect.distribution_request import DistributionRequest
from rookery.collect.prepare import AnalyzePlan, differs, prepare
from rookery.model import StorageError
from rookery.sidecar import Store, store_of
from rookery.sketch import union
from tests.collect.by_rows import analyse_by_rows, prepared, sketch_of
from tests.collect.plain import PlainTable
from tests.tables.memory_format import MemoryWriter

NOTHING = DistributionRequest()


@pytest.fixture
def writer(tmp_path: Path) -> MemoryWriter:
    """Three files: 0 to 9, 10 to 19, 20 to 29."""
    made = MemoryWriter(tmp_path, {"id": "long", "word": "string"})
    for start in (0, 10, 20):
        made.append(rows(start))
    return made


@pytest.fixture
def store(writer: MemoryWriter) -> Store:
    return store_of(writer.open())


def rows(start: int) -> list[dict[str, object]]:
    return [{"id": start + n, "word": f"w{n % 3}"} for n in range(10)]


def read_again(work: AnalyzePlan) -> list[tuple[int, list[str]]]:
    """The files of each group, and the columns that are read of them."""
    return [(group.files.num_rows, [field.name for field in group.fields]) for group in work.groups]


def states(store: Store) -> list[Path]:
    return [Path(store.path(name)) for name in store.latest_first()]


def test_without_a_state_all_is_read(writer: MemoryWriter, store: Store) -> None:
    work = prepared(writer.open(), store)
    assert (work.state, work.base, read_again(work)) == (None, {}, [(3, ["id", "word"])])
    assert differs(work, NOTHING)


def test_on_the_state_of_the_snapshot_nothing_is_read(writer: MemoryWriter, store: Store) -> None:
    found = analyse_by_rows(writer, store)
    work = prepared(writer.open(), store)
    assert work.state is not None
    assert (read_again(work), work.live.removed, work.base) == ([], 0, found.thetas)
    assert not differs(work, NOTHING)


def test_on_the_state_of_an_ancestor_new_files_are_read(writer: MemoryWriter, store: Store) -> None:
    found = analyse_by_rows(writer, store)
    writer.append(rows(30))
    writer.append(rows(40))
    work = prepared(writer.open(), store)
    assert (read_again(work), work.base) == ([(2, ["id", "word"])], found.thetas)
    assert differs(work, NOTHING)


def test_columns_that_the_state_lacks_are_read_of_all_files(writer: MemoryWriter, store: Store) -> None:
    analyse_by_rows(writer, store, "id")
    writer.append(rows(30))
    assert sorted(read_again(prepared(writer.open(), store))) == [(1, ["id", "word"]), (3, ["word"])]
    writer.add_column("young", "long")
    assert sorted(read_again(prepared(writer.open(), store, "young", "id"))) == [(1, ["id", "young"])]


def test_removed_files_are_taken_out_of_the_sketches(writer: MemoryWriter, store: Store) -> None:
    analyse_by_rows(writer, store)
    writer.remove_file_of(15)
    table = writer.open()
    work = prepared(table, store)
    assert (read_again(work), work.live.removed) == ([], 1)
    paths = work.live.decoded["path"].to_pylist()
    assert len(paths) == 2
    for field in table.fields():
        assert work.base[field.id] == union(sketch_of(writer, path, field) for path in paths)
    assert differs(work, NOTHING)


def test_files_whose_deletes_have_changed_are_read_again(writer: MemoryWriter, store: Store) -> None:
    analyse_by_rows(writer, store)
    writer.delete_rows({3})
    work = prepared(writer.open(), store)
    assert (read_again(work), work.live.removed) == ([(1, ["id", "word"])], 1)
    assert [bool(text) for text in work.groups[0].files["deletes"].to_pylist()] == [True]
    analyse_by_rows(writer, store)
    writer.delete_rows({4, 12})
    assert read_again(prepared(writer.open(), store)) == [(2, ["id", "word"])]
    writer.restore_rows()
    assert read_again(prepared(writer.open(), store)) == [(1, ["id", "word"])]  # the other two are known


@pytest.mark.parametrize("damage", ["state", "segment"])
def test_what_is_damaged_is_not_built_on(writer: MemoryWriter, store: Store, damage: str) -> None:
    older = analyse_by_rows(writer, store)
    writer.append(rows(30))
    newer = analyse_by_rows(writer, store)
    path = states(store)[0] if damage == "state" else Path(store.path(newer.header.segments[-1].name))
    path.write_bytes(path.read_bytes()[:-7])
    work = prepared(writer.open(), store)
    assert work.state is not None
    assert (work.state.header.snapshot_id, read_again(work)) == (
        older.header.snapshot_id,
        [(1, ["id", "word"])],
    )
    for each in states(store):
        each.write_bytes(b"")
    work = prepared(writer.open(), store)
    assert (work.state, read_again(work)) == (None, [(4, ["id", "word"])])


def test_a_store_that_does_not_answer_is_an_error(
    writer: MemoryWriter, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not taken for a lost state: all would be read again."""
    analyse_by_rows(writer, store)

    def fail(*_: object, **__: object) -> None:
        raise StorageError("no access")

    monkeypatch.setattr(Store, "read_state", fail)
    with pytest.raises(StorageError, match="no access"):
        prepared(writer.open(), store)


def test_a_state_of_another_table_is_not_built_on(writer: MemoryWriter, store: Store, tmp_path: Path) -> None:
    analyse_by_rows(writer, store)
    other = MemoryWriter(tmp_path, {"id": "long", "word": "string"})
    other.append(rows(0))
    assert store_of(other.open()).location == store.location
    work = prepared(other.open(), store)
    assert (work.state, read_again(work)) == (None, [(1, ["id", "word"])])


def test_full_reads_all_and_forgets_no_declaration(writer: MemoryWriter, store: Store) -> None:
    table = writer.open()
    at = table.snapshot()
    assert at is not None
    change = change_by(table.fields(), Choice(column_sets=(("id", "word"),), top_k=("word",)))
    work = prepare(table, store, at, table.fields(), False, change)
    assert [field.name for field in work.fields] == ["id", "word", "id + word"]
    store.publish(work.declared.on(analyse_by_rows(writer, store)))
    work = prepared(writer.open(), store, full=True)
    assert (work.state, read_again(work)) == (None, [(3, ["id", "word", "id + word"])])
    assert (work.declared.column_sets, work.declared.columns("top-k")) == (((1, 2),), {2})
    work = prepared(writer.open(), store)
    assert read_again(work) == [(3, ["id + word"])]  # declared, and not collected yet
    drop = change_by(table.fields(), Choice(drop_column_sets=(("id", "word"),)))
    work = prepare(table, store, at, table.fields(), False, drop)
    assert (read_again(work), work.declarations_differ) == ([], True)
    assert differs(work, NOTHING)


def test_a_sketch_that_removals_have_thinned_out_is_collected_again(tmp_path: Path) -> None:
    writer = MemoryWriter(tmp_path, {"id": "long"})
    writer.append([{"id": n} for n in range(40_000)])
    writer.append([{"id": n} for n in range(50_000, 51_000)])
    store = store_of(writer.open())
    analyse_by_rows(writer, store)
    assert read_again(prepared(writer.open(), store)) == []
    writer.remove_file_of(5)
    work = prepared(writer.open(), store)
    assert (read_again(work), work.base) == ([(1, ["id"])], {})
    assert analyse_by_rows(writer, store).ndv(1) == 1_000


def test_a_rollback_reads_nothing_again(tmp_path: Path) -> None:
    table = PlainTable(tmp_path, pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    table.analyse()
    first = table.snapshot().id
    table.append(pa.table({"id": [3]}))
    newer = table.analyse()
    table.table.manage_snapshots().set_current_snapshot(snapshot_id=first).commit()
    work = table.prepared()
    assert work.state is not None
    assert (work.state.header.snapshot_id, read_again(work), work.live.removed) == (first, [], 0)
    table.append(pa.table({"id": [4]}))  # beside what was rolled back
    assert read_again(table.prepared()) == [(1, ["id"])]
    for name in table.store.latest_first():  # only the state of the other branch is left
        if f"-{newer.header.snapshot_id}-" not in name:
            Path(table.store.path(name)).unlink()
    work = table.prepared()
    assert (read_again(work), work.live.removed) == ([(1, ["id"])], 1)
    assert table.analyse().ndv(1) == 3
