"""A table's metadata read once, as arrays: the basis of status and of plans. No data is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.model import Snapshot
from rookery.prune.fileset import FileSet, unchanged_file_set
from rookery.sidecar import Declared, State, Store
from rookery.sidecar.live import live_files
from rookery.tables import FILE_SCHEMA, IDENTITY, FileList, Table
from rookery.tables.files import EQUALITY_DELETES

PUFFIN = "puffin"


@dataclass(frozen=True, eq=False)
class Survey:
    """A table's current snapshot: its files, deletes and lists of both, and the best state."""

    table: Table
    store: Store
    snapshot: Snapshot | None  # none: the table is empty
    fileset: FileSet | None
    deletes: pa.Table  # delete files, as `FILE_SCHEMA` has them
    file_lists: tuple[FileList, ...]  # of data and of deletes

    @property
    def state(self) -> State | None:
        """The state that describes the files best, sketches included."""
        return self.fileset.state if self.fileset is not None else None

    @property
    def files(self) -> pa.Table:
        """The live data files: the identity of each (`IDENTITY`), and its deletes."""
        return self.fileset.files if self.fileset is not None else _NO_FILES

    def numbers(self, column: str) -> NDArray[np.int64]:
        """Return a column of the live data files as an array."""
        return np.asarray(self.files[column].to_numpy(), np.int64)

    @cached_property
    def attached(self) -> Mapping[int, list[Mapping[str, Any]]]:
        """The delete files that may apply to each data file, by its number, where there are any."""
        by_file = self.table.deletes_by_file(self.files, self.deletes)
        return {number: _applied(rows) for number, rows in by_file.items()}

    @cached_property
    def dangling(self) -> pa.Table:
        """The deletes that apply to no live data file."""
        used = {(row["path"], row["content_offset"]) for rows in self.attached.values() for row in rows}
        keys = zip(self.deletes["path"].to_pylist(), self.deletes["content_offset"].to_pylist(), strict=True)
        return self.deletes.filter(pa.array([key not in used for key in keys], pa.bool_()))

    @cached_property
    def declared(self) -> Declared:
        """The indexes and statistics that are declared on the table, with the types that columns have now."""
        return self.store.declared(self.table.uuid).typed(self.table.fields())

    @property
    def rows(self) -> int:
        """The rows of all data files, deleted ones among them."""
        return int(self.numbers("rows").sum())


def _applied(deletes: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A vector contains all position deletes of its file, so where there is one, those no longer apply."""
    if not any(row["format"] == PUFFIN for row in deletes):
        return deletes
    return [row for row in deletes if row["format"] == PUFFIN or row["content"] == EQUALITY_DELETES]


_NO_FILES = (
    FILE_SCHEMA.empty_table().select(list(IDENTITY)).append_column("deletes", pa.array([], pa.string()))
)


def survey(table: Table, store: Store) -> Survey:
    """Read a table's metadata as it is now, through the best state that can be read, or by file lists alone.

    Unlike a scan's file set, files whose deletes have changed since count as not described.
    """
    snapshot = table.snapshot()
    if snapshot is None:
        return Survey(
            table=table, store=store, snapshot=None, fileset=None, deletes=table.read_files([]), file_lists=()
        )
    file_lists = tuple(table.file_lists(snapshot))
    deletes = table.read_files([each for each in file_lists if not each.is_data])
    return Survey(
        table=table,
        store=store,
        snapshot=snapshot,
        fileset=_described(table, store, snapshot),
        deletes=deletes,
        file_lists=file_lists,
    )


def _described(table: Table, store: Store, snapshot: Snapshot) -> FileSet:
    found = unchanged_file_set(table, store, snapshot)
    if found is not None:
        return found
    return FileSet(store, None, live_files(table, snapshot, None, decode_all=True))


def partition_numbers(files: pa.Table) -> NDArray[np.int64]:
    """Number each file's partition; partitions of different specs are different."""
    codes, specs, texts = partitions(files)
    return codes + specs * (len(texts) + 1)


def partitions(files: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """Return each file's partition by number, its spec, and the distinct partitions as JSON."""
    specs = np.asarray(files["spec_id"].to_numpy(), np.int64)
    encoded = files["partition"].combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(), np.int64), specs, encoded.dictionary.to_pylist()
