"""What one process reads: each file's values under its own ordinal, in whatever parts and order."""

from __future__ import annotations

import random
from collections.abc import Sequence, Set
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rookery.collect.plan import FileTask, IndexColumn, Task
from rookery.collect.run import _batches, _cells, _partials, _Row, merge, run
from rookery.collect.task import Costs, Partial, run_task
from rookery.indexes import KINDS
from rookery.model import Field
from rookery.sidecar import Index
from rookery.tables.column_mapping import BY_FIELD_ID
from tests.collect.files import decoded, write

ID, WORD = Field(1, "id", "long"), Field(2, "word", "string")
INDEXES = (
    IndexColumn(Index("bloom", 1, "long", 0.01), ID, KINDS["bloom"]),
    IndexColumn(Index("bitmap", 2, "string"), WORD, KINDS["bitmap"]),
)
ROWS = 30


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Three files of three row groups each."""
    made = []
    for number in range(3):
        ids = range(20 * number, 20 * number + ROWS)
        rows = pa.table({"id": pa.array(ids, pa.int64()), "word": [f"w{n % (number + 2)}" for n in ids]})
        made.append(write(tmp_path / f"{number}.parquet", rows, row_group_size=10))
    return made


def piece(path: str, ordinal: int, part: int = 0, parts: int = 1, *, only_indexes: bool = False) -> FileTask:
    size = Path(path).stat().st_size
    return FileTask(ordinal, path, size, ROWS, part, parts, only_indexes, BY_FIELD_ID)


def task(*pieces: FileTask, group: int = 0, indexes: tuple[IndexColumn, ...] = INDEXES) -> Task:
    return Task(group, (ROWS,) * 3, pieces, (ID, WORD), indexes)


def blobs_of(found: Partial, shared: Set[int]) -> list[tuple[str, bytes]]:
    made = [each.kind.blobs(each.index, part, 3, shared) for each, part in found.indexes.items()]
    return [(blob.type, blob.payload) for blobs in made for blob in blobs]


def assert_same(found: Partial, expected: Partial, shared: Set[int] = frozenset()) -> None:
    """The same is written of both; of *found*, the files of these ordinals were read in parts."""
    assert (found.group, found.highest_id) == (expected.group, expected.highest_id)
    assert found.thetas == expected.thetas
    assert blobs_of(found, shared) == blobs_of(expected, frozenset())


def test_every_value_is_under_its_file(paths: list[str]) -> None:
    found = run_task(task(*(piece(path, n) for n, path in enumerate(paths))), {})
    for field in (ID, WORD):
        for ordinal, path in enumerate(paths):
            only = np.arange(3) == ordinal
            assert found.thetas[field.id].sketch(only) == decoded(path, field)
    assert (found.costs.files, found.needs_engine, found.highest_id) == (3, (), 2)
    assert found.costs.chunks.total() == 3 * 2 * 3


def spread(pieces: Sequence[FileTask]) -> list[list[FileTask]]:
    """Pieces of files for four tasks; as in a plan, a task has no two of one file."""
    made: list[list[FileTask]] = [[], [], [], []]
    for each in pieces:
        able = [files for files in made if all(each.ordinal != other.ordinal for other in files)]
        min(able, key=len).append(each)
    return made


def test_parts_in_any_order_are_the_whole(paths: list[str]) -> None:
    whole = run_task(task(*(piece(path, n) for n, path in enumerate(paths))), {})
    pieces = [piece(path, n, part, 3) for n, path in enumerate(paths) for part in range(3)]
    for seed in range(4):
        random.Random(seed).shuffle(pieces)
        tasks = [task(*each) for each in spread(pieces)]
        parts = [run_task(each, {}) for each in tasks]
        assert_same(merge(parts), whole, {0, 1, 2})
        assert merge(parts).costs.files == 3
        assert_same(next(iter(run(None, tasks, {}, "nowhere"))), whole, {0, 1, 2})


def test_results_of_groups_are_kept_apart(paths: list[str]) -> None:
    tasks = [task(piece(path, 0), group=n // 2) for n, path in enumerate(paths)]
    found = list(run(None, tasks, {}, "nowhere"))
    assert [partial.group for partial in found] == [0, 1]
    assert found[1].thetas[1].sketch() == decoded(paths[2], ID)


def test_what_a_task_sends_comes_back(paths: list[str], tmp_path: Path) -> None:
    sent = run_task(task(*(piece(path, n) for n, path in enumerate(paths)), group=5), {})
    rows = [_Row(*cells) for batch in _batches(sent, str(tmp_path), {}) for cells in _cells(batch)]
    (back,) = _partials(rows, {5: INDEXES}, {})
    assert_same(back, sent)
    assert (back.costs, back.needs_engine) == (sent.costs, sent.needs_engine)


def test_a_file_without_field_ids_is_left_to_the_engine(paths: list[str], tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": list(range(ROWS)), "word": ["x"] * ROWS}), tmp_path / "import.parquet")
    foreign = str(tmp_path / "import.parquet")
    found = run_task(task(piece(paths[0], 0), piece(foreign, 1), piece(paths[2], 2)), {})
    assert (found.needs_engine, found.costs.files) == ((1,), 2)
    assert len(found.thetas[1].sketch(np.arange(3) == 1).hashes) == 0
    bitmap = found.indexes[INDEXES[1]]
    assert bitmap.covered.tolist() == [True, False, True]
    found = run_task(task(piece(foreign, 1, only_indexes=True)), {})
    assert found.needs_engine == ()


def test_for_indexes_alone_no_distinct_value_is_counted(paths: list[str]) -> None:
    found = run_task(task(piece(paths[0], 0, only_indexes=True), piece(paths[1], 1)), {})
    assert len(found.thetas[1].sketch(np.arange(3) == 0).hashes) == 0
    assert found.thetas[1].sketch(np.arange(3) == 1) == decoded(paths[1], ID)
    assert (found.costs.files, found.indexes[INDEXES[1]].covered.tolist()) == (1, [True, True, False])


def test_costs_add_up_and_come_back() -> None:
    one = Costs(1, Costs().chunks, 10, 100, 2)
    one.chunks.update({"pages": 3})
    both = one + one
    assert (both.files, both.chunks, both.values, both.bytes_read, both.reads) == (
        2,
        {"pages": 6},
        20,
        200,
        4,
    )
    assert Costs.of(one.as_dict()) == one
