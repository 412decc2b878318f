"""Indexes in the collection, with no JVM: what is read, who speaks while others write, types that change."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from rookery.collect import part_files, plan, run
from rookery.collect.distributions import DistributionSketches
from rookery.collect.keep import keep
from rookery.collect.task import Partial
from rookery.indexes.bitmap import whole_index
from rookery.indexes.bloom import matrices
from rookery.model.cache import clear_caches
from rookery.sidecar import Index, State
from rookery.sketch.bitmap import BitmapIndex
from rookery.sketch.bloom_matrix import BloomMatrix
from tests.collect.plain import PlainTable

SCHEMA = pa.schema([("id", pa.int32()), ("word", pa.string())])
NO_ROWS = (None, DistributionSketches())


def file_rows(start: int, end: int) -> pa.Table:
    numbers = range(start, end)
    return pa.table(
        {"id": pa.array(numbers, pa.int32()), "word": [f"w{n % 5}" for n in numbers]}, schema=SCHEMA
    )


@pytest.fixture
def table(tmp_path: Path) -> PlainTable:
    clear_caches()
    made = PlainTable(tmp_path, SCHEMA)
    for start in range(0, 80, 20):
        made.append(file_rows(start, start + 20))
    return made


def declared(table: PlainTable) -> set[tuple[str, str]]:
    return {(view.kind, view.column) for view in table.indexes().indexes}


def covers_all(table: PlainTable) -> bool:
    return {view.built for view in table.indexes().indexes} == {"built"}


# -- one pass


def test_each_file_is_read_once_for_all(table: PlainTable) -> None:
    table.add_index("bloom", "id")
    table.add_index("bitmap", "word")
    (group,) = table.prepared().groups
    assert ([field.name for field in group.fields], len(group.indexes)) == (["id", "word"], 2)
    written = table.written(table.prepared())
    assert [part.costs.files for part in written] == [4]


def test_only_what_is_missing_is_read(table: PlainTable) -> None:
    table.add_index("bloom", "id")
    table.analyse()
    assert table.prepared().groups == []
    table.append(file_rows(80, 100))
    (group,) = table.prepared().groups
    assert group.files.num_rows == 1
    table.analyse()
    table.add_index("bitmap", "word")
    (group,) = table.prepared().groups
    assert (group.files.num_rows, group.fields) == (5, ())
    table.analyse()
    assert covers_all(table)
    assert table.prepared().groups == []


# -- a type that is promoted


def test_a_promoted_column(table: PlainTable) -> None:
    """What the segments have of the old type has other bytes: it is neither believed nor merged."""
    table.add_index("bloom", "id")
    table.analyse()
    with table.table.update_schema() as update:
        update.update_column("id", LongType())
    assert table.read("id = 33") == [{"id": 33, "word": "w3"}]
    state = table.analyse()
    assert state.header.indexes == (Index("bloom", 1, "long", 0.001),)
    assert covers_all(table)
    clear_caches()
    for number in (0, 33, 79):
        assert table.count(f"id = {number}") == 1
        assert len(table.explain(f"id = {number}").files) == 1
    for start in range(100, 240, 20):  # until the segments are merged
        rows = file_rows(start, start + 20)
        table.append(rows.set_column(0, "id", rows["id"].cast(pa.int64())))
        table.analyse()
    clear_caches()
    for number in (0, 33, 79, 105, 239):
        assert table.count(f"id = {number}") == 1


# -- at once


def test_declared_while_an_analysis_runs(table: PlainTable) -> None:
    table.analyse()
    table.append(file_rows(80, 100))
    work = table.prepared()
    table.add_index("bloom", "id")
    written = table.written(work)
    table.add_index("bitmap", "word")
    keep(table.load(), table.store, work, written, NO_ROWS)
    assert declared(table) == {("bloom", "id"), ("bitmap", "word")}
    table.analyse()
    assert covers_all(table)
    assert declared(table) == {("bloom", "id"), ("bitmap", "word")}


def test_dropped_while_an_analysis_runs(table: PlainTable) -> None:
    from rookery.api.indexes import drop_index

    table.add_index("bloom", "id")
    work = table.prepared()
    drop_index(table.load(), table.store, "bloom", "id")
    keep(table.load(), table.store, work, table.written(work), NO_ROWS)
    assert declared(table) == set()
    assert table.analyse().header.indexes == ()


def test_two_analyses_of_one_base(table: PlainTable) -> None:
    table.add_index("bloom", "id")
    works = [table.prepared(), table.prepared()]
    for work in works:
        keep(table.load(), table.store, work, table.written(work), NO_ROWS)
    assert declared(table) == {("bloom", "id")}
    assert covers_all(table)
    assert table.prepared().groups == []
    assert table.count("id = 41") == 1


def test_many_speak_at_once(table: PlainTable) -> None:
    table.analyse()
    wanted = [("bloom", "id"), ("bloom", "word"), ("bitmap", "word"), ("bitmap", "id")]
    for _ in range(3):
        together = Barrier(len(wanted))

        def speak(kind: str, column: str, together: Barrier = together) -> None:
            mine = table.load()
            together.wait()
            from rookery.api.indexes import add_index

            add_index(mine, table.store, kind, column)

        with ThreadPoolExecutor(len(wanted)) as pool:
            for future in [pool.submit(speak, *each) for each in wanted]:
                future.result(timeout=60)
        assert declared(table) == set(wanted)
    # Whatever is collected as garbage, the last state knows of all.
    table.store.collect_garbage(str(table.table.metadata.table_uuid), [table.snapshot().id], grace=0.0)
    assert declared(table) == set(wanted)


def test_a_rollback_forgets_no_declaration(table: PlainTable) -> None:
    table.analyse()
    first = table.snapshot().id
    table.append(file_rows(80, 100))
    table.add_index("bitmap", "word")
    table.analyse()
    table.table.manage_snapshots().set_current_snapshot(snapshot_id=first).commit()
    clear_caches()
    assert declared(table) == {("bitmap", "word")}
    assert table.count("word = 'w1'") == 16
    table.analyse()
    assert (declared(table), covers_all(table)) == ({("bitmap", "word")}, True)
    assert table.count("word = 'w1'") == 16


# -- parts of files


def test_files_in_several_parts(table: PlainTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = file_rows(1000, 3000)
    table.table.transaction().set_properties({"write.parquet.row-group-limit": "100"}).commit_transaction()
    table.append(rows)
    table.add_index("bloom", "id")
    table.add_index("bitmap", "word")
    found = []
    for split in (plan.SPLIT_BYTES, 50):
        monkeypatch.setattr(plan, "SPLIT_BYTES", split)
        work = table.prepared(full=True)
        pieces = [piece.parts for task in plan.tasks(work.groups, 4, {}) for piece in task.files]
        assert (max(pieces) > 1) == (split == 50)
        monkeypatch.setattr("tests.collect.plain.NO_SPARK.sparkContext.defaultParallelism", 4)
        (part,) = table.written(work)
        with table.store.open_segment(part.entry) as segment:
            bitmap = whole_index(segment, 2)
            assert bitmap is not None
            assert bitmap.covered.all()
            found.append((matrices(segment, 1), bitmap, part.costs.files))
    assert found[0] == found[1]
    table.analyse(full=True)
    clear_caches()
    assert [table.count(f"id = {number}") for number in range(1000, 3000, 97)] == [1] * 21


@pytest.mark.parametrize("least_bytes", [1, part_files.LEAST_BYTES])
def test_two_indexes_on_one_column_of_files_in_several_parts(
    table: PlainTable, monkeypatch: pytest.MonkeyPatch, least_bytes: int
) -> None:
    """Parts of both kinds come from several tasks, in files or in rows, and are joined each with its own."""
    table.table.transaction().set_properties({"write.parquet.row-group-limit": "100"}).commit_transaction()
    words = [f"w{number // 40}" for number in range(2000)]
    for start in (0, 1000):
        ids = pa.array(range(start, start + 1000), pa.int32())
        table.append(pa.table({"id": ids, "word": words[start : start + 1000]}, schema=SCHEMA))
    for kind in ("bloom", "bitmap"):
        table.add_index(kind, "word")
    whole = indexes_on_words(table, table.analyse(full=True))

    def as_on_spark(
        _: object, tasks: list[plan.Task], io_properties: dict[str, str], folder: str, __: object
    ) -> Iterator[Partial]:
        """Yield what executors send, without Spark between them and the driver."""
        assert max(piece.parts for task in tasks for piece in task.files) > 1
        assert all([index.kind.name for index in task.indexes] == ["bloom", "bitmap"] for task in tasks)
        batches = [pa.record_batch({"id": pa.array(range(len(tasks)), pa.int64())})]
        sent = [
            row
            for batch in run._mapper(tuple(tasks), io_properties, folder)(batches)
            for row in run._cells(batch)
        ]
        kinds.append({kind for _, kind, *_ in sent})
        rows = (run._Row(*row) for row in sent)
        return run._partials(rows, {task.group: task.indexes for task in tasks}, io_properties)

    kinds: list[set[str]] = []
    monkeypatch.setattr(part_files, "LEAST_BYTES", least_bytes)
    monkeypatch.setattr(plan, "SPLIT_BYTES", 50)
    monkeypatch.setattr(run, "LOCAL_BYTES", 0)
    monkeypatch.setattr(run, "_run_on_spark", as_on_spark)
    monkeypatch.setattr("tests.collect.plain.NO_SPARK.sparkContext.defaultParallelism", 16)
    assert indexes_on_words(table, table.analyse(full=True)) == whole
    assert [("index file" in kind, "index" in kind) for kind in kinds] == [
        (least_bytes == 1, least_bytes > 1)
    ]
    clear_caches()
    every = table.read("id >= 0")
    for number in range(52):
        where = f"word = 'w{number}'"
        rows = [row for row in every if row["word"] == f"w{number}"]
        assert (table.read(where), table.count(where)) == (rows, len(rows))


def indexes_on_words(table: PlainTable, state: State) -> tuple[list[BloomMatrix], BitmapIndex | None]:
    """Both indexes, as the one segment of a state has them."""
    assert covers_all(table)
    (entry,) = state.header.segments
    with table.store.open_segment(entry) as segment:
        bitmap = whole_index(segment, 2)
        assert bitmap is not None
        assert bitmap.covered.all()
        return matrices(segment, 2), bitmap
