"""Merging segments: few segments for many refreshes, no file lost, and no damaged one in the way."""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.collect import tiers
from rookery.collect.tiers import FAN, MAX_SIZE, choose_merges, merge_tiers
from rookery.model import StorageError
from rookery.sidecar import SegmentEntry, State, Store, store_of
from rookery.sketch import MAX_FILES, union
from tests.collect.by_rows import analyse_by_rows, sketch_of
from tests.sidecar.builders import segment, sketch, state, store_in
from tests.tables.memory_format import MemoryWriter

FILES = st.sampled_from([1, 9, 100, 200, MAX_FILES])
SIZES = st.sampled_from([1, MAX_SIZE // FAN, MAX_SIZE // FAN + 1])
ALIKE = st.tuples(FILES, st.floats(0, 1), st.sampled_from([(1,), (1, 2)]), SIZES, st.integers(1, 10))


@given(st.lists(ALIKE, max_size=6), st.randoms())
def test_what_is_chosen(alike: list[tuple[int, float, tuple[int, ...], int, int]], rng: Random) -> None:
    segments = [segment for *segment, count in alike for _ in range(count)]
    rng.shuffle(segments)
    entries = [
        SegmentEntry(str(n), files, ids, size=size) for n, (files, _, ids, size) in enumerate(segments)
    ]
    live = [round(files * share) for files, share, _, _ in segments]
    merges = choose_merges(entries, live)
    chosen = [number for batch in merges for number in batch]
    assert len(chosen) == len(set(chosen))
    for batch in merges:
        assert sum(live[number] for number in batch) <= MAX_FILES
        if len(batch) == 1:
            assert live[batch[0]] < entries[batch[0]].files / 2
        else:
            assert len(batch) == FAN
            assert len({entries[number].field_ids for number in batch}) == 1
            assert sum(entries[number].size for number in batch) <= MAX_SIZE
            assert max(live[number] for number in batch) < FAN * max(1, *(live[number] for number in batch))


def test_segments_stay_few_and_no_file_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "FAN", 3)
    writer = MemoryWriter(tmp_path, {"id": "long"})
    store = store_of(writer.open())
    counts = []
    for number in range(29):
        writer.append([{"id": number}, {"id": 1000 + number % 3}])
        found = analyse_by_rows(writer, store)
        counts.append(len(found.header.segments))
    assert sorted(entry.files for entry in found.header.segments) == [1, 1, 27]
    assert max(counts) == 6  # two of one file, two of three, two of nine
    assert_files(writer, store, found)


def assert_files(writer: MemoryWriter, store: Store, found: State) -> None:
    """Every live file is in a segment once, with its own sketch and under its own ordinal."""
    table = writer.open()
    (field,) = table.fields()
    seen = []
    for number, entry in enumerate(found.header.segments):
        mask = found.live(number)
        with store.open_segment(entry) as opened:
            theta, paths = opened.thetas(frozenset({field.id}))[field.id], opened.files["path"].to_pylist()
            for place in range(entry.files):
                if mask[place]:
                    only = mask & False
                    only[place] = True
                    assert theta.sketch(only) == sketch_of(writer, paths[place], field)
                    seen.append(paths[place])
    live = table.read_files(table.file_lists(table.snapshot()))["path"].to_pylist()
    assert sorted(seen) == sorted(live)
    assert found.thetas[field.id] == union(sketch_of(writer, path, field) for path in live)


def test_a_segment_that_is_mostly_dead_is_made_smaller(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    sketches = [sketch(n + 1) for n in range(100)]
    entry = segment(store, {1: sketches})
    alive = [(n, 0, n) for n in range(1, 100, 3)]
    found = merge_tiers(store, state([entry], alive))
    (smaller,) = found.header.segments
    assert smaller.files == len(alive) == 33
    assert smaller.size == Path(store.path(smaller.name)).stat().st_size
    assert smaller.size < Path(store.path(entry.name)).stat().st_size
    with store.open_segment(smaller) as opened:
        assert opened.files["path"].to_pylist() == [f"file-{n}" for n, _, _ in alive]
        assert opened.thetas()[1].sketch() == sketch(*(n + 1 for n, _, _ in alive))
    assert found.files["ordinal"].to_pylist() == list(range(33))


def eight(store: Store) -> State:
    entries = [segment(store, {1: [sketch(n + 1)]}, first=n) for n in range(2 * FAN)]
    return state(entries, [(n, n, 0) for n in range(2 * FAN)])


@pytest.mark.parametrize("damage", ["gone", "cut", "payload"])
def test_segments_of_which_one_is_damaged_are_left(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be read is not merged; the others are, and the state is as before for every reader."""
    store = store_in(tmp_path)
    before = eight(store)
    path = Path(store.path(before.header.segments[3].name))
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:-9])
    else:
        data[8:40] = bytes(32)
        path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        after = merge_tiers(store, before)
    assert "segments are not merged" in caplog.text
    assert [entry.files for entry in after.header.segments] == [1] * FAN + [FAN]
    assert after.header.segments[:FAN] == before.header.segments[:FAN]
    assert after.files["key"].equals(before.files["key"])
    assert after.files["segment"].to_pylist() == [*range(FAN), *[FAN] * FAN]
    assert after.files["ordinal"].to_pylist() == [0] * FAN + list(range(FAN))


def test_an_analysis_goes_on_beside_a_damaged_segment(tmp_path: Path) -> None:
    writer = MemoryWriter(tmp_path, {"id": "long"})
    store = store_of(writer.open())
    for number in range(FAN - 1):
        writer.append([{"id": number}])
        found = analyse_by_rows(writer, store)
    path = Path(store.path(found.header.segments[2].name))
    path.write_bytes(path.read_bytes()[:8] + bytes(32) + path.read_bytes()[40:])
    writer.append([{"id": 77}])
    found = analyse_by_rows(writer, store)
    assert (found.files.num_rows, len(found.header.segments), found.ndv(1)) == (FAN, FAN, FAN)
    found = analyse_by_rows(writer, store, full=True)
    assert [entry.files for entry in found.header.segments] == [FAN]


def test_a_store_that_does_not_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_in(tmp_path)
    before = eight(store)

    def fail(*_: object) -> None:
        raise StorageError("no access")

    monkeypatch.setattr(tiers.Store, "open_segment", fail)
    with pytest.raises(StorageError, match="no access"):
        merge_tiers(store, before)
