"""A Parquet file's footer: its leaf columns by field id, and the places of their chunks."""

from __future__ import annotations

import struct

from rookery.io import Source
from rookery.model import Place
from rookery.parquet.metadata import parse_metadata
from rookery.parquet.structure import (
    CODECS,
    Chunk,
    ChunkStatistics,
    Encoding,
    Footer,
    Leaf,
    PageType,
    ParquetError,
    Physical,
    RowGroup,
    damaged,
)
from rookery.parquet.thrift import Cursor

__all__ = [
    "CODECS",
    "FIRST_READ",
    "MAGIC",
    "Chunk",
    "ChunkStatistics",
    "Encoding",
    "Footer",
    "Leaf",
    "PageType",
    "ParquetError",
    "Physical",
    "RowGroup",
    "damaged",
    "read_footer",
]

MAGIC = b"PAR1"
_TAIL = struct.Struct("<I4s")
FIRST_READ = 64 << 10  # the footers of most files are shorter
_MAX_FOOTER = 1 << 30


def read_footer(source: Source, size: int | None = None, rows: int | None = None) -> Footer:
    """Read a footer with one range read, or two if it is long.

    A file with another number of *rows* than the table's metadata states is not the one committed.
    """
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
        footer = parse_metadata(Cursor(data[at : at + length]).struct())
    actual = sum(group.rows for group in footer.row_groups)
    if rows is not None and actual != rows:
        raise ParquetError(
            Place(source.name), f"{rows} rows, as the table's metadata states", f"{actual} rows"
        )
    return footer
