"""Parquet's own Bloom filters: the split-block kind, a bitset after a small header."""

from __future__ import annotations

from rookery.io import Source
from rookery.model import Place
from rookery.parquet.ranges import check_range
from rookery.parquet.structure import Chunk, ParquetError, damaged
from rookery.parquet.thrift import Cursor, Struct

BLOCK_BYTES = 32
_MAX_BYTES = 128 << 20  # the most that writers make
_HEADER_READ = 64  # holds any header; for files that do not state the length of header and bitset

# BloomFilterHeader: its size, then three unions of which each has one known member.
_NUM_BYTES, _ALGORITHM, _HASH, _COMPRESSION = 1, 2, 3, 4
_KNOWN_MEMBER = 1  # BLOCK, XXHASH, UNCOMPRESSED


def read_bloom(source: Source, chunk: Chunk) -> bytes | None:
    """Read a chunk's bitset; None if it has no filter, or one of a kind that is not known here."""
    offset = chunk.bloom_filter_offset
    if offset is None:
        return None
    what = f"a Bloom filter of column {'.'.join(chunk.leaf.path)}"
    length = chunk.bloom_filter_length
    if length is None:
        length = min(_HEADER_READ, source.size - offset)
    if length > _MAX_BYTES + _HEADER_READ:
        raise ParquetError(Place(source.name, offset), what, f"{length} bytes")
    check_range(source, offset, length, what)
    data = source.read(offset, length)
    cursor = Cursor(data)
    with damaged(Place(source.name, offset), what):
        header = cursor.struct()
        if not all(_is_known(header, union) for union in (_ALGORITHM, _HASH, _COMPRESSION)):
            return None
        size = header[_NUM_BYTES]
        if not 0 < size <= _MAX_BYTES or size % BLOCK_BYTES:
            raise ParquetError(Place(source.name, offset), f"{what} of whole blocks", f"{size} bytes")
    bits = data[cursor.position : cursor.position + size]
    missing = size - len(bits)
    if not missing:
        return bits
    if chunk.bloom_filter_length is not None:
        raise ParquetError(Place(source.name, offset), f"{what} of {length} bytes", f"{size} and a header")
    check_range(source, offset + length, missing, what)
    return bits + source.read(offset + length, missing)


def _is_known(header: Struct, union: int) -> bool:
    return _KNOWN_MEMBER in header[union]
