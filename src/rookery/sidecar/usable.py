"""The state to use: the best one of a table that can be read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import pyarrow as pa

from rookery.model import UNUSABLE_FILE, MissingFileError, RookeryError, Snapshot, StorageError
from rookery.model.cache import nbytes_of
from rookery.model.once import warn
from rookery.sidecar.state import State
from rookery.sidecar.store import Store
from rookery.tables import Table

log = logging.getLogger(__name__)
Made = TypeVar("Made")
_Reader: TypeAlias = Callable[[], State]

_LISTING_SECONDS = 300
_NAME_BYTES = 200  # approximate memory of an entry of a listing


def from_best_state(
    table: Table, store: Store, snapshot: Snapshot | None, make: Callable[[State], Made]
) -> Made | None:
    """Return what *make* returns of the best state for a snapshot; None if there is none.

    A state that is damaged, or names a damaged segment, is passed over; one out of reach is an error.
    """
    names = store.ranked(_preferred(table, snapshot))
    return _first_usable(table, (partial(store.read_state, name) for name in names), make, None)


def from_best_cached_state(
    table: Table, store: Store, snapshot: Snapshot, make: Callable[[State], Made], notes: list[str]
) -> Made | None:
    """Return the same for callers that can work without a state: an unreachable one is skipped too.

    States are read without sketches, and cached. Why one is passed over is added to *notes*.
    """
    try:
        listed = _listing(table, store)
    except StorageError as error:
        warn(log, f"indexes are not used: {error}")
        notes.append(f"indexes are not used: {error}")
        return None
    readers = _cached(table, store, _preferred(table, snapshot), listed)
    return _first_usable(table, readers, make, notes)


def _preferred(table: Table, snapshot: Snapshot | None) -> list[int]:
    return [ancestor.id for ancestor in table.ancestors(snapshot)] if snapshot is not None else []


def _first_usable(
    table: Table, readers: Iterator[_Reader], make: Callable[[State], Made], notes: list[str] | None
) -> Made | None:
    for read in readers:
        try:
            state = read()
            if state.header.table_uuid == table.uuid:  # else of an earlier table of that name
                return make(state)
        except (RookeryError, pa.ArrowException, KeyError, ValueError) as error:
            if notes is None and isinstance(error, RookeryError) and not isinstance(error, UNUSABLE_FILE):
                raise
            warn(log, f"a state is skipped, the next analyze replaces it: {error}")
            if notes is not None:
                notes.append(f"a state is skipped: {error}")
    return None


def _cached(
    table: Table, store: Store, preferred: Sequence[int], listed: Mapping[str, int]
) -> Iterator[_Reader]:
    def read(name: str) -> State:
        load = partial(store.read_state, name, sketches=False, size=listed[name])
        try:
            return store.cache.get(("state", store.path(name)), load, nbytes_of)
        except MissingFileError:
            store.cache.drop(_listing_key(table, store))
            raise

    yield from (partial(read, name) for name in store.ranked(preferred, listed))


def _listing(table: Table, store: Store) -> Mapping[str, int]:
    """The files beside the table: listed once for a version of its metadata, and again after some time.

    A state that another process writes without a commit is seen when that time is over; until then the table
    is read by an older state, which is slower but never wrong.
    """
    if table.version is None:
        return store.listing()
    return store.cache.get(_listing_key(table, store), store.listing, lambda names: _NAME_BYTES * len(names))


def _listing_key(table: Table, store: Store) -> tuple[str, str, str | None, int, int]:
    period = int(time.time() // _LISTING_SECONDS)
    return "listing", store.location, table.version, store.changes, period
