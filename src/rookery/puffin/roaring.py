"""The size of a serialized 32-bit roaring bitmap, from its headers alone.

pyroaring reads bitmaps and checks their insides, but does not tell where one ends; a vector of several
must know, and so must a check for bytes left over.
"""

from __future__ import annotations

import struct

import numpy as np

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
    cardinalities = np.frombuffer(data, np.uint16, 2 * count, header)[1::2].astype(np.int64) + 1
    sizes = np.where(cardinalities > _ARRAY_MAX, _BITSET_SIZE, 2 * cardinalities)
    if run_flags is not None:
        is_run = np.unpackbits(np.frombuffer(run_flags, np.uint8), count=count, bitorder="little").astype(
            bool
        )
        return _with_runs(data, start, sizes, is_run)
    end = start + int(sizes.sum())
    return end if end <= len(data) else None


def _with_runs(data: memoryview, start: int, sizes: np.ndarray, is_run: np.ndarray) -> int | None:
    """Walk the containers: a run container tells its size only at its start."""
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
