"""A Parquet file's footer: its leaf columns by field id, and where their chunks lie."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

from rookery.model import FormatError, Place, RookeryError
from rookery.parquet.thrift import Cursor, Struct
from rookery.storage import Source

MAGIC = b"PAR1"
_TAIL = struct.Struct("<I4s")
FIRST_READ = 64 << 10  # the footers of most files are shorter
_MAX_FOOTER = 1 << 30


class ParquetError(FormatError):
    """The bytes are not a Parquet file that can be read here."""


# NotImplementedError is what pyarrow says of what it does not know, OSError of what does not decompress.
_SYMPTOMS = (
    *(LookupError, TypeError, AttributeError, ValueError, ArithmeticError),
    *(MemoryError, NotImplementedError, OSError),
)


@contextmanager
def damaged(place: Place, expected: str) -> Iterator[None]:
    """Turn whatever a damaged file does to those who read it into an error that names it."""
    try:
        yield
    except RookeryError:
        raise
    except (
        LookupError,
        TypeError,
        AttributeError,
        ValueError,
        ArithmeticError,
        MemoryError,
        OSError,
    ) as error:
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
    """The encodings that matter here."""

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
_DICTIONARY = (Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY)
_DATA_PAGES = (PageType.DATA, PageType.DATA_V2)


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


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group's chunks, in the order of the leaves."""

    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Footer:
    """All of it."""

    rows: int
    leaves: tuple[Leaf, ...]
    row_groups: tuple[RowGroup, ...]


def read_footer(source: Source, size: int | None = None) -> Footer:
    """Read a footer with one range read, or two if it is long."""
    size = source.size if size is None else size
    if size < len(MAGIC) + _TAIL.size:
        raise ParquetError(Place(source.name), "a Parquet file", f"{size} bytes")
    start = max(size - FIRST_READ, 0)
    data = source.read(start, size - start)
    length, magic = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    end = size - _TAIL.size
    if magic != MAGIC:
        what = "an encrypted footer" if magic == b"PARE" else repr(magic)
        raise ParquetError(Place(source.name, end + 4), f"the magic {MAGIC!r} at the end", what)
    if length > min(end - len(MAGIC), _MAX_FOOTER):
        raise ParquetError(Place(source.name, end), "a footer that fits the file", f"{length} bytes")
    if end - length < start:
        data = source.read(end - length, start - end + length) + data
        start = end - length
    at = end - length - start
    with damaged(Place(source.name, end - length), "Parquet metadata"):
        return _parse(Cursor(data[at : at + length]).struct())


def _parse(metadata: Struct) -> Footer:
    leaves = tuple(_leaves(metadata[2]))
    groups = tuple(
        RowGroup(group[3], tuple(_chunk(leaf, column) for leaf, column in zip(leaves, group[1], strict=True)))
        for group in metadata[4]
    )
    return Footer(metadata[3], leaves, groups)


def _leaves(elements: list[Struct]) -> Iterator[Leaf]:
    """Walk the schema, which is a tree flattened in depth-first order; the root is no column."""
    stack: list[tuple[int, tuple[str, ...], int, int]] = [(elements[0].get(5, 0), (), 0, 0)]
    index = 0
    for element in elements[1:]:
        while stack[-1][0] == 0:
            stack.pop()
        left, path, definition, repetition = stack[-1]
        stack[-1] = (left - 1, path, definition, repetition)
        path = (*path, element[4].decode())
        kind = element.get(3, 0)  # 0 required, 1 optional, 2 repeated
        definition += kind in (1, 2)
        repetition += kind == 2
        children = element.get(5, 0)
        if children:
            stack.append((children, path, definition, repetition))
            continue
        yield Leaf(
            index,
            path,
            element.get(9),
            Physical(element[1]),
            element.get(2, 0),
            definition,
            repetition,
            _time_unit(element),
        )
        index += 1


def _time_unit(element: Struct) -> str | None:
    """The unit of a TIME or TIMESTAMP, by its logical type or, in old files, its converted type."""
    logical = element.get(10, {})
    for kind in (7, 8):
        if kind in logical:
            return {1: "ms", 2: "us", 3: "ns"}[next(iter(logical[kind][2]))]
    return {7: "ms", 8: "us", 9: "ms", 10: "us"}.get(element.get(6, -1))


def _chunk(leaf: Leaf, column: Struct) -> Chunk:
    metadata = column[3]
    dictionary_at = metadata.get(11) or 0
    data_at = metadata[9]
    start = dictionary_at if 0 < dictionary_at < data_at else data_at
    plain, dictionary, other = _page_encodings(metadata)
    codec, values, size = metadata[4], metadata[5], metadata[7]
    if not all(isinstance(number, int) for number in (codec, values, size)):
        raise TypeError("a column chunk whose sizes are no numbers")
    return Chunk(leaf, codec, values, start, size, data_at - start, plain, dictionary, other)


def _page_encodings(metadata: Struct) -> tuple[bool, bool, bool]:
    """Which encodings the data pages have: exactly, where `encoding_stats` is there, else what may be."""
    if 13 in metadata:
        found = {stat[2] for stat in metadata[13] if stat[1] in _DATA_PAGES and stat[3] > 0}
    else:
        # Levels are RLE or BIT_PACKED in every file; beside a dictionary, PLAIN may be the dictionary's own.
        found = set(metadata[2]) - {Encoding.RLE, Encoding.BIT_PACKED}
        if Encoding.RLE in metadata[2] and metadata[1] == Physical.BOOLEAN:
            found.add(Encoding.RLE)
    known = {Encoding.PLAIN, *_DICTIONARY}
    return Encoding.PLAIN in found, not found.isdisjoint(_DICTIONARY), not found <= known
