"""The codecs of Avro's blocks. None returns more than a limit, even for a damaged block."""

from __future__ import annotations

import bz2
from binascii import crc32
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import zstandard
from zlib_ng import zlib_ng

from rookery.model import FormatError, Place
from rookery.tables.iceberg.avro.interpreter import varint

NULL_CODEC = "null"
_RAW_DEFLATE = -15
_SMALL = 1 << 15
_CHECKSUM_SIZE = 4
_STEP = 1 << 20
# No manifest compresses better than this; larger ones do not fit Arrow's 32-bit offsets.
_LARGEST_RATIO = 1000
_ALWAYS_ALLOWED = 1 << 20
LARGEST = 1 << 30

_ERRORS: Any = (
    ValueError, OSError, EOFError, MemoryError, zlib_ng.error, zstandard.ZstdError
)  # fmt: skip


def _deflate(data: bytes, limit: int) -> bytes:
    if len(data) <= _SMALL:  # which at its best compresses a thousandfold, so that no limit is needed
        whole: bytes = zlib_ng.decompress(data, _RAW_DEFLATE, 4 * len(data) + 64)
        return whole
    inflater = zlib_ng.decompressobj(_RAW_DEFLATE)
    plain: bytes = inflater.decompress(data, limit + 1)
    if len(plain) <= limit and not inflater.eof:
        raise ValueError("a stream without its end")
    return plain


def _bzip2(data: bytes, limit: int) -> bytes:
    stream = bz2.BZ2Decompressor()
    plain = stream.decompress(data, limit + 1)
    if len(plain) <= limit and not stream.eof:
        raise ValueError("a stream without its end")
    return plain


def _zstandard(data: bytes, limit: int) -> bytes:
    claimed = zstandard.frame_content_size(data)
    if claimed > limit:
        raise ValueError(f"a frame that claims {claimed} bytes")
    if claimed > 0:
        whole: bytes = zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
        return whole
    plain = bytearray()
    with zstandard.ZstdDecompressor().stream_reader(data) as frame:  # in steps, as it does not state its size
        while len(plain) <= limit and (step := frame.read(_STEP)):
            plain += step
    return bytes(plain)


def _snappy(data: bytes, limit: int) -> bytes:
    """One block followed by the checksum of its content."""
    size, _ = _unsigned(data)
    if size > limit:
        raise ValueError(f"a block that claims {size} bytes")
    plain: bytes = pa.decompress(data[:-_CHECKSUM_SIZE], size, codec="snappy", asbytes=True)
    if crc32(plain).to_bytes(_CHECKSUM_SIZE, "big") != data[-_CHECKSUM_SIZE:]:
        raise ValueError("content that does not match the checksum after it")
    return plain


def _unsigned(data: bytes) -> tuple[int, int]:
    value, at = varint(data, 0)
    return (value << 1) ^ (value >> 63), at


_CODECS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "deflate": _deflate,
    "snappy": _snappy,
    "zstandard": _zstandard,
    "bzip2": _bzip2,
}


def check_codec(codec: str, place: Place) -> None:
    """Raise if a file's codec is not supported."""
    if codec not in (NULL_CODEC, *_CODECS):
        raise FormatError(place, f"a codec among {', '.join((NULL_CODEC, *_CODECS))}", repr(codec))


def decompress(codec: str, data: bytes, file: Place, at: int) -> bytes:
    """Return the content of the block *at* a byte of a file."""
    limit = min(_ALWAYS_ALLOWED + _LARGEST_RATIO * len(data), LARGEST)
    try:
        plain = _CODECS[codec](data, limit)
    except _ERRORS as error:
        reason = str(error) or type(error).__name__
        raise FormatError(file.at(at), f"a block compressed with {codec}", reason) from error
    if len(plain) > limit:
        raise FormatError(file.at(at), f"a block of at most {limit} bytes", "more")
    return plain
