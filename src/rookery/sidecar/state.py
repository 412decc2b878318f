"""The state of one snapshot: its segments, which of their files are live, and what is known of the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.io import Readable
from rookery.model import Field, FormatError, Place
from rookery.model.type_names import member_ids
from rookery.puffin import Blob, BlobMetadata, open_puffin
from rookery.sidecar.checksums import ChecksumWriter, read_checked
from rookery.sidecar.segment import decode_table, encode_table, unique_part
from rookery.sketch import ThetaSketch
from rookery.sketch.blob_types import KLL_V1, TABLE_THETA_V1, TOP_K_V1
from rookery.sketch.frequent import Frequent
from rookery.sketch.quantiles import Quantiles

HEADER_V1 = "rookery-index-v1"
FILES_V1 = "rookery-files-v1"
PREFIX = "state-"
SUFFIX = ".puffin"
_NAME = re.compile(r"state-(\d{10,})-(\d+)-([0-9a-f]{32})\.puffin")
VERSION = 2  # in 1 files were known by path and deletes alone, and lists by path
_OLDER = (1,)
NO_COLUMN_IS_YOUNGER = 2**31 - 1
_QUANTILES_BYTES, _FREQUENT_BYTES = 64 << 10, 512 << 10  # approximate memory of a sketch
_ENTRY_BYTES = 400  # approximate memory of the entry of a segment or list
_HEADER_WINDOW = 16 << 10  # from the end: the footer, the header, and some hundred files

FILES_SCHEMA = pa.schema(
    [
        ("key", pa.binary(16)),  # of the file's identity and of its deletes
        ("segment", pa.int32()),
        ("ordinal", pa.int16()),
        ("manifest", pa.int32()),  # the number of its list in `data_manifests`
        ("rows", pa.int64()),
    ]
)


class StateError(FormatError):
    """A state file is not valid."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index on a column, as it is declared: once declared, it is kept current.

    Its kind is an open name: a newer version may have declared a kind that this one does not know.
    """

    kind: str
    field_id: int
    type: str  # of the column: another type has other bytes
    fpp: float = 0.0  # the false-positive rate for each file, of kinds that have one
    options: tuple[tuple[str, str], ...] = ()  # further options of the kind

    @property
    def key(self) -> str:
        """Its key, without options: a column has one index of each kind."""
        return f"{self.kind} {self.field_id}"


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic beyond those of every column, as it is declared: once declared, it is kept current.

    Its kind is an open name, as that of an index.
    """

    kind: str
    field_ids: tuple[int, ...]  # in ascending order; none if it is of the whole table
    options: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """Its key, without options: the same columns have one of each kind."""
        return " ".join((self.kind, *map(str, self.field_ids)))


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment that a state names."""

    name: str
    files: int
    field_ids: tuple[int, ...]
    last_column_id: int = NO_COLUMN_IS_YOUNGER  # columns with a higher id are in none of the files
    indexes: tuple[Index, ...] = ()
    size: int = 0  # of the file and of its footer, so that opening it is one read of the latter
    footer_size: int = 0
    checksum: str = ""  # of the footer: the segment is this one, and no other

    def describes(self, column: Field) -> bool:
        """Whether all is known of a column: its values, or that it is too young to have any here."""
        return column.id in self.field_ids or (column.id > self.last_column_id and not column.filled)


@dataclass(frozen=True, slots=True)
class DistributionHeader:
    """Which columns have quantiles and frequent values, and which rows those describe."""

    histogram: tuple[int, ...]
    top_k: tuple[int, ...]
    sample: int  # row groups a file at most, 0 for all
    rows_seen: int
    rows_gone: int  # rows of files removed since

    @property
    def stale(self) -> float:
        """The share of the rows described that are no longer there."""
        return self.rows_gone / self.rows_seen if self.rows_seen else 0.0


@dataclass(frozen=True, slots=True)
class StateHeader:
    """The state's JSON."""

    table_uuid: str
    snapshot_id: int
    sequence_number: int
    timestamp_ms: int
    last_column_id: int
    segments: tuple[SegmentEntry, ...]
    data_manifests: tuple[str, ...]  # the lists of files, by identity; on disk they have Iceberg's name
    delete_manifests: tuple[str, ...]
    types: Mapping[int, str]  # of the columns collected, as they were typed then
    rows: DistributionHeader | None = None
    indexes: tuple[Index, ...] = ()  # that are declared, whether they are built yet or not
    declared_at: Mapping[str, int] = field(default_factory=dict)  # when each was last declared, or dropped
    statistics: tuple[Statistic, ...] = ()  # that are declared, whether they are collected yet or not
    # Apart from `declared_at`: versions that know no statistics carry that on, and would seem to drop them.
    statistics_at: Mapping[str, int] = field(default_factory=dict)
    ndvs: Mapping[int, int] = field(default_factory=dict)  # where there are fewer values than estimated
    version: int = VERSION

    @property
    def column_sets(self) -> dict[int, tuple[int, ...]]:
        """The column sets among the columns collected: the ids of their members, by their own."""
        return {number: member_ids(kind) for number, kind in self.types.items() if number < 0}


@dataclass(frozen=True, slots=True)
class State:
    """A state: its header, the live files, and the theta sketch of each column over them."""

    header: StateHeader
    files: pa.Table
    thetas: Mapping[int, ThetaSketch] = field(default_factory=dict)
    quantiles: Mapping[int, Quantiles] = field(default_factory=dict)
    frequent: Mapping[int, Frequent] = field(default_factory=dict)
    bytes_read: int = field(default=0, compare=False)  # to read it
    name: str = field(default="", compare=False)  # of the file that it was read from

    @property
    def nbytes(self) -> int:
        """The approximate memory of its header and files."""
        header = self.header
        manifests = len(header.data_manifests) + len(header.delete_manifests)
        return int(self.files.nbytes) + _ENTRY_BYTES * (len(header.segments) + manifests)

    @property
    def nbytes_with_sketches(self) -> int:
        """The approximate memory of all of it."""
        thetas = sum(theta.hashes.nbytes for theta in self.thetas.values())
        return (
            self.nbytes
            + thetas
            + _QUANTILES_BYTES * len(self.quantiles)
            + _FREQUENT_BYTES * len(self.frequent)
        )

    def ndv(self, column: int) -> int:
        """Return the number of distinct values of a column, as it is registered."""
        return self.header.ndvs.get(column, int(self.thetas[column].estimate().value))

    @property
    def is_whole(self) -> bool:
        """Whether each collected column is known for exactly this snapshot."""
        return self.header.types.keys() <= self.thetas.keys()

    def complete(self, columns: Sequence[Field]) -> set[int]:
        """Return the ids of those columns of which every live file is described."""
        keys = self.files["key"].combine_chunks().dictionary_encode()
        codes, segments = keys.indices.to_numpy(), self.files["segment"].to_numpy()
        is_complete: dict[frozenset[int], bool] = {frozenset(range(len(self.header.segments))): True}
        complete = set()
        for column in columns:
            having = frozenset(
                number for number, entry in enumerate(self.header.segments) if entry.describes(column)
            )
            if having not in is_complete:  # many columns have the same segments
                described = np.isin(segments, list(having))
                is_complete[having] = len(np.unique(codes[described])) == len(keys.dictionary)
            if is_complete[having] and self.header.types.get(column.id, column.type) == column.type:
                complete.add(column.id)
        return complete

    def with_segments(self, segments: tuple[SegmentEntry, ...], files: pa.Table) -> State:
        """Return the state with its files described by other segments."""
        return replace(self, header=replace(self.header, segments=segments), files=files)

    def live(self, segment: int) -> NDArray[np.bool_]:
        """Return which files of a segment live, by ordinal."""
        alive = np.zeros(self.header.segments[segment].files, bool)
        in_segment = self.files["segment"].to_numpy() == segment
        alive[self.files["ordinal"].to_numpy()[in_segment]] = True
        return alive


def state_name(header: StateHeader) -> str:
    """Return a file name with order and snapshot; of one snapshot's states, the later sorts later."""
    return f"{PREFIX}{header.sequence_number:010d}-{header.snapshot_id}-{unique_part()}{SUFFIX}"


def parse_state_name(name: str) -> tuple[int, int] | None:
    """Return sequence number and snapshot id from a state's name.

    >>> parse_state_name("state-0000000007-42-" + "0" * 32 + ".puffin")
    (7, 42)
    """
    match = _NAME.fullmatch(name)
    return (int(match.group(1)), int(match.group(2))) if match else None


def write_state(location: str, state: State, io_properties: Mapping[str, str]) -> None:
    """Write a complete state."""
    header = state.header
    ids = (header.snapshot_id, header.sequence_number)
    with ChecksumWriter(location, io_properties=io_properties) as writer:
        for field_id, sketch in sorted(state.thetas.items()):
            writer.add(Blob(TABLE_THETA_V1, sketch.encode(), (field_id,), *ids))
        for field_id, quantiles in sorted(state.quantiles.items()):
            writer.add(Blob(KLL_V1, quantiles.encode(), (field_id,), *ids))
        for field_id, frequent in sorted(state.frequent.items()):
            writer.add(Blob(TOP_K_V1, frequent.encode(), (field_id,), *ids))
        # Last, so that the read of the footer brings them along.
        writer.add(Blob(HEADER_V1, msgspec.json.encode(header), (), *ids))
        writer.add(Blob(FILES_V1, encode_table(state.files), (), *ids))


def read_state(
    what: Readable,
    io_properties: Mapping[str, str] | None = None,
    *,
    sketches: bool = True,
    size: int | None = None,
) -> State:
    """Read a state, checking that its parts fit together; without *sketches*, only its header and files.

    One of an older version describes no file, as it cannot distinguish files of the same name; what it
    declares (indexes, column sets, row statistics) is still valid.
    """
    window = None if sketches else _HEADER_WINDOW
    with open_puffin(what, properties=io_properties, file_size=size, footer_size=window) as reader:
        place = Place(reader.source.name)
        blobs = [blob for blob in reader.metadata.blobs if sketches or blob.type in (HEADER_V1, FILES_V1)]
        payloads = list(read_checked(reader, blobs))
        read = reader.source.bytes_read
    by_type = {blob.type: payload for blob, payload in payloads}
    try:
        header = msgspec.json.decode(by_type[HEADER_V1], type=StateHeader)
        if header.version in _OLDER:
            return _declarations(header, read)
        files = decode_table(by_type[FILES_V1])
    except (KeyError, msgspec.MsgspecError, UnicodeDecodeError, pa.ArrowException, OSError) as error:
        raise StateError(place, "a state's header and files", repr(error)) from error
    _check(header, files, place)
    return State(
        header=header,
        files=files,
        thetas=_decoded(payloads, TABLE_THETA_V1, ThetaSketch.decode, place),
        quantiles=_decoded(payloads, KLL_V1, Quantiles.decode, place),
        frequent=_decoded(payloads, TOP_K_V1, Frequent.decode, place),
        bytes_read=read,
    )


def _declarations(header: StateHeader, bytes_read: int) -> State:
    bare = replace(
        header,
        segments=(),
        data_manifests=(),
        delete_manifests=(),
        types={number: kind for number, kind in header.types.items() if number < 0},  # column sets
        rows=header.rows and replace(header.rows, rows_seen=0, rows_gone=0),
        version=VERSION,
    )
    return State(bare, FILES_SCHEMA.empty_table(), bytes_read=bytes_read)


def read_header(what: Readable, io_properties: Mapping[str, str] | None = None) -> StateHeader:
    """Read a state's JSON alone."""
    with open_puffin(what, properties=io_properties) as reader:
        place = Place(reader.source.name)
        for _, payload in read_checked(reader, (b for b in reader.metadata.blobs if b.type == HEADER_V1)):
            try:
                return msgspec.json.decode(payload, type=StateHeader)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise StateError(place, "a state's header", repr(error)) from error
    raise StateError(place, "a state's header", "none")


_Sketch = TypeVar("_Sketch")


def _decoded(
    payloads: Sequence[tuple[BlobMetadata, bytes]], kind: str, decode: Callable[..., _Sketch], place: Place
) -> dict[int, _Sketch]:
    return {
        blob.fields[0]: decode(payload, place=Place(place.file, blob.offset))
        for blob, payload in payloads
        if blob.type == kind and blob.fields
    }


def _check(header: StateHeader, files: pa.Table, place: Place) -> None:
    if header.version != VERSION:
        raise StateError(place, f"version {VERSION}", str(header.version))
    if files.schema != FILES_SCHEMA:
        raise StateError(place, "the columns of the live files", str(files.schema.names))
    segments = files["segment"].to_numpy()
    ordinals = files["ordinal"].to_numpy()
    sizes = np.array([entry.files for entry in header.segments], np.int64)
    inside = (segments >= 0) & (segments < len(sizes)) & (ordinals >= 0)
    if not inside.all() or (len(segments) and (ordinals >= sizes[segments]).any()):
        raise StateError(place, "files in the segments named", "others")
