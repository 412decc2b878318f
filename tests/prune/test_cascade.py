"""The cascade: each stage only takes files away, and one that fails, or cannot know, takes none."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rookery.indexes import KINDS
from rookery.model import (
    ALWAYS,
    NEVER,
    Compare,
    FormatError,
    Op,
    Opaque,
    Place,
    Predicate,
    StorageError,
    all_of,
    any_of,
)
from rookery.prune import cascade
from rookery.prune.cascade import CASCADE, Pruning, prune
from rookery.prune.fileset import file_set
from rookery.sidecar import Index, store_of
from tests.prune.random_tables import RandomTable, View, random_table
from tests.tables.memory_format import MemoryTable, MemoryWriter

STAGES = [*(name for name, _ in CASCADE), *(kind.stage for kind in KINDS.values())]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> RandomTable:
    """Files with both indexes, and one that is not analyzed yet."""
    made = random_table(tmp_path_factory.mktemp("cascade"), ("long", "string", "double"), seed="cascade")
    made.add_index("bloom", "c0")
    made.add_index("bitmap", "c1")
    made.analyse()
    made.append_rows(made.random_rows(6))
    return made


def pruned(view: View, predicate: Predicate) -> Pruning:
    return prune(view.table, view.snapshot, view.files, predicate)


def absent(table: RandomTable) -> Compare:
    """A value that no row has, between the bounds of some files."""
    return Compare(table.fields[0], Op.EQ, 1_234_567)


def test_no_file_with_a_matching_row_is_left_out(table: RandomTable) -> None:
    view = table.view()
    left_out = 0
    for _ in range(100):
        predicate = table.predicate()
        found = pruned(view, predicate)
        assert not (view.matching(predicate) & ~found.keep).any(), predicate
        left_out += int((~found.keep).sum())
    assert left_out > 200


def test_the_report_counts_what_goes_in_and_out(table: RandomTable) -> None:
    view = table.view()
    sizes, rows = view.files.files["size"].to_numpy(), np.array([len(each) for each in view.rows])
    for _ in range(30):
        found = pruned(view, table.predicate())
        reports = found.stages
        assert [each.name for each in reports] == STAGES
        first, last = reports[0], reports[-1]
        assert (first.files_in, first.bytes_in, first.rows_in) == (len(sizes), sizes.sum(), rows.sum())
        for before, after in pairwise(reports):
            assert (before.files_out, before.bytes_out, before.rows_out) == (
                after.files_in,
                after.bytes_in,
                after.rows_in,
            )
            assert before.files_out <= before.files_in
        kept = found.keep
        assert (last.files_out, last.bytes_out, last.rows_out) == (
            len(found.numbers),
            sizes[kept].sum(),
            rows[kept].sum(),
        )
        assert found.share_left() == pytest.approx(sizes[kept].sum() / sizes.sum())
        assert last.skipped == pytest.approx(1 - last.bytes_out / last.bytes_in if last.bytes_in else 0)


ERRORS = [
    StorageError("the store does not answer"),
    FormatError(Place("segment"), "a blob", "something else"),
    KeyError("no such column"),
    ZeroDivisionError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_stage_that_fails_keeps_every_file(
    table: RandomTable, error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The others do their work all the same, and find what it would have found."""

    def fail(pruning: Pruning) -> Any:
        pruning.files.segment(0)  # whatever it has done before
        raise error

    view, predicate = table.view(), absent(table)
    whole = pruned(view, predicate)
    for place in range(len(CASCADE)):
        broken = [(name, fail if n == place else stage) for n, (name, stage) in enumerate(CASCADE)]
        monkeypatch.setattr(cascade, "CASCADE", tuple(broken))
        found = pruned(view, predicate)
        report = found.stages[place]
        assert (report.files_in, report.note) == (report.files_out, f"could not be used: {error}")
        assert [each.name for each in found.stages] == STAGES
        assert (found.keep >= whole.keep).all()
        assert not found.keep.all()
        assert f"the stage '{report.name}' could not be used" in caplog.text
    monkeypatch.setattr(cascade, "CASCADE", tuple((name, fail) for name, _ in CASCADE))
    assert not pruned(view, predicate).keep.all()  # by the Bloom filters


def test_an_index_that_fails_keeps_every_file(table: RandomTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(view: Any) -> Any:
        raise StorageError("the store does not answer")

    for kind in KINDS.values():
        monkeypatch.setattr(kind, "prune", fail)
    monkeypatch.setattr(cascade, "CASCADE", ())
    found = pruned(table.view(), absent(table))
    assert found.keep.all()
    assert {each.note for each in found.stages} == {"could not be used: the store does not answer"}


def test_no_predicate_and_one_that_no_row_meets(table: RandomTable, monkeypatch: pytest.MonkeyPatch) -> None:
    view = table.view()
    everything, nothing = pruned(view, ALWAYS), pruned(view, NEVER)
    assert everything.keep.all()
    assert {each.note for each in everything.stages} == {"no predicate"}
    assert not nothing.keep.any()
    assert [each.note for each in nothing.stages] == ["no row can match"] + ["no file is left"] * (
        len(STAGES) - 1
    )
    assert (nothing.share_left(), nothing.stages[0].skipped, nothing.stages[1].skipped) == (0, 1, 0)


def test_what_is_not_understood_keeps_every_file(table: RandomTable) -> None:
    view = table.view()
    opaque, leaf = Opaque("f(c0)", "an unknown function"), absent(table)
    for predicate in (opaque, any_of(leaf, opaque), all_of(opaque, any_of(opaque, leaf))):
        found = pruned(view, predicate)
        assert found.keep.all(), predicate
        assert found.stages[2].note == "not understood: f(c0) (an unknown function)"
    assert pruned(view, all_of(opaque, leaf)).numbers.tolist() == pruned(view, leaf).numbers.tolist()


def test_a_kind_of_index_that_is_not_known_is_passed_over(table: RandomTable, tmp_path: Path) -> None:
    made = random_table(tmp_path, ("long",), commits=2)
    made.add_index("bloom", "c0")
    state = made.analyse()
    future = Index("from-the-future", 1, "long", 0.5, (("unit", "none"),))
    declared = made.store.declared(state.header.table_uuid).adding(future, 2**62)
    made.store.publish(declared.on(state))
    view = made.view()
    assert view.files.state is not None
    assert future in view.files.state.header.indexes
    found = pruned(view, absent(made))
    assert ([each.name for each in found.stages], found.keep.any()) == (STAGES, False)
    assert not view.files.covered(future).any()


@pytest.mark.parametrize("alone", [[True] * 3, [False] * 3, [True, False, True], [False, True, False]])
def test_files_that_do_not_stand_alone_are_kept(
    tmp_path: Path, alone: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = MemoryWriter(tmp_path, {"id": "long"})
    for number in range(3):
        writer.append([{"id": 10 * number}, {"id": 10 * number + 5}])
    monkeypatch.setattr(MemoryTable, "stands_alone", lambda table, files: np.array(alone))
    table = writer.open()
    store, at = store_of(table), table.snapshot()
    assert at is not None
    (field,) = table.fields()
    files = file_set(table, store, at)
    for predicate, matching in (
        (Compare(field, Op.EQ, 15), [1]),
        (Compare(field, Op.LT, 0), []),
        (NEVER, []),
    ):
        found = prune(table, at, files, predicate)
        kept = [number for number in range(3) if number in matching or not alone[number]]
        assert found.numbers.tolist() == kept, predicate
