"""What is declared: whoever spoke last counts, whatever the order in which states come to be read."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.puffin import Blob
from rookery.sidecar import Declared, DistributionHeader, Index, State, StateHeader, Statistic, Store
from rookery.sidecar.checksums import ChecksumWriter
from rookery.sidecar.declared import joined
from rookery.sidecar.segment import encode_table
from rookery.sidecar.state import FILES_V1, HEADER_V1, VERSION, read_state, state_name
from tests.sidecar.builders import state, store_in

ONE = Index("bloom", 1, "long", 0.001)
TWO = Index("bitmap", 1, "long")
HISTOGRAM = Statistic("histogram", (1,))
PAIR = Statistic("column-set", (1, 2))
words = st.tuples(st.sampled_from([ONE, TWO, replace(ONE, fpp=0.5)]), st.booleans())


def said(declared: Declared, base: State | None = None) -> State:
    return declared.on(base or state())


def together(*states: StateHeader) -> Declared:
    return joined(map(Declared.of, states))


@given(st.lists(words, max_size=8), st.data())
def test_the_last_word_counts(spoken: list[tuple[Index, bool]], data: st.DataObject) -> None:
    """Each is spoken on top of some earlier state, whose writer may not have seen all the others."""
    known = [Declared()]
    expected: dict[tuple[str, int], Index] = {}
    for now, (index, adds) in enumerate(spoken, 1):
        base = data.draw(st.sampled_from(known))
        known.append(base.adding(index, now) if adds else base.dropping(index, now))
        expected.pop((index.kind, index.field_id), None)
        if adds:
            expected[index.kind, index.field_id] = index
    states = data.draw(st.permutations([said(each).header for each in known]))
    assert set(together(*states).indexes) == set(expected.values())


@given(st.lists(st.tuples(st.sampled_from([HISTOGRAM, PAIR]), st.booleans()), max_size=8), st.data())
def test_the_last_word_on_a_statistic_counts(
    spoken: list[tuple[Statistic, bool]], data: st.DataObject
) -> None:
    known = [Declared()]
    expected: set[Statistic] = set()
    for now, (statistic, adds) in enumerate(spoken, 1):
        base = data.draw(st.sampled_from(known))
        known.append((base.adding_statistic if adds else base.dropping_statistic)(statistic, now))
        expected = expected | {statistic} if adds else expected - {statistic}
    states = data.draw(st.permutations([said(each).header for each in known]))
    assert set(together(*states).statistics) == expected


def test_a_state_from_before_declares_what_it_has_collected() -> None:
    header = replace(
        state(types={1: "long", -5: "joint(1:long, 2:string)", -9: "joint(1:int, 2:string)"}).header,
        rows=DistributionHeader((1,), (2,), 3, 10, 0),
    )
    found = Declared.of(header)
    assert (found.columns("histogram"), found.columns("top-k")) == ({1}, {2})
    assert (found.column_sets, found.sample) == (((1, 2),), 3)
    dropped = said(Declared().dropping_statistic(PAIR, 1).dropping_statistic(HISTOGRAM, 1)).header
    for order in permutations([header, dropped]):
        left = together(*order)
        assert (left.column_sets, left.columns("histogram"), left.columns("top-k")) == ((), set(), {2})


def test_what_was_dropped_while_its_state_was_written_stays_dropped() -> None:
    """The state still has what was collected of it."""
    header = replace(state().header, rows=DistributionHeader((1,), (), 0, 10, 0))
    both = said(
        together(said(Declared().dropping_statistic(HISTOGRAM, 5)).header, header),
        State(header, state().files),
    )
    assert Declared.of(both.header).statistics == ()


def test_a_kind_of_statistic_that_is_not_known_is_carried_on() -> None:
    unknown = Statistic("histogram-of-tomorrow", (1, 2), (("depth", "7"),))
    found = said(Declared().adding_statistic(unknown, 1).adding_statistic(HISTOGRAM, 2))
    assert together(found.header).statistics == (unknown, HISTOGRAM)
    assert together(found.header).columns("histogram") == {1}


def test_joining_twice_says_nothing_new() -> None:
    a = said(Declared().adding(ONE, 5)).header
    b = said(Declared().adding(ONE, 4).adding(TWO, 6).dropping(ONE, 7)).header
    for order in permutations([a, b]):
        found = together(*order)
        assert found.indexes == (TWO,)
        assert together(said(found).header, a, b) == found


def test_of_equals_the_first_counts() -> None:
    """The state about to be written has the types of today."""
    old = Declared().adding(ONE, 5)
    new = replace(old, indexes=(replace(ONE, type="string"),))
    assert together(said(new).header, said(old).header).indexes == new.indexes


def test_states_that_say_no_times_count_all_the_same() -> None:
    found = state()
    bare = replace(found.header, indexes=(ONE,))
    assert together(found.header, bare).indexes == (ONE,)
    assert together(bare, said(Declared().dropping(ONE, 1)).header).indexes == ()


# -- in a store


def test_a_state_of_another_snapshot_does_not_hide_it(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.publish(said(Declared().adding(ONE, 1), state(snapshot_id=20, sequence_number=2)))
    store.write_state(state(snapshot_id=10, sequence_number=1))  # written later, and knows nothing of it
    assert store.declared("uuid").indexes == (ONE,)
    assert store.declared("another table").indexes == ()
    written = store.publish(state(snapshot_id=30, sequence_number=3))
    assert written.header.indexes == (ONE,)


def test_a_declaration_while_another_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that becomes visible between the look and the write: the writer looks again, and says both."""
    store = store_in(tmp_path)
    plain = Store.write_state
    late = [said(Declared().adding(TWO, 9), state(snapshot_id=5, sequence_number=1))]

    def write(self: Store, new: State) -> str:
        if late:
            plain(self, late.pop())
        return plain(self, new)

    monkeypatch.setattr(Store, "write_state", write)
    written = store.publish(said(Declared().adding(ONE, 8), state(snapshot_id=7, sequence_number=3)))
    assert written.header.indexes == (ONE, TWO)
    newest = store.latest_first()[0]
    assert read_state(store.path(newest)).header.indexes == (ONE, TWO)
    # And what garbage collection leaves of it still says so.
    store.collect_garbage("uuid", [7], grace=0.0)
    assert store.declared("uuid").indexes == (ONE, TWO)


def test_statistics_declared_while_another_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_in(tmp_path)
    store.publish(said(Declared().adding_statistic(PAIR, 1)))
    plain = Store.write_state
    others = Declared().adding_statistic(Statistic("top-k", (2,)), 9).dropping_statistic(PAIR, 9)
    late = [said(others, state(snapshot_id=5, sequence_number=1))]

    def write(self: Store, new: State) -> str:
        if late:
            plain(self, late.pop())
        return plain(self, new)

    monkeypatch.setattr(Store, "write_state", write)
    mine = store.declared("uuid").adding_statistic(HISTOGRAM, 8)
    written = store.publish(said(mine, state(snapshot_id=7, sequence_number=3)))
    assert written.header.statistics == (HISTOGRAM, Statistic("top-k", (2,)))
    assert store.declared("uuid").statistics == written.header.statistics


def test_what_a_newer_version_declares_is_passed_over(tmp_path: Path) -> None:
    """Its words may mean something else; what older states say still holds."""
    store = store_in(tmp_path)
    store.publish(said(Declared().adding(ONE, 1).adding_statistic(HISTOGRAM, 1)))
    newer = said(Declared().dropping(ONE, 5).adding(TWO, 5).dropping_statistic(HISTOGRAM, 5))
    store.write_state(replace(newer, header=replace(newer.header, version=VERSION + 1)))
    found = store.declared("uuid")
    assert (found.indexes, found.statistics) == ((ONE,), (HISTOGRAM,))
    assert store.publish(state()).header.statistics == (HISTOGRAM,)


def test_a_state_of_version_1_declares(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    old = state(types={-5: "joint(1:long, 2:string)"}, thetas={})
    store.write_state(
        replace(old, header=replace(old.header, version=1, rows=DistributionHeader((1,), (), 0, 10, 0)))
    )
    assert set(store.declared("uuid").statistics) == {HISTOGRAM, PAIR}


def test_a_damaged_state_is_not_asked(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.publish(said(Declared().adding(ONE, 1)))
    store.write_state(state(snapshot_id=8))
    Path(store.path(store.latest_first()[0])).write_bytes(b"rubbish")
    assert store.declared("uuid").indexes == (ONE,)


# -- states of other versions


def write_json(store: Store, stated: dict[str, Any], found: State) -> None:
    path = store.path(state_name(found.header))
    Path(path).parent.mkdir(exist_ok=True)
    with ChecksumWriter(path) as writer:
        writer.add(Blob(HEADER_V1, json.dumps(stated).encode(), (), 7, 3))
        writer.add(Blob(FILES_V1, encode_table(found.files), (), 7, 3))


def as_json(found: State) -> dict[str, Any]:
    return json.loads(msgspec.json.encode(found.header))  # type: ignore[no-any-return]


NEW_KEYS = ("indexes", "declared_at", "statistics", "statistics_at")
NEW_ENTRY_KEYS = ("indexes", "size", "footer_size", "checksum")


def test_a_state_from_before_indexes_is_read(tmp_path: Path) -> None:
    from tests.sidecar.builders import segment, sketch

    store = store_in(tmp_path)
    one = segment(store, {1: [sketch(1)]})
    found = state([one], [(1, 0, 0)], thetas={})
    stated = as_json(found)
    for key in NEW_KEYS:
        del stated[key]
    for each in stated["segments"]:
        for key in NEW_ENTRY_KEYS:
            del each[key]
    write_json(store, stated, found)
    ((_, read),) = store.newest([])
    assert read.header == found.header
    assert read.header.indexes == ()
    store.check(read)  # its segments open without their sizes


@pytest.mark.parametrize(
    "change",
    [
        {"indexes": [{"kind": "bloom", "field_id": "one", "type": "long"}]},
        {"indexes": 7},
        {"declared_at": [1]},
        {"statistics": [{"kind": "histogram", "field_ids": "one"}]},
        {"statistics_at": [1]},
        {"version": 99},
        {"segments": [{}]},
        {"table_uuid": None},
    ],
)
def test_a_state_that_says_something_else_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: dict[str, Any]
) -> None:
    store = store_in(tmp_path)
    store.publish(said(Declared().adding(ONE, 1), state(snapshot_id=5, sequence_number=1)))
    found = state()
    write_json(store, as_json(found) | change, found)
    with caplog.at_level(logging.WARNING):
        assert [read.header.snapshot_id for _, read in store.newest([7, 5])] == [5]
    assert "is skipped" in caplog.text
    assert ONE in store.declared("uuid").indexes


def test_keys_to_come_are_no_matter(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    found = state()
    write_json(store, as_json(found) | {"something": "new"}, found)
    ((_, read),) = store.newest([])
    assert read.header == found.header


# -- others, and clocks


def test_states_of_other_tables_do_not_push_a_declaration_out(tmp_path: Path) -> None:
    """Tables may share one `rookery.location`."""
    store = store_in(tmp_path)
    store.publish(said(Declared().adding(ONE, 1)))
    for number in range(20):
        other = state(snapshot_id=100 + number)
        store.write_state(replace(other, header=replace(other.header, table_uuid=f"other {number}")))
    assert store.declared("uuid").indexes == (ONE,)


def test_a_change_is_later_than_one_of_a_clock_that_is_ahead(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.publish(said(Declared().adding(ONE, 1_000).adding_statistic(HISTOGRAM, 1_000)))
    mine = store.declared("uuid").dropping(ONE, 5).dropping_statistic(HISTOGRAM, 5)
    store.publish(said(mine))
    found = store.declared("uuid")
    assert (found.indexes, found.statistics) == ((), ())
    again = store.publish(said(found.adding(ONE, 6)))
    assert again.header.indexes == (ONE,)
