"""The interface of tables, for any format. A format is a package that implements it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.model import Field, Snapshot, TableName, UsageError
from rookery.model.schema import Schema
from rookery.puffin import BlobMetadata, WrittenFile
from rookery.tables.column_mapping import ColumnMapping
from rookery.tables.files import FileList
from rookery.tables.partitioning import PartitionField, SortField

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class RegisteredBlob:
    """A blob of a statistics file, as the table's metadata names it."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RowChanges:
    """How many rows a snapshot has changed, as its writer states."""

    added: int  # in data files that it has added
    removed: int  # in data files that it has removed
    deletes_added: int  # by position, of rows in files that stay
    deletes_removed: int
    value_deletes_added: int  # which do not state how many rows they delete


@dataclass(frozen=True, slots=True)
class SnapshotChanges:
    """What a snapshot has changed, as its writer states; None where it does not."""

    files: int | None  # that it has added or removed, of data and of deletes
    rows: RowChanges | None


@dataclass(frozen=True, slots=True)
class SnapshotTotals:
    """What a snapshot consists of, as its writer states; None where it does not."""

    rows: int | None  # in all data files, deleted ones too
    files: int | None  # of data
    bytes: int | None  # of data files and delete files
    delete_files: int | None


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """A Puffin file that is registered as the statistics of a snapshot."""

    snapshot_id: int
    path: str
    size: int
    footer_size: int
    blobs: tuple[RegisteredBlob, ...]


class EngineTable(Protocol):
    """A table as Spark reads it, pinned to the metadata that it had when it was loaded."""

    @property
    def uuid(self) -> str:
        """Its identity, as `Table.uuid` has it."""

    @property
    def version(self) -> str | None:
        """The version of its metadata, as `Table.version` has it."""

    def frame(self) -> DataFrame:
        """Return all rows of the current snapshot."""

    def staged(
        self, snapshot_id: int, paths: Sequence[str], only: Sequence[int] | None = None
    ) -> DataFrame | None:
        """Return the rows of these data files; None if none are given. *only* names leaf columns by id."""


class Table(Protocol):
    """A table's metadata at the moment of loading; the table may have changed since.

    A format derives from it: what follows from the snapshots alone is here.
    """

    name: TableName

    @property
    def uuid(self) -> str:
        """Its identity, independent of its name."""

    @property
    def version(self) -> str | None:
        """The name of this version of its metadata; None if versions have no names."""

    @property
    def format_version(self) -> int:
        """The version of its format."""

    @property
    def location(self) -> str:
        """The folder of the table."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The settings that are stored with it."""

    @property
    def io_properties(self) -> Mapping[str, str]:
        """The settings with which its files are opened; they may contain secrets."""

    # -- snapshots

    @property
    def snapshots(self) -> Mapping[int, Snapshot]:
        """All snapshots that have not expired, by id."""

    @property
    def current_snapshot_id(self) -> int | None:
        """The id of the current snapshot; None for an empty table."""

    def snapshot(self, snapshot_id: int | None = None) -> Snapshot | None:
        """Return a snapshot by its id, or the current one, which an empty table lacks."""
        if snapshot_id is None:
            current = self.current_snapshot_id
            return self.snapshots.get(current) if current is not None else None
        if snapshot_id not in self.snapshots:
            raise UsageError(
                f"{self.name} has no snapshot {snapshot_id}",
                hint="it may have expired; omit --snapshot for the newest",
            )
        return self.snapshots[snapshot_id]

    def at(self, snapshot_id: int | None) -> Snapshot | None:
        """Return the snapshot to read rows of: the current one, or a given one, pinned to its columns."""
        snapshot = self.snapshot(snapshot_id)
        return snapshot if snapshot is None or snapshot_id is None else replace(snapshot, pinned=True)

    def ancestors(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """Yield a snapshot, its parent, and so on as far as they are kept."""
        current: Snapshot | None = snapshot
        while current is not None:
            yield current
            current = self.snapshots.get(current.parent_id) if current.parent_id is not None else None

    def changes_of(self, snapshot: Snapshot) -> SnapshotChanges:
        """Return what a snapshot has changed, from metadata that is loaded."""

    def totals_of(self, snapshot: Snapshot) -> SnapshotTotals:
        """Return what a snapshot consists of, from metadata that is loaded."""

    @property
    def branches(self) -> Mapping[str, int]:
        """The names of snapshots that move on with commits, with their ids."""

    @property
    def tags(self) -> Mapping[str, int]:
        """Tags: named snapshots, with their ids."""

    # -- columns

    def schema(self, snapshot: Snapshot | None = None) -> Schema:
        """Return the schema by which a snapshot is read, or the current one."""

    def written_schema(self, snapshot: Snapshot) -> Schema | None:
        """Return the schema that a snapshot was written with, if that is known."""

    def fields(self, snapshot: Snapshot | None = None) -> tuple[Field, ...]:
        """Return the leaf columns by which a snapshot is read."""

    @property
    def column_types(self) -> Mapping[int, str]:
        """The types of all current and former columns, by id."""

    @property
    def last_column_id(self) -> int:
        """The highest id that a column has had; new columns get higher ones."""

    def column_mapping(self, path: str) -> ColumnMapping:
        """Return how the columns of a data file are found."""

    @property
    def maps_names(self) -> bool:
        """Whether some columns are found by names, which may now be those of other columns."""

    # -- partitions and order

    @property
    def specs(self) -> Mapping[int, Sequence[PartitionField]]:
        """All ways in which it is, or was, partitioned, by id."""

    @property
    def current_spec_id(self) -> int:
        """The id of the way in which new files are partitioned."""

    @property
    def sort_order(self) -> Sequence[SortField]:
        """The order in which rows are to be written; empty if there is none."""

    # -- files

    @property
    def target_file_size(self) -> int:
        """The size in bytes at which writers aim for data files."""

    @property
    def target_list_size(self) -> int:
        """The size in bytes at which writers aim for lists of files."""

    def file_lists(self, snapshot: Snapshot) -> Sequence[FileList]:
        """Return the lists that name a snapshot's files, of data and of deletes."""

    def read_files(self, lists: Sequence[FileList]) -> pa.Table:
        """Return the live files of these lists, as `FILE_SCHEMA` has them."""

    def deletes_by_file(self, data: pa.Table, deletes: pa.Table) -> Mapping[int, list[Mapping[str, Any]]]:
        """Return the delete files that may apply to each data file, by its number, where there are any."""

    def attached_deletes(self, data: pa.Table, deletes: pa.Table) -> list[str]:
        """Return for each data file a digest of its deletes; "" for none.

        A file is identified together with its deletes: when its deletes change, it counts as changed.
        """

    def stands_alone(self, files: pa.Table) -> NDArray[np.bool_]:
        """Return for each data file whether its rows are rows of the table, independent of other files.

        One that does not, as a row in it may replace one in another file, must not be skipped.
        """

    # -- statistics and engines

    @property
    def statistics(self) -> Sequence[StatisticsFile]:
        """The statistics files that are registered."""

    @property
    def statistics_folder(self) -> str:
        """Where statistics files are written."""

    @property
    def statistics_paths(self) -> Sequence[str]:
        """All statistics files that the metadata names, those of partitions too."""

    def register_statistics(
        self,
        spark: SparkSession | None,
        snapshot_id: int,
        written: WrittenFile,
        is_named: Callable[[BlobMetadata], bool],
    ) -> None:
        """Register a statistics file for a snapshot; the metadata names the blobs that *is_named* selects.

        Without a session, the catalog is changed by this process.
        """

    @property
    def not_committable(self) -> str | None:
        """Why this process cannot register statistics without a session; None if it can."""

    @property
    def not_loadable(self) -> str | None:
        """Why engines cannot load the table at all, so that nothing is registered; None if they can."""

    def check_loadable(self, spark: SparkSession) -> None:
        """Raise an error if the engine cannot load the table now, or has another one of that name."""

    def for_engine(self, spark: SparkSession) -> EngineTable:
        """Return the table as Spark reads it."""
