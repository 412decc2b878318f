"""Building theta sketches from arrays: a hash table of the smallest hashes, updated inside the kernel.

The table has four slots for each of the k hashes that are wanted. At 2k, θ falls so far that k
remain. Once θ has fallen, almost every value is dropped after a single comparison; so values are hashed a
block at a time, in loops without branches, and only hashes below θ are put into the table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rookery.sketch.lengths import Lengths
from rookery.sketch.murmur import (
    check_range,
    hash_bytes,
    hash_word,
    leading_zeros,
    load_u32,
    load_u64,
    swap_bytes,
)
from rookery.sketch.theta import MAX_THETA, K, ThetaSketch

_SLOTS = 4 * K
_FULL = 2 * K
_BLOCK = 512
_PREFIX = 4  # bytes of the length before a byte array
_COUNT, _THETA, _GREATEST = 0, 1, 2


@njit(cache=True)
def _shrink(table: np.ndarray, meta: np.ndarray) -> None:
    """Let θ fall to the hash after the k smallest, and keep those."""
    kept = np.empty(_FULL, np.uint64)
    n = 0
    for slot in range(_SLOTS):
        if table[slot] != 0:
            kept[n] = table[slot]
            n += 1
            table[slot] = 0
    theta = np.partition(kept[:n], K)[K]
    meta[_THETA] = theta
    meta[_COUNT] = 0
    for i in range(n):
        if kept[i] < theta:
            _insert(table, meta, kept[i])


@njit(inline="always")
def _insert(table: np.ndarray, meta: np.ndarray, value: np.uint64) -> None:
    slot = value & np.uint64(_SLOTS - 1)
    while table[slot] != 0:
        if table[slot] == value:
            return
        slot = (slot + np.uint64(1)) & np.uint64(_SLOTS - 1)
    table[slot] = value
    meta[_COUNT] += np.uint64(1)


@njit(inline="always")
def _offer(table: Any, meta: Any, theta: Any, block: Any, count: Any) -> Any:
    """Add the hashes of a block that are below *theta*; return θ, which loops keep in a register."""
    kept: Any = 0
    for i in range(count):
        value = block[i]
        block[kept] = value
        kept += np.int64(value < theta)
    for i in range(kept):
        value = block[i]
        if value < theta and value != np.uint64(0):
            _insert(table, meta, value)
            if meta[_COUNT] >= np.uint64(_FULL):
                _shrink(table, meta)
                theta = meta[_THETA]
    return theta


@njit(inline="always")
def _note_length(meta: Any, length: Any) -> None:
    if np.uint64(length) > meta[_GREATEST]:
        meta[_GREATEST] = np.uint64(length)


@njit(cache=True, nogil=True)
def _offer_words(data: np.ndarray, start: int, count: int, table: np.ndarray, meta: np.ndarray) -> None:
    theta = meta[_THETA]
    block = np.empty(_BLOCK, np.uint64)
    for first in range(0, count, _BLOCK):
        n = min(_BLOCK, count - first)
        for i in range(n):
            block[i] = hash_word(load_u64(data, start + 8 * (first + i)), 8)
        theta = _offer(table, meta, theta, block, n)


@njit(cache=True, nogil=True)
def _offer_halves(data: np.ndarray, start: int, count: int, table: np.ndarray, meta: np.ndarray) -> None:
    theta = meta[_THETA]
    block = np.empty(_BLOCK, np.uint64)
    for first in range(0, count, _BLOCK):
        n = min(_BLOCK, count - first)
        for i in range(n):
            block[i] = hash_word(np.uint64(load_u32(data, start + 4 * (first + i))), 4)
        theta = _offer(table, meta, theta, block, n)


@njit(cache=True, nogil=True)
def _offer_widened(data: np.ndarray, start: int, count: int, table: np.ndarray, meta: np.ndarray) -> None:
    """Four-byte integers, each as the eight bytes of the long that it was promoted to."""
    theta = meta[_THETA]
    block = np.empty(_BLOCK, np.uint64)
    for first in range(0, count, _BLOCK):
        n = min(_BLOCK, count - first)
        for i in range(n):
            wide = np.int64(np.int32(load_u32(data, start + 4 * (first + i))))
            block[i] = hash_word(np.uint64(wide), 8)
        theta = _offer(table, meta, theta, block, n)


@njit(cache=True, nogil=True)
def _offer_fixed(
    data: np.ndarray, start: int, count: int, width: int, table: np.ndarray, meta: np.ndarray
) -> None:
    theta = meta[_THETA]
    block = np.empty(_BLOCK, np.uint64)
    for first in range(0, count, _BLOCK):
        n = min(_BLOCK, count - first)
        for i in range(n):
            block[i] = hash_bytes(data, start + width * (first + i), width)
        theta = _offer(table, meta, theta, block, n)


@njit(cache=True, nogil=True)
def _offer_prefixed(data: Any, start: Any, end: Any, table: Any, meta: Any) -> Any:
    """Byte arrays, each after its length in four bytes, up to *end*; returns their number, or -1 if cut."""
    theta = meta[_THETA]
    block = np.empty(_BLOCK, np.uint64)
    at = start
    count = 0
    greatest: Any = np.int64(0)
    while at < end:
        n = 0
        while at < end and n < _BLOCK:
            if end - at < 4:
                return -1
            length: Any = np.int64(load_u32(data, at))
            at += 4
            if length > end - at:
                return -1
            if length > 0:  # DataSketches ignores empty values
                block[n] = hash_bytes(data, at, length)
                n += 1
            at += length
            count += 1
            greatest = max(greatest, length)
        theta = _offer(table, meta, theta, block, n)
    _note_length(meta, greatest)
    return count


@njit(cache=True, nogil=True)
def _offer_offsets(data: np.ndarray, offsets: np.ndarray, table: np.ndarray, meta: np.ndarray) -> None:
    """Byte arrays between consecutive offsets, as Arrow has them."""
    theta = meta[_THETA]
    block = np.empty(_BLOCK, np.uint64)
    greatest: Any = np.int64(0)
    for first in range(0, len(offsets) - 1, _BLOCK):
        n = 0
        for i in range(first, min(first + _BLOCK, len(offsets) - 1)):
            length = offsets[i + 1] - offsets[i]
            if length > 0:
                block[n] = hash_bytes(data, offsets[i], length)
                n += 1
            greatest = max(greatest, np.int64(length))
        theta = _offer(table, meta, theta, block, n)
    _note_length(meta, greatest)


@njit(inline="always")
def _minimal(data: np.ndarray, start: int, width: int) -> int:
    """How many leading bytes of a big-endian two's complement number only repeat its sign."""
    skip = 0
    while skip < width - 1:
        first = data[start + skip]
        sign = data[start + skip + 1] & 0x80
        if (first == 0 and sign == 0) or (first == 0xFF and sign != 0):
            skip += 1
        else:
            break
    return skip


@njit(cache=True, nogil=True)
def _offer_decimals(
    data: np.ndarray, start: int, count: int, width: int, little: bool, table: np.ndarray, meta: np.ndarray
) -> None:
    """Unscaled decimals of *width* bytes in either byte order, each as its shortest big-endian form."""
    scratch = np.empty(width, np.uint8)
    theta = meta[_THETA]
    block = np.empty(_BLOCK, np.uint64)
    for first in range(0, count, _BLOCK):
        n = min(_BLOCK, count - first)
        for i in range(n):
            at = start + width * (first + i)
            for j in range(width):
                scratch[j] = data[at + width - 1 - j] if little else data[at + j]
            skip = _minimal(scratch, 0, width)
            block[i] = hash_bytes(scratch, skip, width - skip)
        theta = _offer(table, meta, theta, block, n)


@njit(cache=True, nogil=True)
def _offer_small_decimals(
    data: np.ndarray, start: int, count: int, width: int, table: np.ndarray, meta: np.ndarray
) -> None:
    """Little-endian unscaled decimals of four or eight bytes: the shortest big-endian form fits a word."""
    theta = meta[_THETA]
    block = np.empty(_BLOCK, np.uint64)
    for first in range(0, count, _BLOCK):
        n = min(_BLOCK, count - first)
        for i in range(n):
            if width == 8:
                value = np.int64(load_u64(data, start + 8 * (first + i)))
            else:
                value = np.int64(np.int32(load_u32(data, start + 4 * (first + i))))
            magnitude = np.uint64(value ^ (value >> np.int64(63)))
            length: Any = (np.int64(64) - np.int64(leading_zeros(magnitude))) // np.int64(8) + np.int64(1)
            word = swap_bytes(np.uint64(value)) >> np.uint64(64 - 8 * length)
            block[i] = hash_word(word, length)
        theta = _offer(table, meta, theta, block, n)


class ThetaBuilder:
    """A theta sketch under construction. *theta* may start low if only smaller hashes are needed."""

    def __init__(self, theta: int = MAX_THETA) -> None:
        self._table = np.zeros(_SLOTS, np.uint64)
        self._meta = np.array([0, theta, 0], np.uint64)
        self._seen = Lengths()

    @property
    def theta(self) -> int:
        """The current θ."""
        return int(self._meta[_THETA])

    def add_fixed(self, data: NDArray[np.uint8], start: int, count: int, width: int) -> None:
        """Add *count* values of *width* bytes that are consecutive from *start*."""
        check_range(data, start, count * width)
        if width == 8:
            _offer_words(data, start, count, self._table, self._meta)
        elif width == 4:
            _offer_halves(data, start, count, self._table, self._meta)
        else:
            _offer_fixed(data, start, count, width, self._table, self._meta)

    def add_widened(self, data: NDArray[np.uint8], start: int, count: int) -> None:
        """Add four-byte integers as longs."""
        check_range(data, start, 4 * count)
        _offer_widened(data, start, count, self._table, self._meta)

    def add_prefixed(self, data: NDArray[np.uint8], start: int, end: int) -> int:
        """Add the byte arrays from *start* to *end*, each after its length; return how many there were."""
        check_range(data, start, end - start)
        count = int(_offer_prefixed(data, start, end, self._table, self._meta))
        if count < 0:
            raise ValueError("a byte array is longer than its page")
        self._seen += Lengths(count, end - start - _PREFIX * count)
        return count

    def add_offsets(self, data: NDArray[np.uint8], offsets: NDArray[np.int32] | NDArray[np.int64]) -> None:
        """Add the byte arrays between consecutive *offsets*."""
        if len(offsets) > 1:
            check_range(data, int(offsets[0]), int(offsets[-1] - offsets[0]))
            _offer_offsets(data, offsets, self._table, self._meta)
            self._seen += Lengths(len(offsets) - 1, int(offsets[-1] - offsets[0]))

    def add_decimals(
        self, data: NDArray[np.uint8], start: int, count: int, width: int, *, little: bool
    ) -> None:
        """Add unscaled decimals of *width* bytes, little- or big-endian."""
        check_range(data, start, count * width)
        if little and width in (4, 8):
            _offer_small_decimals(data, start, count, width, self._table, self._meta)
        else:
            _offer_decimals(data, start, count, width, little, self._table, self._meta)

    def take_lengths(self) -> Lengths:
        """Return the lengths of the byte arrays that were added since the last call."""
        seen = self._seen + Lengths(greatest=int(self._meta[_GREATEST]))
        self._seen, self._meta[_GREATEST] = Lengths(), 0
        return seen

    def result(self) -> ThetaSketch:
        """Return the current sketch."""
        return ThetaSketch(np.sort(self._table[self._table != 0]), self.theta)


def are_compiled() -> bool:
    """Whether an earlier process has compiled kernels of this module into numba's cache."""
    folder = getattr(getattr(_shrink, "_cache", None), "cache_path", None)
    return folder is not None and any(Path(folder).glob("kmv.*.nbi"))
