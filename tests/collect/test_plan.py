"""The plan: what a file lacks is read once, in one group, and every piece of it by one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.collect import plan
from rookery.collect.plan import Group, IndexColumn, coverage, groups, tasks
from rookery.indexes import KINDS
from rookery.model import Field
from rookery.sidecar import Index, SegmentEntry
from rookery.sketch import MAX_FILES
from rookery.tables import FILE_SCHEMA
from tests.sidecar.builders import key, state

A, B, YOUNG = Field(1, "a", "long"), Field(2, "b", "string"), Field(9, "young", "long")
BLOOM = Index("bloom", 1, "long", 0.01)
BITMAP = Index("bitmap", 2, "string")
INDEXES = [IndexColumn(BLOOM, A, KINDS["bloom"]), IndexColumn(BITMAP, B, KINDS["bitmap"])]


def listed(sizes: Sequence[int], **columns: Sequence[object]) -> pa.Table:
    rows = [
        {"path": f"f{n}", "size": size, "rows": 10, "format": "parquet", "partition": "[]"}
        | {name: values[n] for name, values in columns.items()}
        for n, size in enumerate(sizes)
    ]
    files = pa.Table.from_pylist(rows, FILE_SCHEMA)
    return files.append_column("deletes", pa.array([""] * len(sizes)))


def keys_of(count: int) -> pa.Array:
    return pa.array([key(number) for number in range(count)], pa.binary(16))


DESCRIBED = st.tuples(
    st.sets(st.integers(0, 5)),
    st.sampled_from([(), (1,), (2,), (1, 2)]),
    st.sampled_from([(), (BLOOM,), (BITMAP,), (BLOOM, BITMAP)]),
    st.sampled_from([5, 20]),
)


@given(st.lists(DESCRIBED, max_size=4), st.lists(st.sampled_from([A, B, YOUNG]), unique=True))
def test_exactly_what_is_lacking_is_read(
    described: list[tuple[set, tuple, tuple, int]], fields: list[Field]
) -> None:
    entries = [SegmentEntry(str(n), 6, ids, last, has) for n, (_, ids, has, last) in enumerate(described)]
    found = state(
        entries, [(file, n, file) for n, (files, *_) in enumerate(described) for file in files], thetas={}
    )
    planned = groups(listed([1] * 6), keys_of(6), fields, INDEXES, found)
    read = Counter(
        (path, wanted)
        for group in planned
        for path in group.files["path"].to_pylist()
        for wanted in (*group.fields, *(each.index for each in group.indexes))
    )
    lacking = set()
    for file in range(6):
        here = [(ids, has, last) for files, ids, has, last in described if file in files]
        for field in fields:
            if not any(field.id in ids or field.id > last for ids, _, last in here):
                lacking.add((f"f{file}", field))
        lacking |= {
            (f"f{file}", index) for index in (BLOOM, BITMAP) if not any(index in has for _, has, _ in here)
        }
    assert read == Counter(dict.fromkeys(lacking, 1))
    assert [group.number for group in planned] == list(range(len(planned)))
    paths = [path for group in planned for path in group.files["path"].to_pylist()]
    assert len(paths) == len(set(paths)), "a file is read once for all that it lacks"


def test_without_a_state_everything_is_read_at_once() -> None:
    (group,) = groups(listed([1] * 3), keys_of(3), [A, B], INDEXES, None)
    assert (group.files.num_rows, group.fields, list(group.indexes)) == (3, (A, B), INDEXES)
    assert not coverage(keys_of(3), None).any()
    assert groups(listed([]), keys_of(0), [A], [], None) == []


def test_a_column_of_another_type_is_read_again() -> None:
    entry = SegmentEntry("0", 2, (1,), 5)
    found = state([entry], [(0, 0, 0), (1, 0, 1)], thetas={}, types={1: "int"})
    (group,) = groups(listed([1] * 2), keys_of(2), [A], [], found)
    assert group.files.num_rows == 2
    assert coverage(keys_of(2), found, A).all()


def test_groups_are_no_larger_than_a_segment() -> None:
    count = MAX_FILES + 5
    sizes = [group.files.num_rows for group in groups(listed([1] * count), keys_of(count), [A], [], None)]
    assert sizes == [MAX_FILES, 5]


def test_groups_hold_no_more_rows_than_an_index_can() -> None:
    rows = [2**31, 2**31, 2**31, 7, 2**31]
    files = listed([1] * 5, rows=rows)
    planned = groups(files, keys_of(5), [], [INDEXES[1]], None)
    held = [group.files["rows"].to_numpy() for group in planned]
    assert np.concatenate(held).tolist() == rows
    assert len(held) > 1
    assert all(len(each) == 1 or KINDS["bitmap"].fits(each) for each in held)
    assert len(groups(files, keys_of(5), [B], [], None)) == 1


SIZES = st.lists(st.integers(0, 2_000), min_size=1, max_size=12)


@given(st.lists(SIZES, min_size=1, max_size=3), st.integers(1, 8), st.data())
def test_every_part_of_every_file_is_in_one_task(
    all_sizes: list[list[int]], cores: int, data: st.DataObject
) -> None:
    planned = [Group(number, listed(sizes), (A,)) for number, sizes in enumerate(all_sizes)]
    skip = {n: data.draw(st.sets(st.integers(0, len(sizes) - 1))) for n, sizes in enumerate(all_sizes)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "SPLIT_BYTES", 100)
        made = tasks(planned, cores, {n: sorted(each) for n, each in skip.items()})
    pieces = Counter(
        (task.group, piece.ordinal, piece.part, piece.parts) for task in made for piece in task.files
    )
    assert set(pieces.values()) <= {1}
    parts = {(group, ordinal): parts for group, ordinal, _, parts in pieces}
    assert set(pieces) == {(*file, part, parts[file]) for file in parts for part in range(parts[file])}
    assert set(parts) == {
        (number, ordinal)
        for number, sizes in enumerate(all_sizes)
        for ordinal in range(len(sizes))
        if ordinal not in skip[number]
    }
    order = [number for number, _ in groupby(task.group for task in made)]
    assert order == sorted(set(order)), "results of a group are merged while they follow each other"
    for task in made:
        assert task.group_size == len(all_sizes[task.group])
        # A filter of a file is that of the last part of it that a task has read.
        assert len({piece.ordinal for piece in task.files}) == len(task.files) > 0


def test_files_that_an_engine_reads_are_read_here_for_indexes_alone() -> None:
    files = listed(
        [10] * 4, format=["parquet", "parquet", "orc", "parquet"], partition=["[]"] * 3 + ['["\\ufffd"]']
    )
    (task,) = tasks([Group(0, files, (A,), (INDEXES[0],))], 1, {0: [1, 2, 3]})
    assert {piece.ordinal: piece.only_indexes for piece in task.files} == {0: False, 1: True}
    (task,) = tasks([Group(0, files, (A,))], 1, {0: [1, 2, 3]})
    assert [piece.ordinal for piece in task.files] == [0]


@pytest.mark.parametrize(
    ("sizes", "cores", "expected"), [([100] * 8, 4, 4), ([100], 4, 1), ([1000, 1, 1, 1], 2, 2)]
)
def test_a_core_has_one_short_task(sizes: list[int], cores: int, expected: int) -> None:
    made = tasks([Group(0, listed(sizes), (A,))], cores, {})
    assert len(made) == expected
    assert made[0].files[0].size == max(sizes)


def test_long_tasks_are_divided_and_large_files_split() -> None:
    huge = plan.LONG_TASK_BYTES
    made = tasks([Group(0, listed([8 * huge]), (A,))], 2, {})
    assert (len(made), {piece.parts for task in made for piece in task.files}) == (8, {8})
