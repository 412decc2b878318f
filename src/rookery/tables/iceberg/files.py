"""Manifests to Arrow: one row a live file.

Entries are read with the version 3 schema, so that deletion vectors show what they refer to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)

from rookery.model import StorageError
from rookery.storage import shown, without_secrets

_VERSION = 3
_COUNTS = pa.map_(pa.int32(), pa.int64())
_BOUNDS = pa.map_(pa.int32(), pa.binary())

FILE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("content", pa.int8()),  # 0 data, 1 position deletes or deletion vector, 2 equality deletes
        ("format", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("spec_id", pa.int32()),
        ("partition", pa.string()),  # JSON list of values in the order of the spec
        ("sequence_number", pa.int64()),
        ("column_sizes", _COUNTS),
        ("value_counts", _COUNTS),
        ("null_counts", _COUNTS),
        ("nan_counts", _COUNTS),
        ("lower_bounds", _BOUNDS),
        ("upper_bounds", _BOUNDS),
        ("referenced_data_file", pa.string()),
        ("content_offset", pa.int64()),
        ("content_size", pa.int64()),
        ("equality_ids", pa.list_(pa.int32())),
        ("manifest", pa.string()),
    ]
)


def read_files(io: FileIO, manifests: Iterable[ManifestFile]) -> pa.Table:
    """Return the live files of *manifests*, data and deletes alike."""
    batches = []
    for manifest in manifests:
        with readable(manifest.manifest_path):
            batches.append(_read_manifest(io, manifest))
    return pa.Table.from_batches(batches, FILE_SCHEMA)


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Say plainly that a metadata file cannot be read, whatever its library raises."""
    try:
        yield
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StorageError(
            f"{shown(path)}: cannot be read: {without_secrets(reason, path)}",
            hint="has the table been dropped, or the snapshot expired, under the run?",
        ) from error


def _read_manifest(io: FileIO, manifest: ManifestFile) -> pa.RecordBatch:
    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        rows = [_row(entry, manifest) for entry in entries if entry.status != ManifestEntryStatus.DELETED]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(FILE_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FILE_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FILE_SCHEMA)


def _row(entry: ManifestEntry, manifest: ManifestFile) -> Sequence[Any]:
    file = entry.data_file
    sequence = entry.sequence_number
    if sequence is None:  # inherited by what the manifest's own commit added
        sequence = manifest.sequence_number
    (
        content,
        path,
        file_format,
        partition,
        rows,
        size,
        column_sizes,
        value_counts,
        null_counts,
        nan_counts,
        lower,
        upper,
        _key,
        _splits,
        equality_ids,
        _sort_order,
        _first_row,
        referenced,
        offset,
        content_size,
    ) = file._data[:20]
    return (
        path,
        int(content or 0),
        str(getattr(file_format, "value", file_format)).lower(),
        size,
        rows,
        manifest.partition_spec_id,
        partition_key(partition),
        sequence,
        _pairs(column_sizes),
        _pairs(value_counts),
        _pairs(null_counts),
        _pairs(nan_counts),
        _pairs(lower),
        _pairs(upper),
        referenced,
        offset,
        content_size,
        equality_ids,
        manifest.manifest_path,
    )


def _pairs(mapping: dict[int, Any] | None) -> list[tuple[int, Any]] | None:
    return None if mapping is None else list(mapping.items())


def partition_key(partition: Any) -> str:
    """A partition's values as JSON, so that equal partitions are equal strings."""
    values = getattr(partition, "_data", ())
    return json.dumps([value.hex() if isinstance(value, bytes) else value for value in values], default=str)


def is_data(manifest: ManifestFile) -> bool:
    """Whether a manifest lists data files, not deletes."""
    return manifest.content == ManifestContent.DATA
