"""Files stored beside a table's data: statistics files, registered or left over, states and segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rookery.io import Listed, list_folder
from rookery.io.identity import Listing
from rookery.model import RookeryError, StorageError
from rookery.puffin import open_puffin
from rookery.sidecar import Store, segment, state
from rookery.tables import Table

STATISTICS_SUFFIXES = (".stats", ".puffin")


@dataclass(frozen=True, slots=True)
class LeftOver:
    """A statistics file that the table's metadata does not name."""

    file: Listed
    replaced: bool  # by another file of a snapshot that still exists; else its snapshot has expired


@dataclass(frozen=True, slots=True)
class SidecarFiles:
    """The number and size of files stored beside a table's data."""

    statistics_files: int
    statistics_bytes: int
    replaced_files: int
    replaced_bytes: int
    orphaned_files: int
    orphaned_bytes: int
    states: int
    state_bytes: int
    segments: int
    segment_bytes: int


def left_over(table: Table, store: Store) -> list[LeftOver]:
    """Return the statistics files that are stored with the table's metadata and not named in it."""
    folder = table.statistics_folder
    try:
        found = list_folder(folder, store.io_properties, recursive=False, links=False)
    except StorageError:
        return []  # without the right to list the folder, nothing can be deleted there
    files = [file for file in found if file.name.endswith(STATISTICS_SUFFIXES)]
    named = Listing(folder, files).account(table.statistics_paths).matched
    files = [file for file, is_named in zip(files, named, strict=True) if not is_named]
    return [LeftOver(file, _snapshots_of(file, store) <= table.snapshots.keys()) for file in files]


def _snapshots_of(file: Listed, store: Store) -> set[int]:
    """The snapshots that a statistics file is of; of none, where it cannot be read."""
    try:
        with open_puffin(file.location, properties=store.io_properties) as reader:
            return {blob.snapshot_id for blob in reader.metadata.blobs} or {-1}
    except RookeryError:
        return {-1}


def count_sidecar_files(table: Table, store: Store, listing: Mapping[str, int]) -> SidecarFiles:
    """Count the files stored beside a table's data; *listing* is the store's."""
    registered = table.statistics
    left = left_over(table, store)
    replaced = [each.file for each in left if each.replaced]
    orphaned = [each.file for each in left if not each.replaced]
    states = [size for name, size in listing.items() if name.startswith(state.PREFIX)]
    segments = [size for name, size in listing.items() if name.startswith(segment.PREFIX)]
    return SidecarFiles(
        len(registered),
        sum(entry.size for entry in registered),
        *_counted([file.size for file in replaced]),
        *_counted([file.size for file in orphaned]),
        *_counted(states),
        *_counted(segments),
    )


def _counted(sizes: Sequence[int]) -> tuple[int, int]:
    return len(sizes), sum(sizes)
