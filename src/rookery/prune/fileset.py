"""The live files of a snapshot as arrays: from the state's segments, and from new file lists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.indexes.view import SegmentPosition
from rookery.model import Field, Snapshot
from rookery.model.cache import nbytes_of
from rookery.prune.bounds import UNKNOWN, Bounds
from rookery.sidecar import Index, Segment, State, Store
from rookery.sidecar.live import Live, live_files
from rookery.sidecar.usable import from_best_cached_state, from_best_state
from rookery.sidecar.zone_map import FILE_COLUMNS, ZoneMap, column_of, proven
from rookery.tables import Table
from rookery.values.canonical import bound_from_bytes, is_float


class FileSet:
    """The files, numbered from 0: those that the state knows by segment and ordinal, then the fresh ones."""

    def __init__(self, store: Store, state: State | None, live: Live) -> None:
        self.store = store
        self.state = state
        self.live = live
        self.notes: list[str] = []
        self._bounds: dict[tuple[int, str], Bounds] = {}
        self._opened: dict[int, Segment] = {}
        self._fresh_zone: ZoneMap | None = None
        known, first = self._number(live)
        self._homes = known[first]
        new = ~self._is_known(live, known)
        fresh = live.decoded.filter(pa.array(new))
        self._fresh = fresh
        # The number of the list that names each file, in the order of the snapshot's lists.
        self.lists = np.concatenate([self._listed[self._homes], live.decoded_lists[new]])
        self.files = pa.concat_tables(
            [*self._home_tables(), fresh.select(list(FILE_COLUMNS))], promote_options="default"
        ).combine_chunks()
        self._unpaid = (state.bytes_read if state is not None else 0) + self.index_bytes()

    def __len__(self) -> int:
        return int(self.files.num_rows)

    @property
    def nbytes(self) -> int:
        """Its approximate memory; its state and segments are counted separately."""
        tables = (
            self.files,
            self._fresh,
            self.live.decoded,
            *([self._rows] if self.state is not None else []),
        )
        return int(sum(part.nbytes for part in (*tables, *list(self._bounds.values()))))

    @property
    def fresh(self) -> int:
        """How many files no segment describes."""
        return int(self._fresh.num_rows)

    @cached_property
    def order(self) -> str:
        """A digest of the paths of the files in their order, which changes when they are listed again."""
        paths = json.dumps(self.files["path"].to_pylist())
        return hashlib.blake2b(paths.encode(), digest_size=16).hexdigest()

    def _number(self, live: Live) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sort the state's live rows by segment and ordinal; a file's first segment is its home."""
        if self.state is None:
            none = np.empty(0, np.int64)
            self._codes = none
            self._listed = np.empty(0, np.int32)
            return none, none
        files = self.state.files.take(pa.array(live.carried))
        order = np.lexsort((files["ordinal"].to_numpy(), files["segment"].to_numpy()))
        self._rows = files.take(pa.array(order)).combine_chunks()
        self._listed = live.carried_lists[order]
        keys = self._rows["key"].combine_chunks().dictionary_encode()
        codes = np.asarray(keys.indices, np.int64)  # numbered in the order in which they first occur
        self._codes = codes
        first = np.zeros(len(keys.dictionary), np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        return np.arange(len(codes)), first

    def _is_known(self, live: Live, known: NDArray[np.int64]) -> NDArray[np.bool_]:
        if self.state is None or not len(known):
            return np.zeros(live.decoded.num_rows, bool)
        is_known = pc.is_in(live.keys, value_set=self._rows["key"].combine_chunks())
        return np.asarray(is_known.to_numpy(zero_copy_only=False), bool)

    @cached_property
    def places(self) -> list[SegmentPosition]:
        """Every segment's live files, a file once in each segment that describes it."""
        if self.state is None:
            return []
        segments, ordinals = self._rows["segment"].to_numpy(), self._rows["ordinal"].to_numpy()
        return [
            SegmentPosition(number, self._codes[start:end], ordinals[start:end].astype(np.int64))
            for number, start, end in _runs(segments)
        ]

    @cached_property
    def _home_places(self) -> list[SegmentPosition]:
        """The same, with each file in its home only; together they are the files in their order."""
        if self.state is None:
            return []
        rows = self._rows.take(pa.array(self._homes))
        segments, ordinals = rows["segment"].to_numpy(), rows["ordinal"].to_numpy()
        return [
            SegmentPosition(number, np.arange(start, end), ordinals[start:end].astype(np.int64))
            for number, start, end in _runs(segments)
        ]

    def _home_tables(self) -> Iterator[pa.Table]:
        for place in self._home_places:
            files = self.segment(place.segment).files
            yield _taken(files, place.ordinals)

    def segment(self, number: int) -> Segment:
        """Return a segment of the state; they never change, so they are cached."""
        assert self.state is not None
        if number in self._opened:
            return self._opened[number]
        entry = self.state.header.segments[number]
        key = ("segment", self.store.path(entry.name))
        opened = self.store.cache.get(key, lambda: self.store.recall_segment(entry), nbytes_of)
        self._opened[number] = opened
        return opened

    def having(self, index: Index) -> list[SegmentPosition]:
        """Return the places of the segments that hold an index."""
        assert self.state is not None
        entries = self.state.header.segments
        return [place for place in self.places if index in entries[place.segment].indexes]

    def covered(self, index: Index) -> NDArray[np.bool_]:
        """Return which files an index covers."""
        is_covered = np.zeros(len(self), bool)
        for place in self.having(index) if self.state is not None else ():
            is_covered[place.numbers] = True
        return is_covered

    @cached_property
    def sketched_whole(self) -> NDArray[np.bool_]:
        """The files whose distinct values are known for every row that may be live.

        Those of a file with deletes are of the rows left at that time; deletes may be undone.
        """
        if self.live.same_deletes:
            return np.ones(len(self), bool)
        return np.asarray(pc.equal(self.files["deletes"], "").to_numpy(), bool)

    @cached_property
    def repeats_paths(self) -> bool:
        """Whether a file is listed twice."""
        return bool(pc.count_distinct(self.files["path"]).as_py() < len(self))

    def opening_cost(self) -> int:
        """How many bytes were read to load the files, counted once: they are cached."""
        unpaid, self._unpaid = self._unpaid, 0
        return unpaid

    def index_bytes(self) -> int:
        """How many bytes of the segments were read so far, by all users."""
        return sum(segment.bytes_read for segment in list(self._opened.values()))

    def expect_all_columns(self) -> None:
        """Announce that bounds of many columns will be read, so that maps of lists are converted once."""
        if self._fresh_zone is None:
            self._fresh_zone = ZoneMap.of(self._fresh)

    def bounds(self, field: Field) -> Bounds:
        """Return the bounds of a column in each file."""
        key = (field.id, field.type)  # whether it is nested never changes
        if key not in self._bounds:
            parts = [
                _taken(self.segment(place.segment).zone_column(field.id), place.ordinals)
                for place in self._home_places
            ]
            fresh = self._fresh_zone
            parts.append(column_of(self._fresh, field.id) if fresh is None else fresh.column(field.id))
            self._bounds[key] = _bounds(field.type, proven(field, pa.concat_tables(parts), self.files))
        return self._bounds[key]


def _bounds(kind: str, zone: pa.Table) -> Bounds:
    lower, upper = (bound_from_bytes(kind, zone[name]) for name in ("lower", "upper"))
    counts = [
        zone[name].fill_null(UNKNOWN).combine_chunks().to_numpy(zero_copy_only=False)
        for name in ("values", "nulls", "nans")
    ]
    if not is_float(kind):
        counts[2] = np.zeros(len(zone), np.int64)
    return Bounds(lower, upper, *counts)


def _runs(segments: NDArray[np.int32]) -> Iterator[tuple[int, int, int]]:
    """The runs of equal numbers in a sorted array: number, start, end."""
    numbers, starts = np.unique(segments, return_index=True)
    ends = [*starts.tolist(), len(segments)][1:]  # none, where a state knows no file that is live
    yield from zip(numbers.tolist(), starts.tolist(), ends, strict=True)


def _taken(table: pa.Table, places: NDArray[np.int64]) -> pa.Table:
    if len(places) == table.num_rows:  # ascending, so they are all in order
        return table
    return table.take(pa.array(places))


def unchanged_file_set(table: Table, store: Store, snapshot: Snapshot) -> FileSet | None:
    """Return the live files by the best state; files whose deletes have changed since are not described.

    None if there is no state that can be read.
    """

    def described_by(state: State) -> FileSet:
        return FileSet(store, state, live_files(table, snapshot, state, decode_all=False))

    return from_best_state(table, store, snapshot, described_by)


def described_file_set(
    table: Table, store: Store, snapshot: Snapshot, notes: list[str] | None = None
) -> FileSet | None:
    """Return the live files of a snapshot by the best state that can be read; None if there is none.

    Why a state is passed over is added to *notes*.
    """

    def described_by(state: State) -> FileSet:
        # Facts about all rows of a file are valid for any later deletes.
        grown = any(ancestor.id == state.header.snapshot_id for ancestor in table.ancestors(snapshot))
        return store.cache.get(
            ("file set", store.path(state.name), snapshot.id),
            lambda: FileSet(
                store, state, live_files(table, snapshot, state, decode_all=False, whatever_deletes=grown)
            ),
            nbytes_of,
        )

    return from_best_cached_state(table, store, snapshot, described_by, [] if notes is None else notes)


def file_set(table: Table, store: Store, snapshot: Snapshot) -> FileSet:
    """Return the live files of a snapshot, by the best state that can be read, or by file lists alone."""
    notes: list[str] = []
    fileset = described_file_set(table, store, snapshot, notes)
    if fileset is None:
        fileset = store.cache.get(
            ("file set", table.location, table.uuid, snapshot.id),
            lambda: FileSet(store, None, live_files(table, snapshot, None, decode_all=True)),
            nbytes_of,
        )
    fileset.notes[:] = notes  # it may be cached from when more, or fewer, states could be read
    return fileset
