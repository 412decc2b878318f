"""Everything that a table names: files of all its snapshots, metadata, statistics, and what is ours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rookery.store import Store
from rookery.tables.iceberg import IcebergTable, read_files
from rookery.tables.iceberg.manifest_list import Manifest, read_manifest_list

_SCHEME_AND_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/]*)?")
VERSION_HINT = "version-hint.text"
_FILE_COLUMNS = ("path", "content", "size")


def bare(location: str) -> str:
    """Return a location without scheme and authority, by which files are told apart.

    >>> bare("s3a://bucket/a/b"), bare("file:/a//b"), bare("/a/b")
    ('/a/b', '/a/b', '/a/b')
    """
    return re.sub("//+", "/", _SCHEME_AND_AUTHORITY.sub("", location))


@dataclass(frozen=True, slots=True)
class Reached:
    """The files that some snapshots reach: manifest lists, manifests, and data and delete files."""

    lists: frozenset[str]
    manifests: dict[str, Manifest]
    files: pa.Table  # path, content, size; each path once

    def paths(self) -> list[str]:
        """All their locations."""
        return [*self.lists, *self.manifests, *self.files["path"].to_pylist()]


def reached(table: IcebergTable, snapshots: Iterable[int]) -> Reached:
    """Read what snapshots reach; a manifest that several share is read once."""
    lists, manifests = listed(table, snapshots)
    return Reached(lists, manifests, content(table, manifests.values()))


def listed(table: IcebergTable, snapshots: Iterable[int]) -> tuple[frozenset[str], dict[str, Manifest]]:
    """Return the manifest lists of snapshots, and the manifests in them by path."""
    lists = set()
    for number in snapshots:
        found = table.table.snapshot_by_id(number)
        if found is not None and found.manifest_list:
            lists.add(found.manifest_list)
    manifests = {
        manifest.manifest_path: manifest
        for location in sorted(lists)
        for manifest in read_manifest_list(table.io, location)
    }
    return frozenset(lists), manifests


def content(table: IcebergTable, manifests: Iterable[Manifest]) -> pa.Table:
    """Return the data and delete files that manifests list as live, each path once.

    Deletion vectors share a file; its size is that of the whole.
    """
    found = read_files(table.io, manifests).select(list(_FILE_COLUMNS))
    if not found.num_rows:
        return found
    grouped = found.group_by("path").aggregate([("content", "min"), ("size", "max")])
    return pa.table({"path": grouped["path"], "content": grouped["content_min"], "size": grouped["size_max"]})


def statistics_paths(table: IcebergTable, snapshots: Collection[int] | None = None) -> dict[str, int]:
    """Return the statistics files, of columns and of partitions, with sizes; of some snapshots, or all."""
    metadata = table.table.metadata
    return {
        file.statistics_path: file.file_size_in_bytes
        for file in (*metadata.statistics, *metadata.partition_statistics)
        if snapshots is None or file.snapshot_id in snapshots
    }


def metadata_paths(table: IcebergTable) -> list[str]:
    """Return the metadata files: the current one, those of its log, and the hint that points at one."""
    log = [entry.metadata_file for entry in table.table.metadata.metadata_log]
    return [table.table.metadata_location, *log, f"{table.location}/metadata/{VERSION_HINT}"]


def named(table: IcebergTable) -> frozenset[str]:
    """Return all that a table names, as bare paths."""
    everything = reached(table, table.snapshots)
    paths = [*everything.paths(), *statistics_paths(table), *metadata_paths(table)]
    return frozenset(map(bare, paths))


def is_ours(path: str, store: Store) -> bool:
    """Whether a bare path lies in the folder of states and segments."""
    return path.startswith(bare(store.location) + "/")


def counts(files: pa.Table) -> dict[str, int]:
    """Count files by what they hold: data, position deletes, equality deletes."""
    kinds = {"data": 0, "position": 1, "equality": 2}
    return {name: int(pc.sum(pc.equal(files["content"], kind)).as_py() or 0) for name, kind in kinds.items()}
