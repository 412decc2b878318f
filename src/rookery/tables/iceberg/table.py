"""An Iceberg table, as the rooms above see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

from rookery.model import Field, Snapshot, TableName, UsageError
from rookery.tables.iceberg.manifest_list import Manifest, read_manifest_list
from rookery.tables.iceberg.schema import leaves

METADATA_PROPERTY = "write.metadata.path"


class IcebergTable:
    """A table's metadata at the moment of loading."""

    def __init__(self, name: TableName, table: Table) -> None:
        self.name = name
        self.table = table
        self._manifests: dict[int, list[Manifest]] = {}  # by snapshot: they never change

    @property
    def location(self) -> str:
        """Where the table lives."""
        return self.table.location().rstrip("/")

    @property
    def metadata_folder(self) -> str:
        """Where its metadata lives, which may be elsewhere."""
        return self.table.properties.get(METADATA_PROPERTY, f"{self.location}/metadata").rstrip("/")

    @property
    def io(self) -> FileIO:
        """The file system that holds it."""
        return self.table.io

    @property
    def format_version(self) -> int:
        """1, 2 or 3."""
        return int(self.table.format_version)

    @cached_property
    def snapshots(self) -> dict[int, Snapshot]:
        """All snapshots that have not expired, by id."""
        return {
            snapshot.snapshot_id: Snapshot(
                snapshot.snapshot_id,
                snapshot.parent_snapshot_id,
                snapshot.sequence_number or 0,
                snapshot.timestamp_ms,
                snapshot.schema_id,
                snapshot.summary.operation.value if snapshot.summary else None,
            )
            for snapshot in self.table.metadata.snapshots
        }

    def snapshot(self, snapshot_id: int | None = None) -> Snapshot | None:
        """Return a snapshot by its id, or the current one, which an empty table lacks."""
        if snapshot_id is None:
            current = self.table.metadata.current_snapshot_id
            return self.snapshots.get(current) if current is not None else None
        if snapshot_id not in self.snapshots:
            raise UsageError(
                f"{self.name} has no snapshot {snapshot_id}",
                hint="it may have expired; leave --snapshot out for the newest",
            )
        return self.snapshots[snapshot_id]

    def at(self, snapshot_id: int | None) -> Snapshot | None:
        """Return the snapshot to read rows of: the current one, or one asked for, pinned to its columns."""
        found = self.snapshot(snapshot_id)
        return found if found is None or snapshot_id is None else replace(found, pinned=True)

    def ancestors(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """Yield a snapshot, its parent, and so on as far as they are kept."""
        current: Snapshot | None = snapshot
        while current is not None:
            yield current
            current = self.snapshots.get(current.parent_id) if current.parent_id is not None else None

    def schema(self, snapshot: Snapshot | None = None) -> Schema:
        """Return the schema of a snapshot, or the current one.

        The current snapshot is read with the current schema, as engines do: columns may have been renamed,
        added or promoted since it was written. One that is asked for by its id is read as it was.
        """
        current = self.table.metadata.current_snapshot_id
        unpinned = snapshot is None or (snapshot.id == current and not snapshot.pinned)
        if snapshot is None or unpinned or snapshot.schema_id is None:
            return self.table.schema()
        return self.table.schemas().get(snapshot.schema_id, self.table.schema())

    @cached_property
    def types(self) -> frozenset[str]:
        """The types of all leaf columns, of old schemas too."""
        return frozenset(field.type for schema in self.table.schemas().values() for field in leaves(schema))

    def fields(self, snapshot: Snapshot | None = None) -> tuple[Field, ...]:
        """Return the leaf columns.

        Files taken over from Hive may lack the columns that they are partitioned by; their values stand in
        the partition.
        """
        identity = {
            field.source_id
            for spec in self.table.specs().values()
            for field in spec.fields
            if isinstance(field.transform, IdentityTransform)
        }
        found = leaves(self.schema(snapshot))
        return tuple(replace(field, filled=True) if field.id in identity else field for field in found)

    def manifests(self, snapshot: Snapshot) -> list[Manifest]:
        """Return a snapshot's manifests, of data and of deletes."""
        if snapshot.id not in self._manifests:
            found = self.table.snapshot_by_id(snapshot.id)
            assert found is not None
            self._manifests[snapshot.id] = read_manifest_list(self.io, found.manifest_list)
        return self._manifests[snapshot.id]

    @cached_property
    def unpartitioned_specs(self) -> frozenset[int]:
        """The ids of the partition specs that have no fields."""
        return frozenset(number for number, spec in self.table.specs().items() if not spec.fields)
