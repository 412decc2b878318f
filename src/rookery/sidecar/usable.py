"""The state to go by: the best one of a table that can be read and used."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from rookery.model import UNUSABLE_FILE, RookeryError, Snapshot
from rookery.sidecar.state import State
from rookery.sidecar.store import Store
from rookery.tables import Table

log = logging.getLogger(__name__)
Made = TypeVar("Made")


def from_best_state(
    table: Table, store: Store, snapshot: Snapshot | None, make: Callable[[State], Made]
) -> Made | None:
    """Return what *make* returns of the best state for a snapshot; None if there is none.

    A state that is damaged, or names a damaged segment, is passed over; one out of reach is an error.
    """
    preferred = [ancestor.id for ancestor in table.ancestors(snapshot)] if snapshot is not None else []
    uuid = table.uuid
    for _, state in store.newest(preferred):
        if state.header.table_uuid != uuid:
            continue  # of an earlier table of that name, or of one with the same folder
        try:
            return make(state)
        except (RookeryError, pa.ArrowException, KeyError, ValueError) as error:
            if isinstance(error, RookeryError) and not isinstance(error, UNUSABLE_FILE):
                raise
            log.warning("a state is skipped, the next analyze replaces it: %s", error)
    return None
