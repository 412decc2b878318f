"""Which files are live, and which of them a state describes: lists that it knows are not decoded again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.model import Snapshot
from rookery.sidecar.state import State
from rookery.tables import FileList, Table, identities
from rookery.tables.files import SEPARATOR


def file_keys(files: pa.Table) -> pa.Array:
    """Return the keys of files: sixteen bytes, of the identity of each and of its deletes."""
    deletes = files["deletes"].combine_chunks().cast(pa.large_string())
    named = pc.binary_join_element_wise(identities(files), deletes, SEPARATOR)
    digest = hashlib.blake2b
    return pa.array(
        [digest(name.encode(), digest_size=16).digest() for name in named.to_pylist()], pa.binary(16)
    )


@dataclass(frozen=True, slots=True)
class Live:
    """The live files of a snapshot.

    `carried` are rows of the state whose files are still live, `carried_lists` where they are listed now.
    `decoded` are the files of the lists that had to be read (those of the state among them, where
    `decoded_all` is set), with their keys and the lists that name them.
    """

    carried: NDArray[np.int64]
    carried_lists: NDArray[np.int32]
    decoded: pa.Table
    keys: pa.Array
    decoded_lists: NDArray[np.int32]
    decoded_all: bool
    removed: int
    count: int  # of all live files
    lists: tuple[FileList, ...]  # of data
    deletes: tuple[FileList, ...]
    known: int  # how many lists of data were not decoded
    same_deletes: bool  # whether every carried file has the deletes that it had in the state

    @property
    def data_lists(self) -> tuple[str, ...]:
        """The identities of the lists of data."""
        return tuple(each.identity for each in self.lists)

    @property
    def delete_lists(self) -> tuple[str, ...]:
        """The identities of the lists of deletes."""
        return tuple(each.identity for each in self.deletes)


def live_files(
    table: Table,
    snapshot: Snapshot,
    state: State | None,
    decode_all: bool,
    *,
    whatever_deletes: bool = False,
) -> Live:
    """Compare a snapshot with a state. *decode_all* reads every list, as when old files are read again.

    With *whatever_deletes*, files in lists that the state knows are carried even if their deletes may
    have changed (`same_deletes` is false then): enough for statistics of all rows of a file.
    """
    lists = table.file_lists(snapshot)
    data = [each for each in lists if each.is_data]
    deletes = [each for each in lists if not each.is_data]
    listed_deletes = {each.identity for each in deletes}
    known: dict[str, int] = {}
    same_deletes = state is not None and listed_deletes == set(state.header.delete_manifests)
    if state is not None and not decode_all and (same_deletes or whatever_deletes):
        known = _listed_whole(state, data)
    fresh = [each for each in data if each.identity not in known]
    decoded = table.read_files(fresh)
    applied = table.read_files(deletes if decoded.num_rows else [])
    attached = table.attached_deletes(decoded, applied)
    decoded = decoded.append_column("deletes", pa.array(attached, pa.string()))
    keys = file_keys(decoded)
    by_path = {each.path: number for number, each in enumerate(data)}
    listed = np.array([by_path[path] for path in decoded["file_list"].to_pylist()], np.int32)
    places = {each.identity: number for number, each in enumerate(data)}
    carried, now_in = _carry(state, known, places, keys, listed)
    removed = 0 if state is None else state.files.num_rows - len(carried)
    all_decoded = len(fresh) == len(data)
    listed_files = sum(each.live_files or 0 for each in data)
    count = decoded.num_rows if all_decoded else listed_files
    return Live(
        carried=carried,
        carried_lists=now_in,
        decoded=decoded,
        keys=keys,
        decoded_lists=listed,
        decoded_all=all_decoded,
        removed=removed,
        count=count,
        lists=tuple(data),
        deletes=tuple(deletes),
        known=len(data) - len(fresh),
        same_deletes=same_deletes or not known,
    )


def _listed_whole(state: State, lists: Sequence[FileList]) -> dict[str, int]:
    """Return the lists of which the state has every live file, with their numbers in it.

    Of the others some files are in no segment, and would be lost if they were not decoded.
    """
    numbers = {identity: number for number, identity in enumerate(state.header.data_manifests)}
    # A file that two segments describe counts once; so do two with the same half of a key, which costs speed.
    keys = state.files["key"].combine_chunks()
    halves = np.frombuffer(keys.buffers()[1], np.uint64)[2 * keys.offset : 2 * (keys.offset + len(keys)) : 2]
    once = np.unique(halves, return_index=True)[1]
    listed = np.bincount(state.files["manifest"].to_numpy()[once], minlength=len(numbers))
    return {
        each.identity: numbers[each.identity]
        for each in lists
        if each.identity in numbers and listed[numbers[each.identity]] == each.live_files
    }


def _carry(
    state: State | None,
    known: dict[str, int],
    places: dict[str, int],
    keys: pa.Array,
    listed: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Find the state's rows that are still live: in an unchanged list, or among the decoded files."""
    if state is None:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    moved = np.full(len(state.header.data_manifests), -1, np.int32)
    for identity, number in known.items():
        moved[number] = places.get(identity, -1)
    was_in = state.files["manifest"].to_numpy()
    now_in = moved[was_in] if len(moved) else np.full(len(was_in), -1, np.int32)
    if len(keys):
        positions = pc.index_in(state.files["key"].combine_chunks(), value_set=keys)
        at = positions.fill_null(-1).to_numpy(zero_copy_only=False)
        now_in = np.where((now_in < 0) & (at >= 0), listed[at], now_in)
    carried = np.flatnonzero(now_in >= 0)
    return carried, now_in[carried].astype(np.int32)
