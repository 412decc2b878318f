"""An Iceberg table, behind the interface of `Table`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyiceberg.io import FileIO
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Summary

from rookery.model import Field, Snapshot, TableName, UsageError
from rookery.model.schema import Schema
from rookery.puffin import BlobMetadata, WrittenFile
from rookery.tables.column_mapping import BY_FIELD_ID, ColumnMapping
from rookery.tables.files import FileList
from rookery.tables.iceberg import commit, jvm
from rookery.tables.iceberg.deletes import attached_deletes, deletes_by_file
from rookery.tables.iceberg.files import read_files
from rookery.tables.iceberg.java_types import java_knows
from rookery.tables.iceberg.manifest_list import Manifest, read_manifest_list
from rookery.tables.iceberg.schema import schema_of
from rookery.tables.iceberg.summaries import changes_of, totals_of
from rookery.tables.iceberg.table_properties import (
    DEFAULT_FILE_SIZE,
    DEFAULT_MANIFEST_SIZE,
    TARGET_FILE_SIZE,
    TARGET_MANIFEST_SIZE,
    number_of,
)
from rookery.tables.iceberg.transforms import IcebergTransform
from rookery.tables.java_errors import OtherTableError
from rookery.tables.partitioning import PartitionField, SortField, TransformKind
from rookery.tables.table import RegisteredBlob, SnapshotChanges, SnapshotTotals, StatisticsFile, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

METADATA_PROPERTY = "write.metadata.path"


class IcebergTable(Table):
    """A table's metadata at the moment of loading: `rookery.tables.Table` for Iceberg."""

    def __init__(self, name: TableName, table: PyIcebergTable) -> None:
        self.name = name
        self.table = table
        self._manifests: dict[int, list[Manifest]] = {}  # by snapshot: they never change
        self._fields: dict[int | None, tuple[Field, ...]] = {}  # by schema

    @property
    def uuid(self) -> str:
        """The table's uuid."""
        return str(self.table.metadata.table_uuid)

    @property
    def version(self) -> str | None:
        """The metadata file."""
        return self.table.metadata_location or None

    @property
    def location(self) -> str:
        """The folder of the table."""
        return self.table.location().rstrip("/")

    @property
    def metadata_folder(self) -> str:
        """The folder of its metadata, which may be elsewhere."""
        return self.table.properties.get(METADATA_PROPERTY, f"{self.location}/metadata").rstrip("/")

    @property
    def properties(self) -> Mapping[str, str]:
        """The settings that are stored with it."""
        return self.table.properties

    @property
    def io(self) -> FileIO:
        """Its file system."""
        return self.table.io

    @property
    def io_properties(self) -> Mapping[str, str]:
        """The settings with which its files are opened; they may contain secrets."""
        return self.table.io.properties

    @property
    def format_version(self) -> int:
        """1, 2 or 3."""
        return int(self.table.format_version)

    # -- snapshots

    @cached_property
    def snapshots(self) -> dict[int, Snapshot]:
        """All snapshots that have not expired, by id."""
        return {
            snapshot.snapshot_id: Snapshot(
                id=snapshot.snapshot_id,
                parent_id=snapshot.parent_snapshot_id,
                sequence_number=snapshot.sequence_number or 0,
                timestamp_ms=snapshot.timestamp_ms,
                schema_id=snapshot.schema_id,
                operation=snapshot.summary.operation.value if snapshot.summary else None,
            )
            for snapshot in self.table.metadata.snapshots
        }

    @property
    def current_snapshot_id(self) -> int | None:
        """The id of the current snapshot; None for an empty table."""
        return self.table.metadata.current_snapshot_id

    def changes_of(self, snapshot: Snapshot) -> SnapshotChanges:
        """Return what a snapshot's summary states."""
        return changes_of(self._summary_of(snapshot))

    def totals_of(self, snapshot: Snapshot) -> SnapshotTotals:
        """Return the totals that a snapshot's summary states."""
        return totals_of(self._summary_of(snapshot))

    def _summary_of(self, snapshot: Snapshot) -> Mapping[str, str]:
        summary = self._summaries[snapshot.id]
        return summary.additional_properties if summary is not None else {}

    @cached_property
    def _summaries(self) -> Mapping[int, Summary | None]:
        return {snapshot.snapshot_id: snapshot.summary for snapshot in self.table.metadata.snapshots}

    @property
    def branches(self) -> Mapping[str, int]:
        """The branches, with the ids of their snapshots."""
        return self._refs(SnapshotRefType.BRANCH)

    @property
    def tags(self) -> Mapping[str, int]:
        """The tags, with the ids of their snapshots."""
        return self._refs(SnapshotRefType.TAG)

    def _refs(self, kind: SnapshotRefType) -> dict[str, int]:
        refs = self.table.metadata.refs.items()
        return {name: ref.snapshot_id for name, ref in refs if ref.snapshot_ref_type is kind}

    # -- columns

    def schema(self, snapshot: Snapshot | None = None) -> Schema:
        """Return the schema by which a snapshot is read, or the current one.

        The current snapshot is read with the current schema, as engines do: columns may have been renamed,
        added or promoted since it was written. One selected by its id is read as it was.
        """
        current = self.table.metadata.current_snapshot_id
        if snapshot is None or (snapshot.id == current and not snapshot.pinned):
            return self._current_schema
        return self.written_schema(snapshot) or self._current_schema

    def written_schema(self, snapshot: Snapshot) -> Schema | None:
        """Return the schema that a snapshot was written with, if that is known."""
        return self._schemas.get(snapshot.schema_id) if snapshot.schema_id is not None else None

    @cached_property
    def _current_schema(self) -> Schema:
        return schema_of(self.table.schema())

    @cached_property
    def _schemas(self) -> Mapping[int, Schema]:
        return {number: schema_of(schema) for number, schema in self.table.schemas().items()}

    def fields(self, snapshot: Snapshot | None = None) -> tuple[Field, ...]:
        """Return the leaf columns.

        Files imported from Hive may lack the columns that they are partitioned by; their values are in
        the partition.
        """
        schema = self.schema(snapshot)
        if schema.id not in self._fields:
            self._fields[schema.id] = tuple(
                replace(field, filled=True) if field.id in self._partitioned_by else field
                for field in schema.leaves
            )
        return self._fields[schema.id]

    @cached_property
    def _partitioned_by(self) -> frozenset[int]:
        """The columns that are a partition field of any spec as they are."""
        return frozenset(
            field.source_id
            for spec in self.specs.values()
            for field in spec
            if field.transform.kind is TransformKind.IDENTITY
        )

    @cached_property
    def column_types(self) -> Mapping[int, str]:
        """The types of all current and former columns by id; the current one where it has changed."""
        schemas = (*self._schemas.values(), self._current_schema)
        return {number: str(column.type) for schema in schemas for number, column in schema.by_id.items()}

    @property
    def last_column_id(self) -> int:
        """The highest id that a column has had."""
        return self.table.metadata.last_column_id

    def column_mapping(self, path: str) -> ColumnMapping:
        """Return how the columns of a data file are found: by field ids."""
        return BY_FIELD_ID

    @property
    def maps_names(self) -> bool:
        """Whether there is a name mapping, for files without field ids."""
        return self.table.name_mapping() is not None

    # -- partitions and order

    @cached_property
    def specs(self) -> Mapping[int, Sequence[PartitionField]]:
        """All partition specs, by id."""
        return {
            number: tuple(
                PartitionField(part.field_id, part.source_id, part.name, IcebergTransform(part.transform))
                for part in spec.fields
            )
            for number, spec in self.table.specs().items()
        }

    @property
    def current_spec_id(self) -> int:
        """The id of the partition spec that new files have."""
        return self.table.spec().spec_id

    @cached_property
    def sort_order(self) -> Sequence[SortField]:
        """The table's sort order; empty if it is unsorted."""
        return tuple(
            SortField(
                part.source_id,
                IcebergTransform(part.transform),
                part.direction.value.upper(),
                part.null_order.value.replace("-", " ").upper(),
            )
            for part in self.table.sort_order().fields
        )

    # -- files

    @property
    def target_file_size(self) -> int:
        """The size in bytes at which writers aim for data files."""
        return number_of(self.properties, TARGET_FILE_SIZE, DEFAULT_FILE_SIZE)

    @property
    def target_list_size(self) -> int:
        """The size in bytes at which writers aim for manifests."""
        return number_of(self.properties, TARGET_MANIFEST_SIZE, DEFAULT_MANIFEST_SIZE)

    def file_lists(self, snapshot: Snapshot) -> list[Manifest]:
        """Return a snapshot's manifests, of data and of deletes."""
        if snapshot.id not in self._manifests:
            by_id = self.table.snapshot_by_id(snapshot.id)
            assert by_id is not None
            self._manifests[snapshot.id] = read_manifest_list(self.io, by_id.manifest_list)
        return self._manifests[snapshot.id]

    def read_files(self, lists: Sequence[FileList]) -> pa.Table:
        """Return the live files of manifests."""
        return read_files(self.io, cast(Sequence[Manifest], lists))

    def deletes_by_file(self, data: pa.Table, deletes: pa.Table) -> Mapping[int, list[Mapping[str, Any]]]:
        """Return the delete files that may apply to each data file, by its number, where there are any."""
        return deletes_by_file(data, deletes, self._unpartitioned)

    def attached_deletes(self, data: pa.Table, deletes: pa.Table) -> list[str]:
        """Return for each data file a digest of its deletes; "" for none."""
        return attached_deletes(data, deletes, self._unpartitioned)

    @cached_property
    def _unpartitioned(self) -> frozenset[int]:
        """The ids of the partition specs that have no fields: their equality deletes apply to all files."""
        return frozenset(number for number, spec in self.specs.items() if not spec)

    def stands_alone(self, files: pa.Table) -> NDArray[np.bool_]:
        """True for every file: deletes by other files are attached to it."""
        return np.ones(files.num_rows, bool)

    # -- statistics and engines

    @cached_property
    def statistics(self) -> Sequence[StatisticsFile]:
        """The statistics files that are registered."""
        return tuple(
            StatisticsFile(
                snapshot_id=file.snapshot_id,
                path=file.statistics_path,
                size=file.file_size_in_bytes,
                footer_size=file.file_footer_size_in_bytes,
                blobs=tuple(
                    RegisteredBlob(blob.type, tuple(blob.fields), blob.snapshot_id, blob.properties or {})
                    for blob in file.blob_metadata
                ),
            )
            for file in self.table.metadata.statistics
        )

    @property
    def statistics_folder(self) -> str:
        """Where statistics files are written: with the metadata."""
        return self.metadata_folder

    @property
    def statistics_paths(self) -> Sequence[str]:
        """All statistics files that the metadata names, those of partitions too."""
        metadata = self.table.metadata
        return [file.statistics_path for file in (*metadata.statistics, *metadata.partition_statistics)]

    def register_statistics(
        self,
        spark: SparkSession | None,
        snapshot_id: int,
        written: WrittenFile,
        is_named: Callable[[BlobMetadata], bool],
    ) -> None:
        """Register a statistics file for a snapshot: by Java, or without Spark by PyIceberg."""
        if spark is None:
            commit.register_statistics(self.table, self.name, snapshot_id, written, is_named)
        else:
            jvm.register_statistics(spark, self.name, snapshot_id, written, is_named)

    @property
    def not_committable(self) -> str | None:
        """Why PyIceberg cannot commit to the table; None if it can."""
        return commit.not_committable(self.table)

    @cached_property
    def not_loadable(self) -> str | None:
        """Why Spark, or any engine in Java, cannot load the table; None if they can."""
        types = {field.type for schema in self._schemas.values() for field in schema.leaves}
        unknown = min((kind for kind in types if not java_knows(kind)), default=None)
        return None if unknown is None else f"Iceberg's Java library does not know the type {unknown}"

    def check_loadable(self, spark: SparkSession) -> None:
        """Check that Java can load the table, and that it is the same."""
        if str(jvm.load_java_table(spark, self.name).uuid().toString()) != self.uuid:
            raise OtherTableError(self.name)

    def for_engine(self, spark: SparkSession) -> jvm.PinnedTable:
        """Return the table as Spark reads it."""
        return jvm.pinned_table(spark, self.name)


def iceberg(table: Table) -> IcebergTable:
    """Return a table of Iceberg as one; refuse others, where what is to be done is Iceberg's alone."""
    if not isinstance(table, IcebergTable):
        raise UsageError(f"{table.name} is not an Iceberg table")
    return table
