"""Segments: everything that is known per file, for a group of at most 1,024 files. They never change."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from functools import cached_property

import pyarrow as pa

from rookery.model import Place
from rookery.puffin import Blob, BlobMetadata, Reader, open_puffin
from rookery.sketch import InvertedTheta
from rookery.sketch.blob_types import INVERTED_THETA_V1
from rookery.storage import Readable
from rookery.store.seal import DamagedError, SealingWriter, read_sealed

ZONE_MAP_V1 = "rookery-zone-map-v1"
PREFIX = "segment-"
SUFFIX = ".puffin"
_UNIQUE = re.compile(r"([0-9a-f]{16})[0-9a-f]{16}" + re.escape(SUFFIX))


def unique_part() -> str:
    """Return what makes a name unlike all others; it begins with the time, so that names tell their age."""
    return f"{time.time_ns():016x}{secrets.token_hex(8)}"


def written_at(name: str) -> float | None:
    """Return when the file of that name was begun, in seconds since 1970.

    >>> written_at("segment-0de0b6b3a764000000000000000000aa.puffin")
    1000000000.0
    """
    match = _UNIQUE.search(name)
    return int(match.group(1), 16) / 1e9 if match else None


def segment_name() -> str:
    """Return a name that no other segment has."""
    return f"{PREFIX}{unique_part()}{SUFFIX}"


def write_segment(
    location: str,
    zone_map: pa.Table,
    thetas: Mapping[int, InvertedTheta],
    *,
    snapshot_id: int,
    sequence_number: int,
    io_properties: Mapping[str, str],
) -> None:
    """Write what is known of a group: *zone_map* has a row a file, *thetas* are by field id."""
    with SealingWriter(location, io_properties=io_properties) as writer:
        writer.add(Blob(ZONE_MAP_V1, encode_table(zone_map), (), snapshot_id, sequence_number))
        for field_id, theta in sorted(thetas.items()):
            # Not compressed: hashes do not shrink, and one row of bits can be read by its range.
            writer.add(
                Blob(
                    INVERTED_THETA_V1, theta.encode(), (field_id,), snapshot_id, sequence_number, codec="none"
                )
            )


class Segment:
    """An open segment; each part is read when it is asked for."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @cached_property
    def _blobs(self) -> dict[tuple[str, tuple[int, ...]], BlobMetadata]:
        return {(blob.type, blob.fields): blob for blob in self._reader.metadata.blobs}

    @property
    def field_ids(self) -> frozenset[int]:
        """The columns that the segment knows."""
        return frozenset(fields[0] for kind, fields in self._blobs if kind == INVERTED_THETA_V1)

    @cached_property
    def zone_map(self) -> pa.Table:
        """The files of the group, in the order of their ordinals."""
        blob = self._blobs.get((ZONE_MAP_V1, ()))
        if blob is None:
            raise DamagedError(Place(self._reader.source.name), "a zone map", "none")
        ((_, payload),) = read_sealed(self._reader, [blob])
        return decode_table(payload)

    def thetas(self, field_ids: frozenset[int] | None = None) -> dict[int, InvertedTheta]:
        """Return the inverted thetas of these columns, or of all; neighbours share a read."""
        missing = (field_ids or frozenset()) - self.field_ids
        if missing:
            raise DamagedError(Place(self._reader.source.name), f"columns {sorted(missing)}", "others")
        wanted = [
            blob
            for (kind, fields), blob in self._blobs.items()
            if kind == INVERTED_THETA_V1 and (field_ids is None or fields[0] in field_ids)
        ]
        return {
            blob.fields[0]: InvertedTheta.decode(payload, place=Place(self._reader.source.name, blob.offset))
            for blob, payload in read_sealed(self._reader, wanted)
        }

    def __enter__(self) -> Segment:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()


def open_segment(what: Readable, io_properties: Mapping[str, str] | None = None) -> Segment:
    """Open a segment."""
    return Segment(open_puffin(what, properties=io_properties))


def encode_table(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode_table(payload: bytes) -> pa.Table:
    """Read an Arrow IPC stream."""
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return reader.read_all()
