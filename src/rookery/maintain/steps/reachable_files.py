"""Everything that a table names: files of all its snapshots, metadata and statistics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO

from rookery.model import MissingFileError, RookeryError
from rookery.tables.iceberg import IcebergTable
from rookery.tables.iceberg.files import read_files
from rookery.tables.iceberg.manifest_list import Manifest, read_manifest_list
from rookery.tables.iceberg.metadata_file import MetadataFile

VERSION_HINT = "version-hint.text"
_FILE_COLUMNS = ("path", "content", "size")


@dataclass(frozen=True, slots=True)
class Reached:
    """The files that some snapshots reach: manifest lists, manifests, and data and delete files."""

    lists: frozenset[str]
    manifests: dict[str, Manifest]
    files: pa.Table  # path, content, size; each path once

    def paths(self) -> list[str]:
        """All their locations."""
        return [*self.lists, *self.manifests, *self.files["path"].to_pylist()]


@dataclass(frozen=True, slots=True)
class Named:
    """All that a table names."""

    required: tuple[str, ...]  # without these, some snapshot cannot be read
    optional: tuple[str, ...]  # earlier metadata files, and the version hint: they may be missing


def reached(table: IcebergTable, snapshots: Iterable[int]) -> Reached:
    """Read what snapshots reach; a manifest that several share is read once."""
    lists, manifests = listed(table, snapshots)
    return Reached(lists, manifests, content(table, manifests.values()))


def listed(table: IcebergTable, snapshots: Iterable[int]) -> tuple[frozenset[str], dict[str, Manifest]]:
    """Return the manifest lists of snapshots, and the manifests in them by path."""
    lists = set()
    for number in snapshots:
        snapshot = table.table.snapshot_by_id(number)
        if snapshot is not None and snapshot.manifest_list:
            lists.add(snapshot.manifest_list)
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
    files = read_files(table.io, manifests).select(list(_FILE_COLUMNS))
    if not files.num_rows:
        return files
    grouped = files.group_by("path").aggregate([("content", "min"), ("size", "max")])
    return pa.table({"path": grouped["path"], "content": grouped["content_min"], "size": grouped["size_max"]})


def statistics_paths(table: IcebergTable, snapshots: Collection[int] | None = None) -> dict[str, int]:
    """Return the statistics files, of columns and of partitions, with sizes; of some snapshots, or all."""
    metadata = table.table.metadata
    return {
        file.statistics_path: file.file_size_in_bytes
        for file in (*metadata.statistics, *metadata.partition_statistics)
        if snapshots is None or file.snapshot_id in snapshots
    }


def metadata_log(table: IcebergTable) -> list[str]:
    """Return the metadata files before the current one, as far as it knows them, the oldest first."""
    return [entry.metadata_file for entry in table.table.metadata.metadata_log]


def named(table: IcebergTable) -> Named:
    """Return all that a table names."""
    paths = reached(table, table.snapshots).paths()
    return Named(
        (*paths, *statistics_paths(table), table.table.metadata_location),
        (*metadata_log(table), f"{table.location}/metadata/{VERSION_HINT}"),
    )


def named_in(metadata: MetadataFile, io: FileIO, damaged: list[RookeryError] | None = None) -> Iterator[str]:
    """Yield all that a metadata file names, itself too.

    It may be of a table that was dropped, or older than the snapshots that have expired since: missing files
    name nothing any more. What cannot be read is an error, or is added to *damaged* and skipped.
    """
    yield from (
        metadata.location,
        *metadata.log,
        *metadata.statistics,
        *metadata.manifest_lists,
        *metadata.manifests,
    )
    manifests = {path: _unlisted(path) for path in metadata.manifests}
    for location in metadata.manifest_lists:
        with _tolerating(damaged):
            manifests |= {each.manifest_path: each for each in read_manifest_list(io, location)}
    yield from manifests
    for manifest in manifests.values():
        files: list[str] = []
        with _tolerating(damaged):
            files = read_files(io, [manifest])["path"].to_pylist()
        yield from files


@contextmanager
def _tolerating(damaged: list[RookeryError] | None) -> Iterator[None]:
    try:
        yield
    except MissingFileError:
        pass
    except RookeryError as error:
        if damaged is None:
            raise
        damaged.append(error)


def _unlisted(path: str) -> Manifest:
    """A manifest of which only the location is known."""
    nothing = (None,) * 7
    return Manifest(path, 0, 0, 0, 0, 0, *nothing, ())


def counts(files: pa.Table) -> dict[str, int]:
    """Count files by their content: data, position deletes, equality deletes."""
    kinds = {"data": 0, "position": 1, "equality": 2}
    return {name: int(pc.sum(pc.equal(files["content"], kind)).as_py() or 0) for name, kind in kinds.items()}
