"""Single metadata files, of any table and format version: the files that they name, and their log."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from rookery.io import open_source
from rookery.model import MissingFileError

METADATA_NAME = re.compile(r"\.metadata\.json(?:\.gz)?$")
_GZIP = b"\x1f\x8b"
_TELLING = frozenset({"format-version", "table-uuid", "location"})  # one of which all metadata files have
# The properties of a table that state where it writes.
_WRITES_TO = (
    "write.data.path",
    "write.object-storage.path",
    "write.folder-storage.path",
    "write.metadata.path",
)


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """What a metadata file states of a table's files."""

    location: str
    table_uuid: str  # empty where format version 1 has none, and so that of no other table
    updated_ms: int
    folders: tuple[str, ...]  # where the table is and writes
    log: tuple[str, ...]  # the metadata files before it, the oldest first
    snapshots: tuple[int, ...]
    manifest_lists: tuple[str, ...]  # of all snapshots
    manifests: tuple[str, ...]  # that snapshots name without a list, as format version 1 allows
    statistics: tuple[str, ...]  # of columns and of partitions


def folders_written(location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders of a table by its location and properties."""
    return location, *(properties[key] for key in _WRITES_TO if properties.get(key))


def read_metadata_file(location: str, io_properties: Mapping[str, str]) -> MetadataFile | None:
    """Read a metadata file; None if it is incomplete or missing, so that no table uses it."""
    try:
        with open_source(location, io_properties) as source:
            data = source.read_all()
    except MissingFileError:
        return None  # a failed commit has deleted it
    try:
        return parse_metadata(location, gzip.decompress(data) if data.startswith(_GZIP) else data)
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, gzip.BadGzipFile, zlib.error):
        return None


def parse_metadata(location: str, text: str | bytes) -> MetadataFile:
    """Read the JSON of a metadata file."""
    metadata = json.loads(text)
    if metadata.keys().isdisjoint(_TELLING):
        raise ValueError(f"{location} is not a metadata of a table")
    snapshots = metadata.get("snapshots") or ()
    statistics = (*(metadata.get("statistics") or ()), *(metadata.get("partition-statistics") or ()))
    properties = {str(key): str(value) for key, value in (metadata.get("properties") or {}).items()}
    place = str(metadata.get("location") or "")
    return MetadataFile(
        location=location,
        table_uuid=str(metadata.get("table-uuid") or ""),
        updated_ms=int(metadata.get("last-updated-ms") or 0),
        folders=tuple(folder for folder in folders_written(place, properties) if folder),
        log=tuple(str(entry["metadata-file"]) for entry in metadata.get("metadata-log") or ()),
        snapshots=tuple(int(each["snapshot-id"]) for each in snapshots),
        manifest_lists=tuple(str(each["manifest-list"]) for each in snapshots if each.get("manifest-list")),
        manifests=tuple(str(path) for each in snapshots for path in each.get("manifests") or ()),
        statistics=tuple(str(each["statistics-path"]) for each in statistics),
    )
