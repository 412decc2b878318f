"""XXH64 with seed 0, the hash of Parquet's Bloom filters.

The kernels read whole words, as those of `rookery.sketch.murmur` do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from rookery.sketch.murmur import load_u32, load_u64

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_START_1 = np.uint64((0x9E3779B185EBCA87 + 0xC2B2AE3D27D4EB4F) & (2**64 - 1))
_START_4 = np.uint64(2**64 - 0x9E3779B185EBCA87)
_ZERO = np.uint64(0)
_STRIPE = 32


@njit(inline="always")
def _rotl(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@njit(inline="always")
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotl(lane + word * _P2, 31) * _P1


@njit(inline="always")
def _join(h: np.uint64, lane: np.uint64) -> np.uint64:
    return (h ^ _round(_ZERO, lane)) * _P1 + _P4


@njit(inline="always")
def _take_u64(h: np.uint64, word: np.uint64) -> np.uint64:
    return _rotl(h ^ _round(_ZERO, word), 27) * _P1 + _P4


@njit(inline="always")
def _take_u32(h: np.uint64, word: np.uint64) -> np.uint64:
    return _rotl(h ^ (word * _P1), 23) * _P2 + _P3


@njit(inline="always")
def _finish(h: np.uint64) -> np.uint64:
    h ^= h >> np.uint64(33)
    h *= _P2
    h ^= h >> np.uint64(29)
    h *= _P3
    return h ^ (h >> np.uint64(32))


@njit(inline="always")
def hash_word(word: np.uint64, length: int) -> np.uint64:
    """Hash a value of four or eight bytes, which are in *word*, lowest first."""
    h = _P5 + np.uint64(length)
    return _finish(_take_u64(h, word) if length == 8 else _take_u32(h, word))


@njit(inline="always")
def _stripes(data: np.ndarray, start: int, count: int) -> np.uint64:
    """Hash *count* stripes of 32 bytes, in four lanes."""
    one, two, three, four = _START_1, _P2, _ZERO, _START_4
    for i in range(count):
        at = start + _STRIPE * i
        one = _round(one, load_u64(data, at))
        two = _round(two, load_u64(data, at + 8))
        three = _round(three, load_u64(data, at + 16))
        four = _round(four, load_u64(data, at + 24))
    h = _rotl(one, 1) + _rotl(two, 7) + _rotl(three, 12) + _rotl(four, 18)
    return _join(_join(_join(_join(h, one), two), three), four)


@njit(inline="always")
def hash_bytes(data: Any, start: Any, length: Any) -> Any:
    """Hash *length* bytes of the uint8 array *data* from *start*."""
    end = start + length
    at = start
    h = _P5
    if length >= _STRIPE:
        h = _stripes(data, start, length // _STRIPE)
        at += length // _STRIPE * _STRIPE
    h += np.uint64(length)
    while end - at >= 8:
        h = _take_u64(h, load_u64(data, at))
        at += 8
    if end - at >= 4:
        h = _take_u32(h, np.uint64(load_u32(data, at)))
        at += 4
    while at < end:
        h = _rotl(h ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    return _finish(h)
