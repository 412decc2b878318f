"""The parts of a Parquet file: types, encodings, leaves, row groups and chunks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum

import pyarrow as pa

from rookery.model import FormatError, Place, RookeryError
from rookery.parquet.thrift import Struct


class ParquetError(FormatError):
    """The bytes are not a Parquet file that can be read here."""


# pyarrow raises NotImplementedError for unknown features, OSError if decompression fails.
_OBJECT_BYTES = 1200  # approximate memory of a leaf, or of a chunk with its statistics
_SYMPTOMS: tuple[type[Exception], ...] = (
    *(LookupError, TypeError, AttributeError, ValueError, ArithmeticError),
    *(MemoryError, NotImplementedError, OSError, pa.ArrowException),
)


@contextmanager
def damaged(place: Place, expected: str) -> Iterator[None]:
    """Convert all errors of reading a damaged file to one that names it."""
    try:
        yield
    except RookeryError:
        raise
    except _SYMPTOMS as error:
        raise ParquetError(place, expected, repr(error)) from error


class Physical(IntEnum):
    """Parquet's physical types."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


class Encoding(IntEnum):
    """The encodings that are distinguished here."""

    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    BIT_PACKED = 4
    RLE_DICTIONARY = 8


class PageType(IntEnum):
    """The kinds of page."""

    DATA = 0
    INDEX = 1
    DICTIONARY = 2
    DATA_V2 = 3


CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive column: its place among the leaves, and how its values are stored."""

    index: int
    path: tuple[str, ...]
    field_id: int | None
    physical: Physical
    width: int  # of a fixed-length byte array
    max_definition: int
    max_repetition: int
    time_unit: str | None  # "ms", "us" or "ns" of a time or timestamp
    root: int = 0  # the place of its top-level column
    ordered: bool = False  # the file's bounds of it are in the order of its type, and can be trusted
    elements: tuple[Struct, ...] = field(default=(), compare=False, repr=False)  # of the schema, by path

    @property
    def is_flat(self) -> bool:
        """Whether it has one value a row: no list or map is above it."""
        return self.max_repetition == 0


@dataclass(frozen=True, slots=True)
class ChunkStatistics:
    """Statistics of a chunk from its writer; None if not stated, or not trusted."""

    null_count: int | None = None
    min_value: bytes | None = None
    max_value: bytes | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """One leaf of one row group."""

    leaf: Leaf
    codec: int
    values: int  # nulls and repetitions counted
    start: int
    size: int
    dictionary_size: int  # bytes from the start to the first data page, 0 without a dictionary
    plain_pages: bool  # some data page is PLAIN
    dictionary_pages: bool  # some data page refers to the dictionary
    other_pages: bool  # some data page has an encoding that is not read here
    uncompressed_size: int | None = None
    encodings: tuple[int, ...] = ()
    statistics: ChunkStatistics = ChunkStatistics()
    offset_index_offset: int | None = None
    offset_index_length: int | None = None
    column_index_offset: int | None = None
    column_index_length: int | None = None
    bloom_filter_offset: int | None = None
    bloom_filter_length: int | None = None
    byte_array_bytes: int | None = None  # of all its byte arrays, decoded and without their lengths


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group's chunks, in the order of the leaves."""

    rows: int
    chunks: tuple[Chunk, ...]
    first_row: int = 0  # among the rows of the file


@dataclass(frozen=True, slots=True)
class Footer:
    """All of it."""

    rows: int
    leaves: tuple[Leaf, ...]
    row_groups: tuple[RowGroup, ...]
    version: int = 1
    created_by: bytes | None = None
    arrow_schema: bytes | None = None  # as Arrow's writers store it, for types that Parquet does not know

    @property
    def nbytes(self) -> int:
        """Its approximate memory."""
        return _OBJECT_BYTES * len(self.leaves) * (1 + len(self.row_groups)) + len(self.arrow_schema or b"")
