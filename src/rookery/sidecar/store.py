"""The files stored beside one table: found by listing, written whole, deleted when no longer needed."""

from __future__ import annotations

import logging
import os
import re
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from rookery.io import Readable, ReopeningSource, list_folder, local_path, scheme_of, shown
from rookery.io.moving import delete_file
from rookery.model import UNUSABLE_FILE, MissingFileError, Place, StorageError
from rookery.model.cache import Cache
from rookery.sidecar import segment, state
from rookery.sidecar.checksums import DamagedError
from rookery.sidecar.declared import Declared, joined
from rookery.sidecar.state import (
    VERSION,
    SegmentEntry,
    State,
    StateHeader,
    parse_state_name,
    read_header,
    read_state,
    state_name,
    write_state,
)
from rookery.tables import Table

log = logging.getLogger(__name__)

LOCATION_PROPERTY = "rookery.location"
FOLDER_SUFFIX = ".rookery"
_UNFINISHED = re.compile(r"\.(?:segment|state|index-part)-.*\.tmp")
_PART = re.compile(r"index-part-[0-9a-f]{32}\.bin")  # others may keep theirs in the same folder
# In seconds, longer than a run takes: another process may be about to write the state that names a file.
GRACE = 24 * 3600.0
_RECENT = 8  # states that are read for what is declared
_ATTEMPTS = 8
_CHANGES: Counter[str] = Counter()  # by folder


def default_location(table_location: str, properties: Mapping[str, str]) -> str:
    """Beside the table, never inside it: `remove_orphan_files` deletes unreferenced files inside."""
    return properties.get(LOCATION_PROPERTY, table_location.rstrip("/") + FOLDER_SUFFIX).rstrip("/")


def store_of(table: Table, cache: Cache | None = None) -> Store:
    """Return the store of a table; it is accessed as the table's own files are."""
    location = default_location(table.location, table.properties)
    return Store(location, table.io_properties, Cache() if cache is None else cache)


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of a table's states and segments."""

    location: str
    io_properties: Mapping[str, str]
    cache: Cache = field(default_factory=Cache, compare=False, repr=False)

    def path(self, name: str) -> str:
        """Return the full location of a file in the folder."""
        return f"{self.location}/{name}"

    def listing(self) -> Mapping[str, int]:
        """Return the sizes of the files by name; a folder that cannot be listed is an error, not empty."""
        files = list_folder(self.location, self.io_properties, recursive=False)
        return {file.name: file.size for file in files}

    @property
    def changes(self) -> int:
        """How often this process has changed which states there are."""
        return _CHANGES[self.location]

    def names(self, prefix: str, suffix: str) -> list[str]:
        """List the files of one kind."""
        return sorted(name for name in self.listing() if name.startswith(prefix) and name.endswith(suffix))

    def states(self, names: Collection[str] | None = None) -> list[tuple[int, int, str]]:
        """Return sequence number, snapshot id and name of every state, newest last."""
        listed = self.names(state.PREFIX, state.SUFFIX) if names is None else names
        parsed_names = ((parse_state_name(name), name) for name in listed)
        known = [(*parsed, name) for parsed, name in parsed_names if parsed is not None]
        return sorted(known, key=_age)  # by time too: in version 1 all sequence numbers are 0

    def newest(self, preferred: Sequence[int], *, sketches: bool = True) -> Iterator[tuple[str, State]]:
        """Yield the readable states, best first: of *preferred* snapshots in their order, then others.

        Files are keyed by their identity and deletes; so a state of any snapshot can be a base.
        """
        for name in self.ranked(preferred):
            try:
                yield name, self.read_state(name, sketches=sketches)
            except UNUSABLE_FILE as error:
                log.warning("a state is skipped: %s", error)

    def read_state(self, name: str, *, sketches: bool = True, size: int | None = None) -> State:
        """Read a state of this folder."""
        loaded = read_state(self.path(name), self.io_properties, sketches=sketches, size=size)
        return replace(loaded, name=name)

    def sketched_state(self, name: str) -> State:
        """Return a state with its sketches; states never change, so it is cached."""
        key = ("state with sketches", self.path(name))
        return self.cache.get(key, lambda: self.read_state(name), lambda found: found.nbytes_with_sketches)

    def ranked(self, preferred: Sequence[int], names: Collection[str] | None = None) -> list[str]:
        """Return the names of all states, or of those among *names*, best first, as `newest` has them."""
        rank = {snapshot: number for number, snapshot in enumerate(preferred)}
        latest_first = self.states(names)[::-1]
        best_first = sorted(latest_first, key=lambda entry: rank.get(entry[1], len(rank)))
        return [name for _, _, name in best_first]

    def write_state(self, new: State) -> str:
        """Write a state and return its name."""
        name = state_name(new.header)
        self.make_folder()
        write_state(self.path(name), new, self.io_properties)
        _CHANGES[self.location] += 1
        return name

    def latest_first(self) -> list[str]:
        """Return the names of all states, of any snapshot, the one written last first."""
        names = [name for _, _, name in self.states()]
        return sorted(names, key=lambda name: name.rpartition("-")[2], reverse=True)

    def declared(self, table_uuid: str, *, first: Sequence[StateHeader] = ()) -> Declared:
        """Return what is declared on a table by any of the recent states.

        A state of a newer version is skipped: what it declares may have another meaning.
        """
        headers = list(first)
        for name in self.latest_first():
            with suppress(*UNUSABLE_FILE):  # it is reported when a state is chosen as a base
                header = read_header(self.path(name), self.io_properties)
                if header.table_uuid == table_uuid:  # the folder may be shared by tables
                    headers.append(header)
            if len(headers) - len(first) == _RECENT:
                break
        return joined(Declared.of(header) for header in headers if header.version <= VERSION)

    def publish(self, new: State) -> State:
        """Write a state with all that is declared by now, and return it.

        Another process may write at the same time. Each lists again after its own write, so at least one of
        them sees both, and writes what both declare.
        """
        for _ in range(_ATTEMPTS):
            seen = self.latest_first()
            new = self.declared(new.header.table_uuid, first=[new.header]).on(new)
            written = self.write_state(new)
            if set(self.latest_first()) <= {written, *seen}:
                break
        return new

    def segment_path(self) -> str:
        """Return the location of a segment to be."""
        self.make_folder()
        return self.path(segment.segment_name())

    def open_segment(self, entry: SegmentEntry) -> segment.Segment:
        """Open a segment that a state names; one that is not there is damage too."""
        return self._opened(self.path(entry.name), entry)

    def recall_segment(self, entry: SegmentEntry) -> segment.Segment:
        """Open a segment that stays cached: its file is open only while it is read."""
        source = ReopeningSource(self.path(entry.name), self.io_properties, entry.size, self.cache)
        return self._opened(source, entry)

    def _opened(self, what: Readable, entry: SegmentEntry) -> segment.Segment:
        sizes = {"size": entry.size, "footer_size": entry.footer_size}
        try:
            return segment.open_segment(what, self.io_properties, checksum=entry.checksum, **sizes)
        except MissingFileError as error:
            raise DamagedError(Place(shown(self.path(entry.name))), "a segment", str(error)) from error

    def check(self, loaded: State) -> None:
        """Check that the segments which a state names exist, and have the checksums that it states."""
        there = set(self.names(segment.PREFIX, segment.SUFFIX))
        for entry in loaded.header.segments:
            if entry.name not in there:
                raise DamagedError(Place(shown(self.path(entry.name))), "a segment", "no such file")
            self.open_segment(entry).close()

    def collect_garbage(
        self,
        table_uuid: str,
        snapshots: Collection[int],
        *,
        grace: float = GRACE,
        now: float | None = None,
    ) -> list[str]:
        """Delete what `garbage` returns, and return it."""
        to_delete = self.garbage(table_uuid, snapshots, grace=grace, now=now)
        for name in to_delete:
            delete_file(self.path(name), self.io_properties)
        _CHANGES[self.location] += 1
        return to_delete

    def garbage(
        self,
        table_uuid: str,
        snapshots: Collection[int],
        *,
        grace: float = GRACE,
        now: float | None = None,
    ) -> list[str]:
        """Return a table's states of expired snapshots, except the newest; unnamed segments; partial files.

        Nothing younger than *grace* seconds is returned, except states that a later one of their snapshot
        replaces. Other tables may keep theirs in the same folder: a state that cannot be read may be one of
        those, and is kept; so is every segment then, as it may name any.
        """
        before = (time.time() if now is None else now) - grace
        files = list_folder(self.location, self.io_properties, recursive=False)
        names = [file.name for file in files]
        everything = self.states(names)
        if len(everything) > 1:
            states = [entry for entry in everything if self._is_of(entry[2], table_uuid)]
        else:
            states = []  # the newest stays anyway
        to_delete = [
            name for _, snapshot, name in states[:-1] if snapshot not in snapshots and _old(name, before)
        ]
        to_delete += _superseded(states)
        kept = [name for _, _, name in everything if name not in to_delete]
        old = [name for name in sorted(names) if _old(name, before)]
        unnamed = self._unnamed(kept, [name for name in old if segment.is_segment(name)])
        parts = [name for name in old if _PART.fullmatch(name)]
        # Under temporary names, by local writers that were killed.
        partial = [file.name for file in files if _UNFINISHED.fullmatch(file.name) and file.modified < before]
        return [*dict.fromkeys(to_delete), *unnamed, *parts, *partial]

    def _is_of(self, name: str, table_uuid: str) -> bool:
        try:
            return read_header(self.path(name), self.io_properties).table_uuid == table_uuid
        except UNUSABLE_FILE as error:
            log.debug("a state is kept, as it cannot be read: %s", error)  # others warn of it
            return False

    def _unnamed(self, states: list[str], segments: list[str]) -> list[str]:
        """The segments that none of these states names; the newest names most, so it is read first."""
        left = segments
        for name in reversed(states):
            if not left:
                break
            try:
                entries = read_header(self.path(name), self.io_properties).segments  # of any version
            except UNUSABLE_FILE as error:
                log.warning("segments are kept, as a state cannot be read: %s", error)
                return []
            named = {entry.name for entry in entries}
            left = [old for old in left if old not in named]
        return left

    def make_folder(self) -> None:
        """Create the folder, where storage has folders."""
        if scheme_of(self.location) is None:
            try:
                os.makedirs(local_path(self.location), exist_ok=True)
            except OSError as error:
                raise StorageError(
                    f"{self.location}: {error.strerror}", hint=f"set the table's property {LOCATION_PROPERTY}"
                ) from error


def part_name() -> str:
    """Return a name that no other file with parts of indexes has."""
    return f"index-part-{segment.unique_part()}.bin"


def _old(name: str, before: float) -> bool:
    written = segment.written_at(name)
    return written is not None and written < before  # a name without a time is not one of ours


def _age(entry: tuple[int, int, str]) -> tuple[int, str]:
    """The sort key of states: the sequence number, then the time in the last part of the name."""
    return entry[0], entry[2].rpartition("-")[2]


def _superseded(states: list[tuple[int, int, str]]) -> list[str]:
    """Of several states of one snapshot only the last by name is kept."""
    last = {snapshot: name for _, snapshot, name in states}
    return [name for _, snapshot, name in states if last[snapshot] != name]
