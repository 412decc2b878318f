"""Segments: everything that is known per file, for a group of at most 1,024 files. They are immutable."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from rookery.io import Readable
from rookery.model import Place
from rookery.puffin import Blob, BlobMetadata, Reader, WrittenFile, open_puffin
from rookery.sidecar.checksums import (
    ChecksumWriter,
    DamagedError,
    footer_checksum,
    read_checked,
    read_head,
)
from rookery.sidecar.lengths import LENGTHS_V1, checked_lengths
from rookery.sidecar.zone_map import ZoneMap, nothing_known
from rookery.sketch import InvertedTheta
from rookery.sketch.blob_types import HEAD_SIZE, INVERTED_THETA_V1

ZONE_MAP_V1 = "rookery-zone-map-v1"
THETA = "theta"
PREFIX = "segment-"
SUFFIX = ".puffin"
_BLOB_BYTES = 500  # approximate memory of a blob's description
_UNIQUE = re.compile(r"([0-9a-f]{16})[0-9a-f]{16}\.(?:puffin|bin)$")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Decode(Protocol[T_co]):
    """Decodes bytes; errors name their place."""

    def __call__(self, data: bytes, /, *, place: Place) -> T_co:
        """Return what the bytes contain."""
        ...


def unique_part() -> str:
    """Return a unique part of a name; it begins with the time, so that names state their age."""
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


def is_segment(name: str) -> bool:
    """Return whether a file of that name is a segment."""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a segment other than indexes: a zone map; inverted thetas and lengths by field id."""

    zone_map: ZoneMap
    thetas: Mapping[int, InvertedTheta] = field(default_factory=dict)
    lengths: Mapping[int, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexBlob:
    """A blob of an index, of any kind."""

    type: str
    field_id: int
    payload: bytes
    head: int = 0  # the bytes that are read first, and have the checksums of the others; 0: it is read whole


def write_segment(
    location: str,
    contents: Contents,
    indexes: Iterable[IndexBlob] = (),
    *,
    snapshot_id: int,
    sequence_number: int,
    io_properties: Mapping[str, str],
) -> WrittenFile:
    """Write what is known of a group; *indexes* may be large, and are taken one at a time."""
    ids = (snapshot_id, sequence_number)
    with ChecksumWriter(location, io_properties=io_properties) as writer:
        # Blobs read by ranges come first, uncompressed; those read whole, and before others, come last.
        for index in indexes:
            codec = "none" if index.head else None
            writer.add(Blob(index.type, index.payload, (index.field_id,), *ids, codec), index.head)
        for field_id, theta in sorted(contents.thetas.items()):
            # θ as a property shows whether the blob need be read. Hashes do not compress: no codec.
            properties = {THETA: str(theta.theta)}
            writer.add(Blob(INVERTED_THETA_V1, theta.encode(), (field_id,), *ids, "none", properties))
        for field_id, lengths in sorted(contents.lengths.items()):
            writer.add(Blob(LENGTHS_V1, encode_table(lengths), (field_id,), *ids))
        for field_id, column in sorted(contents.zone_map.columns.items()):
            writer.add(Blob(ZONE_MAP_V1, encode_table(column), (field_id,), *ids))
        writer.add(Blob(ZONE_MAP_V1, encode_table(contents.zone_map.files), (), *ids))
    return writer.written


class Segment:
    """An open segment; each part is read at first use."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._heads: dict[tuple[str, int], list[tuple[BlobMetadata, Any]]] = {}

    @property
    def name(self) -> str:
        """Its location."""
        return self._reader.source.name

    @property
    def bytes_read(self) -> int:
        """How much of it has been read."""
        return self._reader.source.bytes_read

    @property
    def nbytes(self) -> int:
        """The approximate memory of what has been read of it and cached."""
        heads = sum(int(blob.properties[HEAD_SIZE]) for pairs in self._heads.values() for blob, _ in pairs)
        files = self.files.nbytes if "files" in self.__dict__ else 0
        return _BLOB_BYTES * len(self._reader.metadata.blobs) + heads + int(files)

    @cached_property
    def _blobs(self) -> dict[tuple[str, tuple[int, ...]], list[BlobMetadata]]:
        by_type: dict[tuple[str, tuple[int, ...]], list[BlobMetadata]] = {}
        for blob in self._reader.metadata.blobs:
            by_type.setdefault((blob.type, blob.fields), []).append(blob)
        return by_type

    def _of(self, kind: str) -> dict[int, list[BlobMetadata]]:
        return {
            fields[0]: blobs for (type_, fields), blobs in self._blobs.items() if type_ == kind and fields
        }

    @property
    def field_ids(self) -> frozenset[int]:
        """The columns whose distinct values the segment knows."""
        return frozenset(self._of(INVERTED_THETA_V1))

    @cached_property
    def files(self) -> pa.Table:
        """The files of the group, in the order of their ordinals."""
        blobs = self._blobs.get((ZONE_MAP_V1, ()))
        if not blobs:
            raise DamagedError(Place(self.name), "a zone map", "none")
        ((_, payload),) = read_checked(self._reader, blobs)
        return self._table(payload)

    def zone_column(self, field_id: int) -> pa.Table:
        """Return what file lists state of a column, one row per file."""
        blobs = self._of(ZONE_MAP_V1).get(field_id, [])
        for _, payload in read_checked(self._reader, blobs):
            return self._table(payload)
        return nothing_known(self.files.num_rows)

    @property
    def zone_map(self) -> ZoneMap:
        """All that file lists state of the files; adjacent blobs are read together."""
        blobs = [blob for column_blobs in self._of(ZONE_MAP_V1).values() for blob in column_blobs]
        return ZoneMap(
            self.files,
            {blob.fields[0]: self._table(payload) for blob, payload in read_checked(self._reader, blobs)},
        )

    def lengths(self, field_ids: Iterable[int] | None = None) -> dict[int, pa.Table]:
        """Return the lengths of these columns' values, or of all that are known, in each file."""
        by_id = self._of(LENGTHS_V1)
        wanted = [
            blob for number in (by_id if field_ids is None else field_ids) for blob in by_id.get(number, ())
        ]
        return {
            blob.fields[0]: checked_lengths(self._table(payload), self.files.num_rows, self.place_of(blob))
            for blob, payload in read_checked(self._reader, wanted)
        }

    def _table(self, payload: bytes) -> pa.Table:
        try:
            return decode_table(payload)
        except (pa.ArrowException, OSError) as error:
            raise DamagedError(Place(self.name), "an Arrow stream", repr(error)) from error

    def theta_of(self, field_id: int) -> int | None:
        """Return θ of a column, or None where its distinct values are not known."""
        for blob in self._of(INVERTED_THETA_V1).get(field_id, []):
            text = blob.properties.get(THETA, "")
            return int(text) if text.isascii() and text.isdigit() else None
        return None

    def thetas(self, field_ids: frozenset[int] | None = None) -> dict[int, InvertedTheta]:
        """Return the inverted thetas of these columns, or of all; those that are close share a read."""
        missing = (field_ids or frozenset()) - self.field_ids
        if missing:
            raise DamagedError(Place(self.name), f"columns {sorted(missing)}", "others")
        wanted = [
            blob
            for number, blobs in self._of(INVERTED_THETA_V1).items()
            if field_ids is None or number in field_ids
            for blob in blobs
        ]
        return {
            blob.fields[0]: InvertedTheta.decode(payload, place=Place(self.name, blob.offset))
            for blob, payload in read_checked(self._reader, wanted)
        }

    def payloads(self, blob_type: str, field_id: int) -> Iterator[tuple[bytes, Place]]:
        """Yield a column's blobs of a type, whole, and the place of each."""
        for blob, payload in read_checked(self._reader, self._of(blob_type).get(field_id, [])):
            yield payload, self.place_of(blob)

    def heads(self, blob_type: str, field_id: int, decode: Decode[T]) -> list[tuple[BlobMetadata, T]]:
        """Return a column's blobs of a type, each with its head; they are read and decoded once."""
        key = (blob_type, field_id)
        if key not in self._heads:
            self._heads[key] = [
                (blob, decode(read_head(self._reader, blob), place=self.place_of(blob)))
                for blob in self._of(blob_type).get(field_id, [])
            ]
        return self._heads[key]

    def read_range(self, blob: BlobMetadata, start: int, length: int) -> bytes:
        """Return some bytes of a blob that has a head; the head contains their checksum."""
        return self._reader.read_range(blob, start, length)

    def place_of(self, blob: BlobMetadata) -> Place:
        """Return the place of a blob, for errors."""
        return Place(self.name, blob.offset)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def __enter__(self) -> Segment:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_segment(
    what: Readable,
    io_properties: Mapping[str, str] | None = None,
    *,
    size: int = 0,
    footer_size: int = 0,
    checksum: str = "",
) -> Segment:
    """Open a segment; where its sizes are known, no more than its footer is read.

    A *checksum* distinguishes it from every other segment, which may be as complete as this one.
    """
    reader = open_puffin(
        what, properties=io_properties, file_size=size or None, footer_size=footer_size or None
    )
    if checksum and checksum != (actual := footer_checksum(reader.metadata)):
        reader.close()
        raise DamagedError(Place(reader.source.name), f"a footer with the checksum {checksum}", actual)
    return Segment(reader)


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
