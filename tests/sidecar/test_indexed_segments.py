"""Segments with indexes: what opening and probing cost, and that merging in tiers keeps every answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.collect.keep import _drop_dead
from rookery.collect.tiers import merge_tiers
from rookery.indexes.bitmap import bitmaps_of, directory_of, whole_index
from rookery.indexes.bloom import matrices, probe
from rookery.model import RookeryError
from rookery.sidecar import FILES_SCHEMA, Index, SegmentEntry, State, Store
from rookery.sketch.bloom_matrix import header_size
from rookery.sketch.value_hashes import bloom_hashes
from tests.sidecar.builders import segment, sketch, state, store_in
from tests.sidecar.indexed import (
    BITMAP,
    BLOOM,
    File,
    bitmap_of,
    blooms_of,
    indexed_segment,
    rows_with,
    zone_of,
)

WORDS = ["a", "b", "c", None]
few = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def make_file(number: int, rng: np.random.Generator, rows: int, **options: bool) -> File:
    keys = tuple(int(key) for key in rng.integers(0, 10_000, rows))
    return File(f"file-{number}", keys, tuple(WORDS[at] for at in rng.integers(0, 4, rows)), **options)


def hash_of(key: int) -> int:
    (found,) = bloom_hashes("long", key) or ()
    return found


def maybe(store: Store, entry: SegmentEntry, key: int) -> dict[int, bool]:
    """Whether each file that has a filter may hold a key, by ordinal."""
    with store.open_segment(entry) as opened:
        probed = list(probe(opened, 1, [hash_of(key)]))
    return {
        n: bool(yes) for ordinals, found in probed for n, yes in zip(ordinals.tolist(), found, strict=True)
    }


# -- what it costs


def test_opening_takes_one_read_of_the_footer(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entry = indexed_segment(store, [make_file(n, np.random.default_rng(n), 3000) for n in range(4)])
    for opened in (store.open_segment(entry), store.recall_segment(entry)):
        with opened:
            assert opened._reader.source.reads == 1
            assert opened.bytes_read == entry.footer_size < entry.size


def test_probing_reads_the_header_and_one_row_a_hash(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    files = [make_file(n, np.random.default_rng(n), 3000) for n in range(4)]
    entry = indexed_segment(store, files)
    matrices = blooms_of(files)
    assert sum(len(matrix.encode()) for matrix in matrices) > 10_000  # so that a range is not all of it
    header = sum(header_size(len(matrix.ordinals)) for matrix in matrices)
    row = sum(matrix.header.row_size for matrix in matrices)
    with store.open_segment(entry) as opened:
        list(probe(opened, 1, [hash_of(1), hash_of(2), hash_of(3)]))
        assert opened.bytes_read == entry.footer_size + header + 3 * row
        assert opened._reader.source.reads == 1 + 4 * len(matrices)
        list(probe(opened, 1, [hash_of(4)]))  # the header is known by now
        assert opened.bytes_read == entry.footer_size + header + 4 * row


def test_a_value_of_a_bitmap_reads_the_directory_and_its_own_bitmap(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entry = indexed_segment(store, [make_file(n, np.random.default_rng(n), 3000) for n in range(4)])
    with store.open_segment(entry) as opened:
        directory = directory_of(opened, 2)
        assert directory is not None
        after_directory = opened.bytes_read
        bitmaps_of(opened, 2, [1])
        assert opened.bytes_read - after_directory == directory.entry(1)[1]
        assert opened.bytes_read < entry.size / 2


# -- the same after a merge


@given(data=st.data(), seed=st.integers(0, 2**32 - 1), theta=st.booleans())
@few
def test_merged_is_built_anew(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, seed: int, theta: bool
) -> None:
    """Eight segments, some of their files dead, some without an index, become the one built of the living."""
    store = store_in(tmp_path_factory.mktemp("merged"))
    rng = np.random.default_rng(seed)
    groups: list[list[File]] = []
    for _ in range(8):
        count = int(rng.integers(1, 4))
        numbers = range(sum(map(len, groups)), sum(map(len, groups)) + count)
        groups.append(
            [
                make_file(
                    n,
                    rng,
                    int(rng.choice([1, 20, 300])),
                    in_bloom=bool(rng.random() < 0.9),
                    in_bitmap=bool(rng.random() < 0.9),
                )
                for n in numbers
            ]
        )
    entries = [indexed_segment(store, files, theta=theta) for files in groups]
    places = [(number, ordinal) for number, files in enumerate(groups) for ordinal in range(len(files))]
    dead = data.draw(st.sets(st.sampled_from([(9, 9), *(place for place in places if place[1])])))
    alive = [place for place in places if place not in dead]
    rows = [(at, number, ordinal) for at, (number, ordinal) in enumerate(alive)]
    before = state(entries, rows, thetas={}, types={})
    before = replace(before, header=replace(before.header, indexes=(BLOOM, BITMAP)))
    after = merge_tiers(store, before)
    assert len(after.header.segments) == 1
    (entry,) = after.header.segments
    living = [groups[number][ordinal] for number, ordinal in alive]
    assert (entry.files, entry.indexes) == (len(living), (BLOOM, BITMAP))
    assert after.files["ordinal"].to_pylist() == list(range(len(living)))
    with store.open_segment(entry) as merged:
        assert matrices(merged, 1) == blooms_of(living)
        found = whole_index(merged, 2)
        assert found is not None
        assert found == bitmap_of(living)
        assert merged.zone_map.equals(zone_of(living))
        assert merged.field_ids == ({1} if theta else set())
        # Ranges say what the whole says.
        directory = directory_of(merged, 2)
        assert directory is not None
        for number, value in enumerate(directory.values):
            assert bitmaps_of(merged, 2, [number])[0] == found.bitmap_of(value)
    for ordinal, file in enumerate(living):
        if file.in_bloom:
            assert all(maybe(store, entry, key)[ordinal] for key in file.keys[:3])
        if file.in_bitmap:
            for word in ("a", "b", "c"):
                expected = [at for at, each in enumerate(file.words) if each == word]
                assert rows_with(found, word, ordinal) == expected


def test_a_segment_of_other_indexes_is_not_merged_with_these(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    entries = [indexed_segment(store, [make_file(n, np.random.default_rng(n), 5)]) for n in range(8)]
    entries[3] = replace(entries[3], indexes=(BLOOM,))
    found = state(entries, [(n, n, 0) for n in range(8)], thetas={}, types={})
    assert merge_tiers(store, found) is found


def test_what_an_entry_no_longer_names_is_left_behind(tmp_path: Path) -> None:
    """A dropped index is not carried along, though the old segments still hold it."""
    store = store_in(tmp_path)
    entries = [indexed_segment(store, [make_file(n, np.random.default_rng(n), 5)]) for n in range(8)]
    entries = [replace(entry, indexes=(BITMAP,)) for entry in entries]
    after = merge_tiers(store, state(entries, [(n, n, 0) for n in range(8)], thetas={}, types={}))
    with store.open_segment(after.header.segments[0]) as merged:
        assert matrices(merged, 1) == []
        assert whole_index(merged, 2) is not None


@pytest.mark.parametrize("indexed", [True, False])
def test_more_rows_than_a_bitmap_has_room_for(tmp_path: Path, indexed: bool) -> None:
    """Eight segments of four thousand million rows and more: a bitmap index keeps them apart."""
    store = store_in(tmp_path)
    entries = [segment(store, {1: [sketch(n + 1)]}, first=n) for n in range(8)]
    if indexed:
        entries = [replace(entry, indexes=(BITMAP,)) for entry in entries]
    found = state(entries, [(n, n, 0) for n in range(8)])
    many = pa.array([2**29 + 1] * 8, pa.int64())
    found = replace(found, files=found.files.set_column(4, FILES_SCHEMA.field("rows"), many))
    after = merge_tiers(store, found)
    assert len(after.header.segments) == (8 if indexed else 1)


def test_rows_of_a_zone_map_set_no_limit_without_bitmaps(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    files = [replace(make_file(n, np.random.default_rng(n), 3), in_bitmap=False) for n in range(8)]
    entries = []
    for file in files:
        zone = zone_of([file])
        rows = zone.files.set_column(3, "rows", pa.array([2**30], pa.int64()))
        assert zone.files.column_names[3] == "rows"
        entries.append(_zone_only(store, rows))
    after = merge_tiers(store, state(entries, [(n, n, 0) for n in range(8)]))
    assert len(after.header.segments) == 1
    with store.open_segment(after.header.segments[0]) as merged:
        assert merged.files["rows"].to_pylist() == [2**30] * 8


def _zone_only(store: Store, files: pa.Table) -> SegmentEntry:
    from rookery.sidecar import Contents, ZoneMap, write_segment

    location = store.segment_path()
    contents = Contents(ZoneMap(files, {}))
    write_segment(location, contents, snapshot_id=1, sequence_number=1, io_properties={})
    return SegmentEntry(location.rpartition("/")[2], files.num_rows, (), 9)


# -- the dead and the useless


def entry(name: str, field_ids: tuple[int, ...], *indexes: Index) -> SegmentEntry:
    return SegmentEntry(name, 2, field_ids, indexes=indexes)


def dropped(found: State, *indexes: Index) -> tuple[list[str], list[tuple[int, int]]]:
    segments, files = _drop_dead(found.header.segments, found.files, set(indexes))
    rows = zip(files["segment"].to_pylist(), files["ordinal"].to_pylist(), strict=True)
    return [each.name for each in segments], list(rows)


def test_drop_dead() -> None:
    entries = [
        entry("dead", (1,)),
        entry("both", (1,), BLOOM),
        entry("index", (), BLOOM),
        entry("column", (1,)),
    ]
    found = state(entries, [(1, 1, 0), (2, 1, 1), (3, 2, 0), (1, 3, 1)])
    names, rows = dropped(found, BLOOM)
    assert (names, rows) == (["both", "index", "column"], [(0, 0), (0, 1), (1, 0), (2, 1)])
    names, rows = dropped(found)  # the index was taken back: what has nothing else goes
    assert (names, rows) == (["both", "column"], [(0, 0), (0, 1), (1, 1)])
    kept, _ = _drop_dead(found.header.segments, found.files, set())
    assert {each.indexes for each in kept} == {()}
    another = replace(BLOOM, fpp=0.5)
    kept, _ = _drop_dead(found.header.segments, found.files, {another})
    assert {each.indexes for each in kept} == {()}  # of another rate is another index
    typed = Index("bloom", 1, "int", BLOOM.fpp)
    assert dropped(found, typed)[0] == ["both", "column"]


def test_drop_dead_of_nothing() -> None:
    assert dropped(state([entry("a", (1,))], [])) == ([], [])


# -- the segment that is meant


def test_another_segment_in_its_place_is_noticed(tmp_path: Path) -> None:
    """It is whole, it is as long, and it is of other files."""
    store = store_in(tmp_path)
    one = indexed_segment(store, [File("file-1", (1, 2), ("a", "b"))])
    other = indexed_segment(store, [File("file-2", (3, 4), ("a", "b"))])
    assert (one.size, one.footer_size) == (other.size, other.footer_size)
    Path(store.path(one.name)).write_bytes(Path(store.path(other.name)).read_bytes())
    for opening in (store.open_segment, store.recall_segment):
        with pytest.raises(RookeryError, match="checksum"):
            opening(one)
    with pytest.raises(RookeryError, match="checksum"):
        store.check(state([one]))
    store.check(state([other]))
