"""The stage of the inverted theta: exact while all hashes are kept, and never wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rookery.model import Compare, In, IsNull, Op, Predicate
from rookery.prune import by_theta
from rookery.prune.cascade import Pruning
from rookery.prune.fileset import file_set
from rookery.sidecar import Store, store_of
from rookery.sketch import MAX_THETA
from tests.collect.by_rows import analyse_by_rows
from tests.prune.random_tables import RandomTable, random_table
from tests.tables.memory_format import MemoryWriter

EMPTY = ("", b"")  # which sketches leave out


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> RandomTable:
    """A table in two segments, and two files that are in none."""
    made = random_table(tmp_path_factory.mktemp("theta"), seed="theta", commits=3)
    made.analyse()
    made.append_rows(made.random_rows(5), made.random_rows(5))
    made.analyse()
    made.append_rows(made.random_rows(5), made.random_rows(5))
    return made


def test_no_file_with_a_matching_row_is_left_out(table: RandomTable) -> None:
    assert table.view().left_out(by_theta.stage, 200) > 50


def test_a_value_is_looked_up_exactly(table: RandomTable) -> None:
    """All hashes are kept, so that a file stays only if it has the value, or is in no segment."""
    view = table.view()
    fresh = np.arange(len(view.files)) >= len(view.files) - 2
    assert (view.files.fresh, len(view.files.places)) == (2, 2)
    for field in table.fields:
        for value in (each for each in table.pools[field.name] if each not in EMPTY):
            predicate = Compare(field, Op.EQ, value)
            may_match, note = by_theta.stage(view.pruning(predicate))
            expected = view.matching(predicate) | fresh
            assert (may_match.tolist(), note) == (expected.tolist(), ""), predicate


@pytest.mark.parametrize("value", EMPTY)
def test_an_empty_text_is_in_no_sketch_and_keeps_every_file(table: RandomTable, value: str | bytes) -> None:
    (field,) = (each for each in table.fields if each.type == ("string" if value == "" else "binary"))
    assert by_theta.stage(table.view().pruning(Compare(field, Op.EQ, value)))[0].all()


def test_what_it_cannot_serve_keeps_every_file(table: RandomTable) -> None:
    (field,) = (each for each in table.fields if each.type == "long")
    many = tuple(range(2**40, 2**40 + by_theta.MOST_VALUES))
    expected: dict[Predicate, str] = {
        Compare(field, Op.LT, -(2**63)): "supports only = and IN",
        Compare(field, Op.NE, 1): "supports only = and IN",
        In(field, (1, 2), negated=True): "supports only = and IN",
        IsNull(field): "supports only = and IN",
        In(field, (*many, 7)): "",
        Compare(replace(field, type="int"), Op.EQ, 7): "",  # before it was promoted
    }
    view = table.view()
    for predicate, reason in expected.items():
        may_match, note = by_theta.stage(view.pruning(predicate))
        assert (may_match.all(), note) == (True, reason), predicate
    assert not by_theta.stage(view.pruning(In(field, many)))[0].all()


def test_a_table_that_was_never_analysed(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("long",), commits=1)
    may_match, note = by_theta.stage(table.view().pruning(Compare(table.fields[0], Op.EQ, 7)))
    assert (may_match.all(), note) == (True, "the table was never analyzed")


def test_columns_that_were_not_collected_keep_every_file(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("long", "string"), commits=2)
    table.analyse("c0")
    number, text = table.fields
    view = table.view()
    assert not by_theta.stage(view.pruning(Compare(number, Op.EQ, 123_456)))[0].any()
    assert by_theta.stage(view.pruning(Compare(text, Op.EQ, "nowhere")))[0].all()


def test_a_hash_above_theta_proves_nothing(tmp_path: Path) -> None:
    """With more distinct values than a sketch keeps, most values are in no list, and keep every file."""
    table = random_table(tmp_path, ("long",), commits=0)
    table.append_rows(*([{"c0": n} for n in range(start, start + 15_000)] for start in (0, 15_000)))
    table.analyse()
    (field,) = table.fields
    view, decided, tried = table.view(), 0, range(0, 60_000, 97)
    for value in tried:
        may_match, note = by_theta.stage(view.pruning(Compare(field, Op.EQ, value)))
        found = may_match.tolist()
        assert found in ([value < 15_000, 15_000 <= value < 30_000], [True, True]), value
        assert note.startswith("too many distinct values") == (found == [True, True])
        decided += found != [True, True]
    share = view.files.segment(0).theta_of(field.id)
    assert share is not None
    assert 0.05 < share / MAX_THETA < 0.5
    assert decided / len(tried) == pytest.approx(share / MAX_THETA, abs=0.05)


def test_deletes_that_were_undone(tmp_path: Path) -> None:
    """A sketch of the rows that were left proves nothing once a delete is undone: the file stays."""
    writer = MemoryWriter(tmp_path, {"id": "long"})
    writer.append([{"id": 1}, {"id": 2}])
    writer.append([{"id": 1}, {"id": 3}])
    writer.delete_rows({2})
    store = store_of(writer.open())
    analyse_by_rows(writer, store)
    assert of_memory(writer, store, 3) == (0, [True, True], [False, False])
    writer.restore_rows()
    assert of_memory(writer, store, 4) == (0, [False, True], [True, False])
    # The snapshot before the delete is no descendant of that of the state: its files are read from manifests.
    assert of_memory(writer, store, 2) == (1, [True, True], [False, True])


def of_memory(writer: MemoryWriter, store: Store, snapshot_id: int) -> tuple[int, list[bool], list[bool]]:
    """How many files the state does not know, which are sketched whole, and which may have a 2."""
    table = writer.open()
    at = table.snapshots[snapshot_id]
    files = file_set(table, store, at)
    everything = np.ones(len(files), bool)
    two = Pruning(table, at, files, Compare(table.fields()[0], Op.EQ, 2), everything, everything)
    return files.fresh, files.sketched_whole.tolist(), by_theta.stage(two)[0].tolist()
