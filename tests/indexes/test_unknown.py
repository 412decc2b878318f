"""States that name a kind of index unknown to this version: the rest is used, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rookery.api.indexes import drop_index
from rookery.collect import tiers
from rookery.indexes import KINDS
from rookery.maintain.steps.refresh import _indexes_behind
from rookery.maintain.survey import survey
from rookery.model import UsageError
from rookery.model.cache import clear_caches
from rookery.sidecar import Index, State
from tests.indexes.conftest import LakeTable, Rookery, stage_of
from tests.indexes.toy import LengthsKind

pytestmark = pytest.mark.usefixtures("toy")
Version = Callable[[], None]


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch, toy: LengthsKind) -> Version:
    """Go on as a version without the toy kind."""

    def go_on() -> None:
        monkeypatch.delitem(KINDS, toy.name)
        clear_caches()

    return go_on


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch, toy: LengthsKind) -> Version:
    """Go on as a version that has it."""

    def go_on() -> None:
        monkeypatch.setitem(KINDS, toy.name, toy)
        clear_caches()

    return go_on


@pytest.fixture
def built(table: LakeTable) -> LakeTable:
    """A table of three files with indexes of a known kind and of the toy."""
    table.append_files(*range(3))
    table.add_index("bloom", "id")
    table.add_index("lengths", "word")
    table.analyse("id")
    return table


def kinds_in(state: State) -> list[set[str]]:
    return [{index.kind for index in entry.indexes} for entry in state.header.segments]


def test_the_rest_is_used(built: LakeTable, older: Version) -> None:
    older()
    assert stage_of(built, "id = 25 AND word <> 'x'", "bloom filter check")[2] == ""
    names = [stage.name for stage in built.explain("word = 'bbbbb'").stages]
    assert "lengths" not in names
    assert len(built.explain("word = 'bbbbb'").files) == 3
    built.assert_answers()
    assert built.prepared("id").groups == []  # it is not built, nor is anything built again for it


def test_listed_refused_and_dropped(built: LakeTable, older: Version, rookery: Rookery) -> None:
    older()
    code, out, _ = rookery("index", "list", "db.t")
    assert code == 0
    assert "of a kind that this version does not know: kept, but not used" in " ".join(out.split())
    assert {view.built for view in built.indexes().indexes if view.kind == "bloom"} == {"built"}
    with pytest.raises(UsageError, match="there is no index 'lengths'") as caught:
        built.add_index("lengths", "word")
    assert caught.value.hint == "the kinds are bitmap, bloom"
    code, out, _ = rookery("status", "db.t", "--columns")
    assert "lengths: of a kind that this version does not know: kept, but not used" in " ".join(out.split())
    assert "bloom: of a kind" not in out
    code, _, _ = rookery("index", "drop", "db.t", "lengths", "word")
    assert code == 0
    assert [view.kind for view in built.indexes().indexes] == ["bloom"]
    assert kinds_in(built.analyse("id")) == [{"bloom"}]


def test_declared_and_built_by_a_newer_version(built: LakeTable, older: Version, newer: Version) -> None:
    """An older version writes states in between: what was declared and built is still there."""
    older()
    built.append_files(3)
    state = built.analyse("id")
    assert kinds_in(state) == [{"bloom", "lengths"}, {"bloom"}]
    assert {index.kind for index in state.header.indexes} == {"bloom", "lengths"}
    assert not _indexes_behind(survey(built.load(), built.store), 1.0)
    newer()
    assert stage_of(built, "word = 'bbbbb'") == (4, 2, "1 file not indexed yet")
    assert _indexes_behind(survey(built.load(), built.store), 1.0)
    assert [group.files.num_rows for group in built.prepared("id").groups] == [1]
    built.analyse("id")
    built.assert_answers()
    assert stage_of(built, "word = 'bbbbb'") == (4, 1, "")


def test_options_are_carried_along(built: LakeTable, older: Version) -> None:
    """Whatever a newer version has asked for, an older one hands on."""
    wanted = Index("lengths", 2, "string", 0.25, (("unit", "characters"), ("most", "9")))
    uuid = str(built.table.metadata.table_uuid)
    declared = built.store.declared(uuid).adding(wanted, 2**62)
    built.store.publish(declared.on(built.analyse("id")))
    older()
    built.append_files(3)
    assert wanted in built.analyse("id", full=True).header.indexes
    built.add_index("bitmap", "word")
    assert wanted in built.store.declared(uuid).indexes
    assert [view.fpp for view in built.indexes().indexes if view.kind == "lengths"] == [0.25]


def test_segments_are_left_unmerged(table: LakeTable, older: Version, newer: Version) -> None:
    """The index cannot go along, so its segments stay; those that an older version writes are merged."""
    table.add_index("lengths", "word")
    for number in range(7):
        table.append_files(number)
        state = table.analyse("id")
    older()
    for number in range(7, 16):
        table.append_files(number)
        state = table.analyse("id")
        table.assert_answers()
    assert [entry.files for entry in state.header.segments] == [1] * 7 + [8, 1]
    assert kinds_in(state) == [{"lengths"}] * 7 + [set(), set()]
    everything = replace(state.header.segments[0], files=100)
    mostly_dead = state.with_segments((everything, *state.header.segments[1:]), state.files)
    assert tiers.choose_merges(mostly_dead.header.segments, [1] * 9) == [[0]]
    assert tiers.merge_tiers(table.store, mostly_dead) is mostly_dead
    newer()
    table.append_files(16)
    state = table.analyse("id")
    table.assert_answers()
    assert all(view.built == "built" for view in table.indexes().indexes)


def test_dropped_by_an_older_version(built: LakeTable, older: Version, newer: Version) -> None:
    older()
    drop_index(built.load(), built.store, "lengths", "word")
    newer()
    assert [view.kind for view in built.indexes().indexes] == ["bloom"]
    assert kinds_in(built.analyse("id")) == [{"bloom"}]


def test_a_column_that_the_kind_no_longer_serves(built: LakeTable) -> None:
    """Of another type by now, as after CREATE OR REPLACE: it is neither built nor missed."""
    uuid = str(built.table.metadata.table_uuid)
    wrong = built.store.declared(uuid).adding(Index("lengths", 1, "long"), 2**62)
    built.store.publish(wrong.on(built.analyse("id")))
    assert built.prepared("id").groups == []
    assert not _indexes_behind(survey(built.load(), built.store), 1.0)
    built.append_files(3)
    built.analyse("id")
    built.assert_answers()
