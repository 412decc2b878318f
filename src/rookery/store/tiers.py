"""Merging segments that have piled up, or are mostly dead; no data file is read for it.

Segments are sorted into tiers by the number of their live files, each tier eight times the one before. Eight
of a tier, for the same columns, become one of the next; so a refresh seldom merges, and segments stay few.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.sketch import MAX_FILES, InvertedTheta
from rookery.store.segment import write_segment
from rookery.store.state import FILES_SCHEMA, SegmentEntry, State
from rookery.store.store import Store

FAN = 8
_MOSTLY_DEAD = 0.5
_WORTH_SHRINKING = 64  # files; a small segment that is mostly dead costs nothing


def choose_merges(entries: Sequence[SegmentEntry], live: Sequence[int]) -> list[list[int]]:
    """Return which segments become one, by their numbers.

    >>> entries = [SegmentEntry(str(n), 1, (1,)) for n in range(9)]
    >>> choose_merges(entries, [1] * 9)
    [[0, 1, 2, 3, 4, 5, 6, 7]]
    """
    tiers: defaultdict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for number, (entry, count) in enumerate(zip(entries, live, strict=True)):
        tiers[_tier(count), entry.field_ids].append(number)
    merges: list[list[int]] = []
    for members in tiers.values():
        for start in range(0, len(members) - FAN + 1, FAN):
            batch = members[start : start + FAN]
            if sum(live[number] for number in batch) <= MAX_FILES:
                merges.append(batch)
    taken = {number for batch in merges for number in batch}
    merges += [
        [number]
        for number, entry in enumerate(entries)
        if number not in taken
        and entry.files >= _WORTH_SHRINKING
        and 0 < live[number] < _MOSTLY_DEAD * entry.files
    ]
    return merges


def _tier(count: int) -> int:
    tier = 0
    while count >= FAN:
        count //= FAN
        tier += 1
    return tier


def merge_tiers(store: Store, state: State) -> State:
    """Return the state with its piled-up segments merged; it is the same state for every reader."""
    entries = list(state.index.segments)
    masks = [state.live(number) for number in range(len(entries))]
    merges = choose_merges(entries, [int(mask.sum()) for mask in masks])
    if not merges:
        return state
    files = state.files
    segment, ordinal = files["segment"].to_numpy().copy(), files["ordinal"].to_numpy().copy()
    for batch in merges:
        entry = _merge(store, state, [(entries[number], masks[number]) for number in batch])
        offset = 0
        for number in batch:
            mine = segment == number
            places = np.cumsum(masks[number]) - 1 + offset
            ordinal[mine] = places[ordinal[mine]]
            segment[mine] = len(entries)
            offset += int(masks[number].sum())
        entries.append(entry)
    return _renumbered(state, entries, {n for batch in merges for n in batch}, segment, ordinal)


def _merge(
    store: Store, state: State, parts: Sequence[tuple[SegmentEntry, NDArray[np.bool_]]]
) -> SegmentEntry:
    """Write the one segment that several become; only their live files go along."""
    total = sum(int(mask.sum()) for _, mask in parts)
    zone_maps: list[pa.Table] = []
    thetas: defaultdict[int, list[InvertedTheta]] = defaultdict(list)
    offset = 0
    for entry, mask in parts:
        with store.open_segment(entry.name) as segment:
            zone_maps.append(segment.zone_map.filter(pa.array(mask)))
            for field_id, theta in segment.thetas(frozenset(entry.field_ids)).items():
                thetas[field_id].append(theta.moved(mask, offset, total))
        offset += int(mask.sum())
    location = store.segment_path()
    write_segment(
        location,
        pa.concat_tables(zone_maps),
        {field_id: InvertedTheta.merge(found) for field_id, found in thetas.items()},
        snapshot_id=state.index.snapshot_id,
        sequence_number=state.index.sequence_number,
        io_properties=store.io_properties,
    )
    youngest = max(entry.last_column_id for entry, _ in parts)
    return SegmentEntry(location.rpartition("/")[2], total, parts[0][0].field_ids, youngest)


def _renumbered(
    state: State,
    entries: Sequence[SegmentEntry],
    gone: set[int],
    segment: NDArray[np.int32],
    ordinal: NDArray[np.int16],
) -> State:
    kept = [number for number in range(len(entries)) if number not in gone]
    numbers = np.full(len(entries), -1, np.int32)
    numbers[kept] = np.arange(len(kept), dtype=np.int32)
    files = state.files.set_column(1, FILES_SCHEMA.field("segment"), pa.array(numbers[segment]))
    files = files.set_column(2, FILES_SCHEMA.field("ordinal"), pa.array(ordinal))
    return state.with_segments(tuple(entries[number] for number in kept), files)
