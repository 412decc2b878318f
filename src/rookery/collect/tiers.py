"""Merging segments that are many, or have few live files; no data file is read.

Segments are sorted into tiers by the number of their live files, each tier eight times the one before. Eight
of a tier, for the same columns, become one of the next; so a refresh rarely merges, and segments stay few.

A segment with an index of a kind that is not known here is left as it is: the index could not be merged, and
the version that built it would have to read the files again. There are never many: this version writes none.
So are segments of which one cannot be read: what they describe is not needed here, and an analysis goes on.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.indexes import KINDS, MergeInput
from rookery.model import UNUSABLE_FILE
from rookery.sidecar.checksums import footer_checksum
from rookery.sidecar.lengths import unknown_lengths
from rookery.sidecar.segment import Contents, Segment, write_segment
from rookery.sidecar.state import FILES_SCHEMA, Index, SegmentEntry, State
from rookery.sidecar.store import Store
from rookery.sidecar.zone_map import ZoneMap
from rookery.sketch import MAX_FILES, InvertedTheta

log = logging.getLogger(__name__)

FAN = 8
MAX_SIZE = 512 << 20  # bytes of segments that become one; they are in memory meanwhile
_MOSTLY_DEAD = 0.5
_WORTH_SHRINKING = 64  # files; a small segment with few live files is cheap


def choose_merges(entries: Sequence[SegmentEntry], live: Sequence[int]) -> list[list[int]]:
    """Return which segments become one, by their numbers.

    >>> entries = [SegmentEntry(str(n), 1, (1,)) for n in range(9)]
    >>> choose_merges(entries, [1] * 9)
    [[0, 1, 2, 3, 4, 5, 6, 7]]
    """
    tiers: defaultdict[tuple[int, tuple[int, ...], tuple[Index, ...]], list[int]] = defaultdict(list)
    for number, (entry, count) in enumerate(zip(entries, live, strict=True)):
        tiers[_tier(count), entry.field_ids, entry.indexes].append(number)
    merges: list[list[int]] = []
    for members in tiers.values():
        for start in range(0, len(members) - FAN + 1, FAN):
            batch = members[start : start + FAN]
            size = sum(entries[number].size for number in batch)
            if sum(live[number] for number in batch) <= MAX_FILES and size <= MAX_SIZE:
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
    entries = list(state.header.segments)
    masks = [state.live(number) for number in range(len(entries))]
    merges = choose_merges(entries, [int(mask.sum()) for mask in masks])
    merges = [batch for batch in merges if _fits(state, batch)]
    if not merges:
        return state
    files = state.files
    segment, ordinal = files["segment"].to_numpy().copy(), files["ordinal"].to_numpy().copy()
    merged: set[int] = set()
    for batch in merges:
        try:
            entry = _merge(store, state, [(entries[number], masks[number]) for number in batch])
        except UNUSABLE_FILE as error:
            log.warning("segments are not merged, `analyze --full` replaces them: %s", error)
            continue
        merged.update(batch)
        offset = 0
        for number in batch:
            in_segment = segment == number
            places = np.cumsum(masks[number]) - 1 + offset
            ordinal[in_segment] = places[ordinal[in_segment]]
            segment[in_segment] = len(entries)
            offset += int(masks[number].sum())
        entries.append(entry)
    return _renumbered(state, entries, merged, segment, ordinal) if merged else state


def _fits(state: State, batch: Sequence[int]) -> bool:
    """Whether each index of a batch, whose segments all have the same indexes, can hold the rows of all."""
    in_batch = np.isin(state.files["segment"].to_numpy(), batch)
    rows = state.files["rows"].to_numpy()[in_batch]
    kinds = (KINDS.get(index.kind) for index in state.header.segments[batch[0]].indexes)
    return all(kind is not None and kind.fits(rows) for kind in kinds)


def _merge(
    store: Store, state: State, parts: Sequence[tuple[SegmentEntry, NDArray[np.bool_]]]
) -> SegmentEntry:
    """Merge several segments into one; only their live files are kept."""
    thetas: defaultdict[int, list[InvertedTheta]] = defaultdict(list)
    first = parts[0][0]
    counts = [int(mask.sum()) for _, mask in parts]
    total = sum(counts)
    with ExitStack() as stack:
        segments = [stack.enter_context(store.open_segment(entry)) for entry, _ in parts]
        zone_maps = [
            segment.zone_map.filter(mask) for segment, (_, mask) in zip(segments, parts, strict=True)
        ]
        rows = np.concatenate([zone.files["rows"].to_numpy() for zone in zone_maps])
        inputs = [
            MergeInput(segment, mask, offset)
            for segment, (_, mask), offset in zip(segments, parts, accumulate([0, *counts]), strict=False)
        ]
        for one in inputs:
            for field_id, theta in one.segment.thetas(frozenset(first.field_ids)).items():
                thetas[field_id].append(theta.moved(one.kept, one.offset, total))
        contents = Contents(
            ZoneMap.concat(zone_maps),
            {field_id: InvertedTheta.merge(parts) for field_id, parts in thetas.items()},
            _lengths(segments, [mask for _, mask in parts], first.field_ids),
        )
        written = write_segment(
            store.segment_path(),
            contents,
            (
                blob
                for index in first.indexes
                for blob in KINDS[index.kind].merge_segments(index, inputs, rows)
            ),
            snapshot_id=state.header.snapshot_id,
            sequence_number=state.header.sequence_number,
            io_properties=store.io_properties,
        )
    return replace(
        first,
        name=written.location.rpartition("/")[2],
        files=total,
        last_column_id=max(entry.last_column_id for entry, _ in parts),
        size=written.size,
        footer_size=written.footer_size,
        checksum=footer_checksum(written.metadata),
    )


def _lengths(
    segments: Sequence[Segment], masks: Sequence[NDArray[np.bool_]], field_ids: Sequence[int]
) -> dict[int, pa.Table]:
    """The lengths of the live files, one segment below the other."""
    known = [segment.lengths(field_ids) for segment in segments]
    return {
        field_id: pa.concat_tables(
            [
                lengths.get(field_id, unknown_lengths(len(mask))).filter(pa.array(mask))
                for lengths, mask in zip(known, masks, strict=True)
            ]
        )
        for field_id in sorted({number for lengths in known for number in lengths})
    }


def _renumbered(
    state: State,
    entries: Sequence[SegmentEntry],
    merged: set[int],
    segment: NDArray[np.int32],
    ordinal: NDArray[np.int16],
) -> State:
    kept = [number for number in range(len(entries)) if number not in merged]
    numbers = np.full(len(entries), -1, np.int32)
    numbers[kept] = np.arange(len(kept), dtype=np.int32)
    files = state.files.set_column(1, FILES_SCHEMA.field("segment"), pa.array(numbers[segment]))
    files = files.set_column(2, FILES_SCHEMA.field("ordinal"), pa.array(ordinal))
    return state.with_segments(tuple(entries[number] for number in kept), files)
