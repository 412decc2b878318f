"""The codecs that the specification allows: none, zstd and lz4; each blob is one frame with its size.

A frame's claim of its own size is checked against a limit before a byte is decompressed, so that a
small file cannot allocate much memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import lz4.frame
import zstandard

from rookery.model import Place
from rookery.puffin.errors import PuffinError, PuffinLimitError, UnsupportedPuffinError

NONE = "none"
ZSTD = "zstd"
LZ4 = "lz4"

# Frames that do not state their size are decompressed in steps, small enough that no step can expand far.
_STEP_IN = 512
_STEP_OUT = 1 << 20

# Both libraries skip a skippable frame silently, and return nothing; so the magic is checked here.
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"

# An empty frame that states its size: flags, block size, 8 bytes of content size, checksum, end. The library
# takes a size of 0 for "not known" and leaves it out.
_LZ4_EMPTY = _LZ4_MAGIC + b"\x68\x40" + bytes(8) + b"\x05" + bytes(4)


class _TooLongError(Exception):
    """A frame without a stated size goes beyond the limit."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A way to compress. `content_size` is what a frame states, None if it does not, and
    `decompress` takes the frame, that size, and the limit that applies if it is None.
    """

    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int | None, int], bytes]
    content_size: Callable[[bytes], int | None]


_contexts = threading.local()  # zstandard's contexts are costly to make and not safe to share


def _zstd_compress(data: bytes) -> bytes:
    if not hasattr(_contexts, "compressor"):
        _contexts.compressor = zstandard.ZstdCompressor(level=3, write_content_size=True)
    compressed: bytes = _contexts.compressor.compress(data)
    return compressed


def _zstd_content_size(data: bytes) -> int | None:
    _check_magic(data, _ZSTD_MAGIC)
    size = zstandard.frame_content_size(data)
    return None if size < 0 else size


def _zstd_decompress(data: bytes, size: int | None, limit: int) -> bytes:
    if not size:  # the library accepts a stated size of 0, and checks nothing after it
        return _zstd_decompress_in_steps(data, limit)
    if not hasattr(_contexts, "decompressor"):
        _contexts.decompressor = zstandard.ZstdDecompressor()
    plain: bytes = _contexts.decompressor.decompress(data, allow_extra_data=False)
    return plain


def _zstd_decompress_in_steps(data: bytes, limit: int) -> bytes:
    frame = zstandard.ZstdDecompressor().decompressobj(read_across_frames=False)
    plain = bytearray()
    for at in range(0, len(data), _STEP_IN):
        plain += frame.decompress(data[at : at + _STEP_IN])
        _check_limit(len(plain), limit)
        if frame.eof:
            _check_unused(len(frame.unused_data) + max(0, len(data) - at - _STEP_IN))
            return bytes(plain)
    raise ValueError("a frame without its end")


def _lz4_compress(data: bytes) -> bytes:
    if not data:
        return _LZ4_EMPTY
    compressed: bytes = lz4.frame.compress(data, store_size=True)
    return compressed


def _lz4_content_size(data: bytes) -> int | None:
    _check_magic(data, _LZ4_MAGIC)
    # The library reports 0 both for "empty" and for "not stated"; the frame's own flag distinguishes them.
    size = int(lz4.frame.get_frame_info(data)["content_size"])
    stated = len(data) > 4 and bool(data[4] & 0x08)
    return size if stated else None


def _lz4_decompress(data: bytes, size: int | None, limit: int) -> bytes:
    frame = lz4.frame.LZ4FrameDecompressor()
    if size is None:
        plain = _lz4_decompress_in_steps(frame, data, limit)
    else:  # one byte more than the frame claims, so that "too much" is distinguished from "just enough"
        plain = frame.decompress(data, max_length=size + 1)
    if not frame.eof:
        raise ValueError("a frame without its end")
    _check_unused(len(frame.unused_data or b""))
    return plain


def _lz4_decompress_in_steps(frame: lz4.frame.LZ4FrameDecompressor, data: bytes, limit: int) -> bytes:
    plain = bytearray(frame.decompress(data, max_length=_STEP_OUT))
    _check_limit(len(plain), limit)
    while not frame.eof and not frame.needs_input:
        plain += frame.decompress(b"", max_length=_STEP_OUT)
        _check_limit(len(plain), limit)
    return bytes(plain)


def _check_magic(data: bytes, magic: bytes) -> None:
    if data[: len(magic)] != magic:
        raise ValueError(f"no frame's magic but {data[: len(magic)]!r}")


def _check_limit(size: int, limit: int) -> None:
    if size > limit:
        raise _TooLongError


def _check_unused(size: int) -> None:
    if size:
        raise ValueError(f"{size} bytes after the frame")


CODECS: Mapping[str, Codec] = {
    ZSTD: Codec(_zstd_compress, _zstd_decompress, _zstd_content_size),
    LZ4: Codec(_lz4_compress, _lz4_decompress, _lz4_content_size),
}

_FRAME_ERRORS = (zstandard.ZstdError, RuntimeError, ValueError, MemoryError, EOFError)


def find(name: str, place: Place) -> Codec:
    """Return the codec of that name, or fail at *place*."""
    try:
        return CODECS[name]
    except KeyError:
        raise UnsupportedPuffinError(
            place,
            f"a codec among {', '.join(CODECS)}",
            repr(name),
            hint="the file was written by something newer, or is corrupt",
        ) from None


def compress(name: str | None, data: bytes, place: Place) -> bytes:
    """Compress with the codec *name*; None or `none` leaves the data as it is."""
    return data if name is None or name == NONE else find(name, place).compress(data)


def decompress(name: str | None, data: bytes, place: Place, limit: int) -> bytes:
    """Decompress one frame that may contain at most *limit* bytes."""
    if name is None:
        return data
    codec = find(name, place)
    try:
        size = codec.content_size(data)
        if size is not None and size > limit:
            raise _beyond(limit, f"a frame that claims {size}", place)
        plain = codec.decompress(data, size, limit)
    except _TooLongError:
        raise _beyond(limit, "a frame with more, of unstated size", place) from None
    except _FRAME_ERRORS as error:
        if isinstance(error, PuffinError):
            raise
        raise PuffinError(place, f"one whole {name} frame", str(error) or type(error).__name__) from error
    if size is not None and len(plain) != size:
        raise PuffinError(place, f"{size} bytes in the {name} frame, as it claims", str(len(plain)))
    return plain


def _beyond(limit: int, found: str, place: Place) -> PuffinLimitError:
    return PuffinLimitError(place, f"at most {limit} bytes of content", found, hint="raise the limit")
