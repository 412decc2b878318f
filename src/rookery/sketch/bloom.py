"""Parquet's split-block Bloom filter: blocks of eight 32-bit words, of which a key sets one bit each.

The upper half of a key's hash chooses the block, the lower half the bits. The hashed bytes are the value in
Parquet's PLAIN encoding, in the form that Iceberg's writer gives its type; so a filter is, bit for bit, the
one that a Parquet file of that many blocks would have.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, log1p, sqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rookery.model import IN_MEMORY, FormatError, Place

WORDS = 8
BLOCK_SIZE = 4 * WORDS
SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31],
    np.uint32,
)
MAX_BLOCKS = 7 << 23
_LADDER = (1, 2, 3, *(m << j for j in range(24) for m in (4, 5, 6, 7)))
_HOPELESS = 4096.0  # keys a block, from which on every bit is set as far as a float can tell


class BloomError(FormatError):
    """The bytes are not a Bloom filter, or not a matrix of them."""


# -- sizes


def expected_fpp(keys: float, blocks: int) -> float:
    """Return how often a filter matches a key that was never added.

    The keys of a block are Poisson-distributed; the fuller blocks make up most of the rate, which is why the
    textbook formula for plain Bloom filters promises too much.

    >>> round(expected_fpp(1000, 64), 5), expected_fpp(0, 1)
    (0.00117, 0.0)
    """
    mean = keys / blocks
    if mean <= 0:
        return 0.0
    if mean > _HOPELESS:
        return 1.0
    counts = np.arange(1, ceil(mean + 12 * sqrt(mean)) + 40)
    weights = np.exp(counts * log(mean) - mean - np.cumsum(np.log(counts)))
    return float(weights @ (1 - (31 / 32) ** counts) ** WORDS)


@lru_cache(maxsize=4096)
def blocks_for(keys: int, fpp: float) -> int:
    """Return the least number of blocks, of 1, 2, 3 and 4 to 7 times a power of two, that achieves *fpp*.

    >>> blocks_for(0, 0.01), blocks_for(100, 0.01), blocks_for(500_000, 0.001)
    (1, 5, 40960)
    """
    if not 0 < fpp < 1:
        raise ValueError(f"a false-positive rate is between 0 and 1, not {fpp}")
    step = bisect_left(_LADDER, True, key=lambda blocks: expected_fpp(keys, blocks) <= fpp)
    if step == len(_LADDER):
        raise ValueError(f"no filter of {MAX_BLOCKS} blocks keeps {keys} keys to {fpp}")
    return _LADDER[step]


def block_of(value: int, blocks: int) -> int:
    """Return the block of a hash.

    >>> block_of(0, 7), block_of(2**63, 7), block_of(2**64 - 1, 7)
    (0, 3, 6)
    """
    return ((value >> 32) * blocks) >> 32


def masks_of(value: int) -> NDArray[np.uint32]:
    """Return the bit in each of the eight words that a hash sets."""
    shifts = (np.uint32(value & 0xFFFFFFFF) * SALT) >> np.uint32(27)
    return np.asarray(np.left_shift(np.uint32(1), shifts, dtype=np.uint32))


# -- filters


@dataclass(frozen=True, eq=False, slots=True)
class BloomFilter:
    """The words of a filter, eight per block."""

    words: NDArray[np.uint32]

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self.words)

    def union(self, other: BloomFilter) -> Self:
        """Return the filter of the keys of both, which must have as many blocks."""
        if other.blocks != self.blocks:
            raise ValueError(f"a filter of {self.blocks} blocks does not join one of {other.blocks}")
        return type(self)(self.words | other.words)

    def estimate_keys(self) -> float:
        """Return about how many distinct keys were added, by the bits that are still zero."""
        bits = 32 * self.words.size
        zeros = max(bits - int(np.bitwise_count(self.words).sum(dtype=np.int64)), 0.5)
        return log(zeros / bits) / log1p(-1 / (32 * self.blocks))

    def folded(self) -> Self | None:
        """Return the filter of the same keys in half as many blocks, or None where their number is odd.

        A block's number grows with the hash, so adjacent blocks become one: no key is needed again.
        """
        if self.blocks % 2:
            return None
        return type(self)(self.words[0::2] | self.words[1::2])

    def fitted(self, fpp: float) -> Self:
        """Return it folded as often as its expected rate stays within *fpp*."""
        keys = self.estimate_keys()
        fits = self
        while expected_fpp(keys, max(fits.blocks // 2, 1)) <= fpp:
            half = fits.folded()
            if half is None:
                break
            fits = half
        return fits

    def contains(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return for each hash whether its key may have been added."""
        blocks = ((hashes >> np.uint64(32)) * np.uint64(self.blocks)) >> np.uint64(32)
        shifts = (hashes.astype(np.uint32)[:, None] * SALT) >> np.uint32(27)
        wanted = np.left_shift(np.uint32(1), shifts, dtype=np.uint32)
        return np.asarray(((self.words[blocks.astype(np.int64)] & wanted) == wanted).all(axis=1))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BloomFilter) and np.array_equal(self.words, other.words)

    __hash__ = None  # type: ignore[assignment]

    def buffer(self) -> memoryview:
        """Return the bitset as Parquet stores it, not copied where that can be avoided."""
        return np.ascontiguousarray(self.words, "<u4").reshape(-1).view(np.uint8).data

    def to_bytes(self) -> bytes:
        """Return the bitset as Parquet stores it."""
        return bytes(self.buffer())

    @classmethod
    def from_bytes(cls, bitset: bytes | memoryview, *, place: Place = IN_MEMORY) -> Self:
        """Read a bitset."""
        if not bitset or len(bitset) % BLOCK_SIZE:
            raise BloomError(place, f"blocks of {BLOCK_SIZE} bytes", f"{len(bitset)} bytes")
        return cls(np.frombuffer(bitset, "<u4").reshape(-1, WORDS).astype(np.uint32, copy=False))


def decimal_width(precision: int) -> int:
    """Return how many bytes Iceberg's Parquet writer gives a decimal: an INT32, an INT64, or the fewest.

    >>> [decimal_width(precision) for precision in (1, 9, 10, 18, 19, 38)]
    [4, 4, 8, 8, 9, 16]
    """
    if precision <= 18:
        return 4 if precision <= 9 else 8
    return int(10**precision).bit_length() // 8 + 1
