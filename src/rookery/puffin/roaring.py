"""The size of a serialized 32-bit roaring bitmap, from its headers alone.

pyroaring reads bitmaps and checks their insides, but does not return where one ends; a vector of several
must know, and so must a check for bytes left over.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

_COOKIE_PLAIN = 12346  # no run containers; the count of containers follows
_COOKIE_RUNS = 12347  # in the lower 16 bits; the count, less one, in the upper
_OFFSETS_FROM = 4  # with run containers, fewer containers than this have no offset header

_U32 = struct.Struct("<I")
_U16 = struct.Struct("<H")
_ARRAY_MAX = 4096  # values in an array container; more make a bitset
_BITSET_SIZE = 8192


def bitmap32_size(data: memoryview) -> int | None:
    """Return the length of the bitmap at the start of *data*, or None if it does not fit there."""
    if len(data) < _U32.size:
        return None
    (cookie,) = _U32.unpack_from(data)
    if cookie == _COOKIE_PLAIN:
        if len(data) < 2 * _U32.size:
            return None
        (count,) = _U32.unpack_from(data, _U32.size)
        header, run_flags = 2 * _U32.size, None
    elif cookie & 0xFFFF == _COOKIE_RUNS:
        count = (cookie >> 16) + 1
        header, run_flags = _U32.size + (count + 7) // 8, data[_U32.size : _U32.size + (count + 7) // 8]
    else:
        return None
    has_offsets = run_flags is None or count >= _OFFSETS_FROM
    start = header + 4 * count + (4 * count if has_offsets else 0)
    if count > 1 << 16 or start > len(data):
        return None
    if run_flags is not None:
        return _size_with_runs(data, header, count, start, run_flags, has_offsets)
    end = start + int(_plain_sizes(data, header, count).sum())
    return end if end <= len(data) else None


def _plain_sizes(data: memoryview, header: int, count: int) -> NDArray[np.int64]:
    """The sizes of the containers by their cardinalities: of arrays and bitsets."""
    cardinalities = np.frombuffer(data, "<u2", 2 * count, header)[1::2].astype(np.int64) + 1
    return np.where(cardinalities > _ARRAY_MAX, _BITSET_SIZE, 2 * cardinalities)


def _size_with_runs(
    data: memoryview, header: int, count: int, start: int, run_flags: memoryview, has_offsets: bool
) -> int | None:
    flags = np.frombuffer(run_flags, np.uint8)
    is_run = np.unpackbits(flags, count=count, bitorder="little").view(np.bool_)
    sizes = _plain_sizes(data, header, count)
    if has_offsets:
        offsets = np.frombuffer(data, "<u4", count, header + 4 * count).astype(np.int64)
        end = _by_offsets(data, start, sizes, is_run, offsets)
        if end is not None:
            return end
    return _by_walk(data, start, sizes, is_run)


def _by_offsets(
    data: memoryview,
    start: int,
    sizes: NDArray[np.int64],
    is_run: NDArray[np.bool_],
    offsets: NDArray[np.int64],
) -> int | None:
    """Find the end by the offset header, if each offset is just where the container before it ends.

    Readers walk and do not trust the header; so where it differs from the walk, the walk decides.
    """
    octets = np.frombuffer(data, np.uint8)
    at = offsets[is_run]
    try:
        counts = octets[at] + 256 * octets[at + 1].astype(np.int64)
    except IndexError:
        return None
    ends = offsets + sizes
    ends[is_run] = at + _U16.size + 4 * counts
    if offsets[0] != start or (ends[:-1] != offsets[1:]).any() or ends[-1] > len(data):
        return None
    return int(ends[-1])


def _by_walk(data: memoryview, start: int, sizes: NDArray[np.int64], is_run: NDArray[np.bool_]) -> int | None:
    """Walk the containers: a run container states its size only at its start."""
    position = start
    for size, run in zip(sizes.tolist(), is_run.tolist(), strict=True):
        if run:
            if len(data) - position < _U16.size:
                return None
            size = _U16.size + 4 * _U16.unpack_from(data, position)[0]
        position += size
        if position > len(data):
            return None
    return position


def says_runs_truly(data: memoryview) -> bool:
    """Whether a bitmap whose cookie states run containers has one; others are always consistent."""
    (cookie,) = _U32.unpack_from(data)
    if cookie == _COOKIE_PLAIN:
        return True
    flags = data[_U32.size : _U32.size + ((cookie >> 16) + 8) // 8]
    return any(flags)
