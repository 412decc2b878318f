"""One look at a table's metadata, as arrays: what status tells and what steps plan by. No data is read."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.model import RookeryError, Snapshot
from rookery.prune.fileset import FileSet
from rookery.store import State, Store
from rookery.store.live import live_files
from rookery.tables.iceberg import IcebergTable, read_files
from rookery.tables.iceberg.manifest_list import Manifest

log = logging.getLogger(__name__)

POSITION, EQUALITY = 1, 2  # contents of delete files; a deletion vector is a position delete in Puffin
PUFFIN = "puffin"


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """A table's current snapshot: its files, deletes and manifests, and the state that knows them best."""

    table: IcebergTable
    store: Store
    snapshot: Snapshot | None  # none: the table is empty
    fileset: FileSet | None
    deletes: pa.Table  # delete files, as manifests list them
    manifests: tuple[Manifest, ...]  # of data and of deletes

    @property
    def state(self) -> State | None:
        """The state that describes the files best, sketches included."""
        return self.fileset.state if self.fileset is not None else None

    @property
    def files(self) -> pa.Table:
        """The live data files: path, format, size, rows, spec_id, partition, sequence_number, deletes."""
        return self.fileset.files if self.fileset is not None else _NO_FILES

    def numbers(self, column: str) -> NDArray[np.int64]:
        """Return a column of the live data files as an array."""
        return np.asarray(self.files[column].to_numpy(), np.int64)

    @property
    def rows(self) -> int:
        """The rows of all data files, deleted ones among them."""
        return int(self.numbers("rows").sum())


_NO_FILES = pa.table(
    {
        "path": pa.array([], pa.string()),
        "format": pa.array([], pa.string()),
        "size": pa.array([], pa.int64()),
        "rows": pa.array([], pa.int64()),
        "spec_id": pa.array([], pa.int32()),
        "partition": pa.array([], pa.string()),
        "sequence_number": pa.array([], pa.int64()),
        "deletes": pa.array([], pa.string()),
    }
)


def survey(table: IcebergTable, store: Store) -> Survey:
    """Look at a table as it is now, through the best state that can be read, or by manifests alone.

    Unlike a scan's file set, files whose deletes have changed since count as not described.
    """
    snapshot = table.snapshot()
    if snapshot is None:
        return Survey(table, store, None, None, read_files(table.io, []), ())
    manifests = tuple(table.manifests(snapshot))
    deletes = read_files(table.io, [manifest for manifest in manifests if manifest.content != 0])
    return Survey(table, store, snapshot, _described(table, store, snapshot), deletes, manifests)


def _described(table: IcebergTable, store: Store, snapshot: Snapshot) -> FileSet:
    preferred = [ancestor.id for ancestor in table.ancestors(snapshot)]
    uuid = str(table.table.metadata.table_uuid)
    for _, state in store.newest(preferred):
        if state.index.table_uuid != uuid:
            continue
        try:
            return FileSet(store, state, live_files(table, snapshot, state, decode_all=False))
        except (RookeryError, pa.ArrowException, KeyError, ValueError) as error:
            log.warning("a state is passed over, analyze will mend it: %s", error)
    return FileSet(store, None, live_files(table, snapshot, None, decode_all=True))
