"""The values of a column chunk, straight from its pages.

A set of values needs no levels and no row order. So of a dictionary-coded chunk only the dictionary is read;
`PLAIN` pages are hashed from their decompressed bytes; dictionary-coded data pages are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.io import Source
from rookery.model import Place
from rookery.parquet.ranges import check_range
from rookery.parquet.structure import CODECS, Chunk, Encoding, PageType, ParquetError, damaged
from rookery.parquet.thrift import Cursor, Struct, ThriftError

Values = Callable[[NDArray[np.uint8], int, int], None]
"""Receives the values of an array between two offsets, PLAIN-encoded."""

_MAX_PAGE = 1 << 31


class UnreadablePagesError(ParquetError):
    """The chunk is in a form that only a full Parquet reader understands."""


def read_chunk(source: Source, chunk: Chunk, take: Values) -> None:
    """Pass every distinct value of *chunk* (and perhaps repetitions) to *take*."""
    if chunk.values == 0:
        return
    dictionary_only = chunk.dictionary_size > 0 and not chunk.plain_pages and not chunk.other_pages
    size = chunk.dictionary_size if dictionary_only else chunk.size
    check_range(source, chunk.start, size, f"pages of column {'.'.join(chunk.leaf.path)}")
    data = source.read(chunk.start, size)
    with damaged(Place(source.name, chunk.start), f"pages of column {'.'.join(chunk.leaf.path)}"):
        for header, page in _pages(data):
            _take_page(header, page, chunk, take)


def _pages(data: bytes) -> Iterator[tuple[Struct, memoryview]]:
    view = memoryview(data)
    cursor = Cursor(view)
    while cursor.position < len(view):
        header = cursor.struct()
        end = cursor.position + header[3]
        if header[3] < 0 or end > len(view):
            raise ThriftError("a page is longer than its chunk")
        yield header, view[cursor.position : end]
        cursor.position = end


def _take_page(header: Struct, page: memoryview, chunk: Chunk, take: Values) -> None:
    kind = header[1]
    if kind == PageType.DICTIONARY:
        values = _array(_decompress(page, header[2], chunk))
        take(values, 0, len(values))
    elif kind == PageType.DATA:
        encoding = header[5][2]
        if encoding == Encoding.PLAIN:
            _check_levels(header[5], chunk)
            values = _array(_decompress(page, header[2], chunk))
            take(values, _skip_levels(values, chunk), len(values))
        else:
            _check_dictionary(encoding)
    elif kind == PageType.DATA_V2:
        details = header[8]
        if details[4] == Encoding.PLAIN:
            levels = details[5] + details[6]
            stored = page[levels:]
            packed = details.get(7, True)
            values = _array(_decompress(stored, header[2] - levels, chunk) if packed else stored)
            take(values, 0, len(values))
        else:
            _check_dictionary(details[4])


def _check_levels(details: Struct, chunk: Chunk) -> None:
    """Absent levels may have any encoding; others must state their length."""
    for encoding, highest in (
        (details[3], chunk.leaf.max_definition),
        (details[4], chunk.leaf.max_repetition),
    ):
        if highest and encoding != Encoding.RLE:
            raise UnreadablePagesError(Place("page"), "levels in RLE", str(encoding))


def _check_dictionary(encoding: int) -> None:
    if encoding not in (Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY):
        raise UnreadablePagesError(Place("page"), "PLAIN or dictionary encoding", str(encoding))


def _skip_levels(values: NDArray[np.uint8], chunk: Chunk) -> int:
    """In a version 1 page each kind of level is before the values, after its length."""
    position = 0
    for highest in (chunk.leaf.max_repetition, chunk.leaf.max_definition):
        if highest:
            if position + 4 > len(values):
                raise ThriftError("a page ends inside its levels")
            position += 4 + int.from_bytes(values[position : position + 4].tobytes(), "little")
    if position > len(values):
        raise ThriftError("levels are longer than their page")
    return position


def _decompress(page: memoryview, size: int, chunk: Chunk) -> pa.Buffer | memoryview:
    if chunk.codec not in CODECS:
        raise UnreadablePagesError(Place("page"), "a known codec", str(chunk.codec))
    name = CODECS[chunk.codec]
    if name is None:
        return page
    if not 0 <= size < _MAX_PAGE:
        raise ThriftError(f"a page of {size} bytes")
    return pa.Codec(name).decompress(pa.py_buffer(page), size) if size else memoryview(b"")


def _array(data: pa.Buffer | memoryview) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
