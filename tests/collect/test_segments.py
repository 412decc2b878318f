"""Groups become segments: their entries state what was read, how large they are, and what they can prove."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from rookery.api.indexes import add_index
from rookery.api.where import bind
from rookery.collect.keep import keep
from rookery.collect.prepare import prepare
from rookery.collect.progress import silent
from rookery.collect.segments import write_groups
from rookery.model import Compare, Op
from rookery.prune.cascade import prune
from rookery.prune.fileset import file_set
from rookery.puffin import open_puffin
from rookery.read.table_reader import count_rows
from rookery.sidecar import store_of
from rookery.sidecar.checksums import footer_checksum
from rookery.sidecar.state import NO_COLUMN_IS_YOUNGER
from rookery.sketch import union
from tests.collect.by_rows import NO_ROWS, prepared, sketch_of
from tests.collect.plain import NO_SPARK, PlainTable
from tests.prune.random_tables import random_table
from tests.tables.memory_format import MemoryWriter


@pytest.fixture
def writer(tmp_path: Path) -> MemoryWriter:
    made = MemoryWriter(tmp_path, {"id": "long", "word": "string"})
    for start in (0, 20):
        made.append([{"id": start + 2 * n, "word": f"w{n % 3}"} for n in range(10)])
    return made


def test_an_entry_states_the_file_that_was_written(writer: MemoryWriter) -> None:
    table = writer.open()
    store = store_of(table)
    work = prepared(table, store)
    (written,) = write_groups(NO_SPARK, table, store, work, silent)
    entry = written.entry
    path = Path(store.path(entry.name))
    assert (entry.size, entry.files, entry.field_ids, entry.last_column_id) == (
        path.stat().st_size,
        2,
        (1, 2),
        2,
    )
    with open_puffin(str(path)) as reader:
        assert entry.checksum == footer_checksum(reader.metadata)
    with store.open_segment(entry) as opened:
        assert opened.files["path"].to_pylist() == work.groups[0].files["path"].to_pylist()
    assert written.costs.files == 2


def test_what_it_adds_to_the_table_is_what_its_files_hold(writer: MemoryWriter) -> None:
    table = writer.open()
    work = prepared(table, store_of(table))
    (written,) = write_groups(NO_SPARK, table, store_of(table), work, silent)
    paths = work.groups[0].files["path"].to_pylist()
    for field in table.fields():
        assert written.sketches[field.id] == union(sketch_of(writer, path, field) for path in paths)


def test_groups_keep_their_order(writer: MemoryWriter) -> None:
    """The state numbers segments as the groups were planned."""
    table = writer.open()
    store = store_of(table)
    first = prepared(table, store, "id")
    keep(table, store, first, write_groups(NO_SPARK, table, store, first, silent), NO_ROWS)
    writer.append([{"id": 50, "word": "x"}])
    table = writer.open()
    work = prepared(table, store)
    written = write_groups(NO_SPARK, table, store, work, silent)
    assert len(work.groups) == 2
    assert [(each.entry.files, each.entry.field_ids) for each in written] == [
        (group.files.num_rows, tuple(field.id for field in group.fields)) for group in work.groups
    ]


def test_progress_is_told_to_the_end(tmp_path: Path) -> None:
    table = PlainTable(tmp_path, pa.schema([("id", pa.int64())]))
    for number in range(3):
        table.append(pa.table({"id": [number]}))
    told: list[tuple[int, int, int, int]] = []
    work = table.prepared()
    write_groups(NO_SPARK, table.load(), table.store, work, lambda *numbers: told.append(numbers))
    size = sum(work.groups[0].files["size"].to_pylist())
    assert told == sorted(told)
    assert {(files, all_bytes) for _, files, _, all_bytes in told} == {(3, size)}
    assert told[-1] == (3, 3, size, size)


def test_files_with_deletes_are_indexed_without_an_engine(writer: MemoryWriter) -> None:
    """An index is of all rows, deleted or not. Whether a later column is in such a file stays open."""
    writer.delete_rows({6})
    table = writer.open()
    store, at = store_of(table), table.snapshot()
    assert at is not None
    add_index(table, store, "bloom", "id", None)
    work = prepare(table, store, at, (), False)
    written = write_groups(NO_SPARK, table, store, work, silent)
    assert [each.entry.last_column_id for each in written] == [NO_COLUMN_IS_YOUNGER]
    assert [len(each.entry.indexes) for each in written] == [1]
    state = keep(table, store, work, written, NO_ROWS)
    files = file_set(table, store, at)
    assert files.covered(state.header.indexes[0]).all()
    field = table.fields()[0]
    for value, kept in ((6, 1), (24, 1), (7, 0)):
        assert len(prune(table, at, files, Compare(field, Op.EQ, value)).numbers) == kept
    assert count_rows(table, store, at, bind("id = 6", table, at, "UTC"))[0] == 0


def test_a_column_that_no_file_has_yet(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("long",), commits=1)
    table.analyse()
    with table.table.update_schema() as update:
        update.add_column("young", LongType())
    work = table.prepared()
    assert work.groups == []  # it is younger than the segment
    state = table.analyse()
    assert state.ndv(work.fields[-1].id) == 0
