"""Bloom filters under construction: values are hashed and set directly from pages or Arrow buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rookery.model.type_names import precision_of
from rookery.sketch.bloom import MAX_BLOCKS, SALT, WORDS, BloomFilter, decimal_width
from rookery.sketch.murmur import check_range, load_u32, load_u64
from rookery.sketch.xxh64 import hash_bytes, hash_word

_RUN = 512


@njit(inline="always")
def _insert(words: np.ndarray, value: np.uint64) -> None:
    block = ((value >> np.uint64(32)) * np.uint64(len(words))) >> np.uint64(32)
    key = np.uint32(value)
    for i in range(WORDS):
        words[block, i] |= np.uint32(1) << np.uint32(np.uint32(key * SALT[i]) >> np.uint32(27))


@njit(cache=True, nogil=True)
def _add_words(data: np.ndarray, start: int, count: int, words: np.ndarray) -> None:
    """Hashing a run of values before any is inserted lets the processor overlap the misses of its cache."""
    run = np.empty(_RUN, np.uint64)
    for first in range(0, count, _RUN):
        n = min(_RUN, count - first)
        for i in range(n):
            run[i] = hash_word(load_u64(data, start + 8 * (first + i)), 8)
        for i in range(n):
            _insert(words, run[i])


@njit(cache=True, nogil=True)
def _add_halves(data: np.ndarray, start: int, count: int, words: np.ndarray) -> None:
    run = np.empty(_RUN, np.uint64)
    for first in range(0, count, _RUN):
        n = min(_RUN, count - first)
        for i in range(n):
            run[i] = hash_word(np.uint64(load_u32(data, start + 4 * (first + i))), 4)
        for i in range(n):
            _insert(words, run[i])


@njit(cache=True, nogil=True)
def _add_widened(data: np.ndarray, start: int, count: int, words: np.ndarray) -> None:
    for i in range(count):
        wide = np.int64(np.int32(load_u32(data, start + 4 * i)))
        _insert(words, hash_word(np.uint64(wide), 8))


@njit(cache=True, nogil=True)
def _add_fixed(data: np.ndarray, start: int, count: int, width: int, words: np.ndarray) -> None:
    for i in range(count):
        _insert(words, hash_bytes(data, start + width * i, width))


@njit(cache=True, nogil=True)
def _add_prefixed(data: Any, start: Any, end: Any, words: Any) -> Any:
    """Byte arrays, each after its length in four bytes, up to *end*; returns their number, or -1 if cut."""
    run = np.empty(_RUN, np.uint64)
    at = start
    count = 0
    while at < end:
        n = 0
        while at < end and n < _RUN:
            if end - at < 4:
                return -1
            length: Any = np.int64(load_u32(data, at))
            at += 4
            if length > end - at:
                return -1
            run[n] = hash_bytes(data, at, length)
            at += length
            n += 1
        for i in range(n):
            _insert(words, run[i])
        count += n
    return count


@njit(cache=True, nogil=True)
def _add_offsets(data: np.ndarray, offsets: np.ndarray, words: np.ndarray) -> None:
    for i in range(len(offsets) - 1):
        _insert(words, hash_bytes(data, offsets[i], offsets[i + 1] - offsets[i]))


@njit(cache=True, nogil=True)
def _add_decimals(
    data: np.ndarray, start: int, count: int, width: int, little: bool, wanted: int, words: np.ndarray
) -> None:
    """Unscaled decimals of *width* bytes in either byte order, each as *wanted* bytes.

    Those of four and eight bytes are hashed little-endian, as Parquet stores INT32 and INT64, others
    big-endian, as in byte arrays.
    """
    turned = wanted in (4, 8)
    scratch = np.empty(wanted, np.uint8)
    for i in range(count):
        at = start + width * i
        top = data[at + width - 1] if little else data[at]
        sign = np.uint8(0xFF) if top & 0x80 else np.uint8(0)
        for j in range(wanted):  # from the lowest byte on
            byte = sign
            if j < width:
                byte = data[at + j] if little else data[at + width - 1 - j]
            scratch[j if turned else wanted - 1 - j] = byte
        _insert(words, hash_bytes(scratch, 0, wanted))


class BloomBuilder:
    """A Bloom filter under construction; it is a `ValueConsumer`."""

    def __init__(self, type_name: str, blocks: int) -> None:
        if not 0 < blocks <= MAX_BLOCKS:
            raise ValueError(f"a filter has 1 to {MAX_BLOCKS} blocks, not {blocks}")
        self._type = type_name
        self._words = np.zeros((blocks, WORDS), np.uint32)

    def add_fixed(self, data: NDArray[np.uint8], start: int, count: int, width: int) -> None:
        """Add *count* values of *width* bytes that are consecutive from *start*."""
        check_range(data, start, count * width)
        if width == 8:
            _add_words(data, start, count, self._words)
        elif width == 4:
            _add_halves(data, start, count, self._words)
        else:
            _add_fixed(data, start, count, width, self._words)

    def add_widened(self, data: NDArray[np.uint8], start: int, count: int) -> None:
        """Add four-byte integers as longs."""
        check_range(data, start, 4 * count)
        _add_widened(data, start, count, self._words)

    def add_prefixed(self, data: NDArray[np.uint8], start: int, end: int) -> int:
        """Add the byte arrays from *start* to *end*, each after its length; return how many there were."""
        check_range(data, start, end - start)
        count = int(_add_prefixed(data, start, end, self._words))
        if count < 0:
            raise ValueError("a byte array is longer than its page")
        return count

    def add_offsets(self, data: NDArray[np.uint8], offsets: NDArray[np.int32] | NDArray[np.int64]) -> None:
        """Add the byte arrays between consecutive *offsets*."""
        if len(offsets) > 1:
            check_range(data, int(offsets[0]), int(offsets[-1] - offsets[0]))
            _add_offsets(data, offsets, self._words)

    def add_decimals(
        self, data: NDArray[np.uint8], start: int, count: int, width: int, *, little: bool
    ) -> None:
        """Add unscaled decimals of *width* bytes, little- or big-endian, in the form of the column's type."""
        check_range(data, start, count * width)
        wanted = decimal_width(precision_of(self._type))
        if little and width == wanted in (4, 8):
            self.add_fixed(data, start, count, width)
        else:
            _add_decimals(data, start, count, width, little, wanted, self._words)

    def result(self) -> BloomFilter:
        """Return the filter; the builder is done with."""
        return BloomFilter(self._words)
