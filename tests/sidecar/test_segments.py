"""Segments: their bytes, their merging in tiers, and the collection of what nobody names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rookery.collect.tiers import choose_merges, merge_tiers
from rookery.model import RookeryError
from rookery.sidecar import SegmentEntry, Store
from rookery.sidecar.zone_map import COLUMN_SCHEMA
from rookery.sketch import MAX_FILES, K, ThetaSketch
from rookery.tables import FILE_SCHEMA
from tests.sidecar.builders import segment, sketch, state, store_in, union_of, zone_map
from tests.sketch.reference import random_hashes

NOW = 0.0  # seconds of grace: whatever is unnamed may go


def test_round_trip(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entry = segment(store, {1: [sketch(1, 2), sketch(2, 3)], 8: [sketch(), sketch(9)]})
    with store.open_segment(entry) as found:
        assert found.field_ids == {1, 8}
        assert found.zone_map.equals(zone_map(2))
        thetas = found.thetas()
        assert thetas.keys() == {1, 8}
        assert thetas[1].sketch(np.array([False, True])) == sketch(2, 3)
        assert thetas[8].sketch() == sketch(9)
        assert found.thetas(frozenset({8})).keys() == {8}


def test_a_column_that_it_lacks(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entry = segment(store, {1: [sketch(1)]})
    with store.open_segment(entry) as found, pytest.raises(RookeryError, match="columns \\[2\\]"):
        found.thetas(frozenset({1, 2}))


def test_a_full_segment(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entry = segment(store, {1: [sketch(n + 1, 5000) for n in range(MAX_FILES)]})
    with store.open_segment(entry) as found:
        theta = found.thetas()[1]
    assert theta.with_hash(5000).all()
    assert np.flatnonzero(theta.with_hash(1000)).tolist() == [999]


@pytest.mark.parametrize("size", [0, 3, 40, -1])
def test_a_segment_that_is_cut(tmp_path: Path, size: int) -> None:
    store = store_in(tmp_path)
    entry = segment(store, {1: [sketch(1)]})
    path = Path(store.path(entry.name))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(RookeryError, match=entry.name), store.open_segment(entry) as found:
        found.thetas()


def test_a_segment_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(RookeryError, match="segment-gone"):
        store_in(tmp_path).open_segment(SegmentEntry("segment-gone.puffin", 1, (1,)))


# -- tiers


def entries(*files: int, field_ids: tuple[int, ...] = (1,)) -> list[SegmentEntry]:
    return [SegmentEntry(str(number), count, field_ids) for number, count in enumerate(files)]


def test_what_is_merged() -> None:
    assert choose_merges(entries(*[1] * 7), [1] * 7) == []
    assert choose_merges(entries(*[1] * 8), [1] * 8) == [list(range(8))]
    assert choose_merges(entries(*[1] * 17), [1] * 17) == [list(range(8)), list(range(8, 16))]
    assert choose_merges(entries(*[1] * 4, *[100] * 4), [1] * 4 + [100] * 4) == []
    others = [*entries(*[1] * 4), *entries(*[1] * 4, field_ids=(1, 2))]
    assert choose_merges(others, [1] * 8) == []  # of other columns
    assert choose_merges(entries(*[200] * 8), [200] * 8) == []  # more than a segment holds
    assert choose_merges(entries(200), [90]) == [[0]]  # mostly dead
    assert choose_merges(entries(200, 8), [110, 1]) == []


def test_a_merged_state_is_the_same_state(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    contents = [[sketch(10 * n + 1, 7777), sketch(10 * n + 2, 8888)] for n in range(8)]
    found = [segment(store, {1: parts}, first=2 * n, last_column_id=n) for n, parts in enumerate(contents)]
    files = [(2 * n + o, n, o) for n in range(8) for o in range(2) if (n, o) != (3, 1)]  # one file is dead
    before = state(found, files)
    after = merge_tiers(store, before)
    assert len(after.header.segments) == 1
    (entry,) = after.header.segments
    assert (entry.files, entry.field_ids, entry.last_column_id) == (15, (1,), 7)
    assert after.files["key"].equals(before.files["key"])
    assert union_of(store, after, 1) == union_of(store, before, 1)
    assert sketch(32).hashes[0] not in union_of(store, after, 1).hashes
    with store.open_segment(entry) as merged:
        paths = merged.files["path"].to_pylist()
        ordinals = dict(zip(after.files["key"].to_pylist(), after.files["ordinal"].to_pylist(), strict=True))
        for file, _, _ in files:
            ordinal = ordinals[file.to_bytes(16, "big")]
            assert paths[ordinal] == f"file-{file}"
            mask = np.zeros(15, bool)
            mask[ordinal] = True
            assert merged.thetas()[1].sketch(mask) == contents[file // 2][file % 2]


def test_large_sketches_merge(tmp_path: Path) -> None:
    """θ falls in the merging, and what lies below it is right."""
    store = store_in(tmp_path)
    hashes = [random_hashes(K, 2**62, seed) for seed in range(8)]
    found = [segment(store, {1: [ThetaSketch(one)]}, first=n) for n, one in enumerate(hashes)]
    before = state(found, [(n, n, 0) for n in range(8)])
    after = merge_tiers(store, before)
    exact = np.unique(np.concatenate(hashes))
    merged = union_of(store, after, 1)
    assert K <= len(merged.hashes) < 2 * K
    assert np.array_equal(merged.hashes, exact[exact < merged.theta])


# -- garbage


def write_states(store: Store, *snapshots: int) -> dict[int, tuple[str, str]]:
    """States of these snapshots, each with a segment of its own and one that all share: their two names."""
    shared = segment(store, {1: [sketch(1)]})
    found = {}
    for number, snapshot in enumerate(snapshots):
        own = segment(store, {1: [sketch(2)]})
        name = store.write_state(
            state([shared, own], [(1, 0, 0), (2, 1, 0)], snapshot_id=snapshot, sequence_number=number)
        )
        found[snapshot] = (name, own.name)
    found[0] = ("", shared.name)
    return found


def left(store: Store) -> set[str]:
    return {*store.names("state-", ".puffin"), *store.names("segment-", ".puffin")}


def test_states_follow_their_snapshots(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    found = write_states(store, 10, 20, 30)
    gone = store.collect_garbage("uuid", [20, 30], grace=NOW)
    assert set(gone) == set(found[10])
    assert left(store) == {*found[20], *found[30], found[0][1]}
    for name in store.names("state-", ".puffin"):
        assert name in {found[20][0], found[30][0]}


def test_the_newest_stays_even_if_its_snapshot_is_gone(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    found = write_states(store, 10, 20, 30)
    store.collect_garbage("uuid", [], grace=NOW)
    assert left(store) == {*found[30], found[0][1]}


def test_of_one_snapshot_only_the_last_state_stays(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    first = write_states(store, 10)
    second = write_states(store, 10)
    store.collect_garbage("uuid", [10], grace=NOW)
    assert left(store) == {*second[10], second[0][1]}
    assert first[10][0] not in left(store)


def test_the_young_are_spared(tmp_path: Path) -> None:
    """Another run may be about to name them."""
    store = store_in(tmp_path)
    write_states(store, 10, 20)
    unnamed = segment(store, {1: [sketch(5)]})
    before = left(store)
    assert store.collect_garbage("uuid", [10, 20]) == []
    assert left(store) == before
    store.collect_garbage("uuid", [10, 20], grace=NOW)
    assert left(store) == before - {unnamed.name}


def test_a_state_that_cannot_be_read_keeps_every_segment(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    found = write_states(store, 10, 20)
    segment(store, {1: [sketch(5)]})
    Path(store.path(found[10][0])).write_bytes(b"not a state")
    segments = set(store.names("segment-", ".puffin"))
    store.collect_garbage("uuid", [10, 20], grace=NOW)
    assert set(store.names("segment-", ".puffin")) == segments


def test_version_1_keeps_what_is_newest_by_time(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    for snapshot in (900, 100):
        store.write_state(state(snapshot_id=snapshot, sequence_number=0))
    store.collect_garbage("uuid", [], grace=NOW)
    assert [found.header.snapshot_id for _, found in store.newest([])] == [100]


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    write_states(store, 10)
    foreign = Path(store.path("README.txt"))
    foreign.write_text("mine")
    store.collect_garbage("uuid", [], grace=NOW)
    assert foreign.exists()


def test_a_zone_map_keeps_its_types(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entry = segment(store, {1: [sketch(1)]})
    with store.open_segment(entry) as found:
        assert found.zone_column(7).schema == COLUMN_SCHEMA
        assert found.zone_column(8).schema == COLUMN_SCHEMA  # of which nothing is known
        assert found.files.schema.field("partition").type == FILE_SCHEMA.field("partition").type
