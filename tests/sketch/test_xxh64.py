"""XXH64 against values that the `xxhash` package computed."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from numba import njit

from rookery.sketch.murmur import load_u32, load_u64
from rookery.sketch.xxh64 import hash_bytes, hash_word

DATA = np.array([(i * 37 + 11) % 256 for i in range(300)], np.uint8)
KNOWN = {
    0: 0xEF46DB3751D8E999,
    1: 0xF592C0C7639C4CB6,
    3: 0x22C08528601D4F27,
    4: 0xFB1E5CF2F1AE4D95,
    5: 0x9D213ECA1F68F273,
    7: 0x5613AC510496C04E,
    8: 0x57CB2B7521F3E21A,
    11: 0x1BEF4539443A2D5A,
    12: 0x2F53B00266039E64,
    31: 0xE4A0E629E519A4AE,
    32: 0xCC6B8AAADA790B2D,
    33: 0x35EC49850475A832,
    63: 0xBF9F0BA3CF95B28A,
    64: 0x155CCCE4BF32BEFC,
    100: 0x4826E367566EA023,
    200: 0x2F074B6DD9094E34,
}
# The SHA-256 of the hashes of the first 0 to 200 bytes, eight bytes each, lowest first.
OF_ALL_LENGTHS = "659c81a53e86ae52b61fac135d20e4bded81a65049088944d8703d08b801c6c0"


@njit
def of_bytes(data: Any, start: Any, length: Any) -> Any:
    return hash_bytes(data, start, length)


@njit
def of_words(data: Any) -> Any:
    return hash_word(np.uint64(load_u32(data, 0)), 4), hash_word(load_u64(data, 0), 8)


@pytest.mark.parametrize("length", KNOWN)
def test_known_values(length: int) -> None:
    assert int(of_bytes(DATA, 0, length)) == KNOWN[length]


def test_every_length() -> None:
    hashes = b"".join(int(of_bytes(DATA, 0, n)).to_bytes(8, "little") for n in range(201))
    assert hashlib.sha256(hashes).hexdigest() == OF_ALL_LENGTHS


def test_where_the_bytes_lie_does_not_matter() -> None:
    for start in range(1, 9):
        shifted = np.concatenate([np.full(start, 255, np.uint8), DATA])
        for length in (0, 3, 8, 31, 32, 77):
            assert of_bytes(shifted, start, length) == of_bytes(DATA, 0, length)


def test_words_are_short_byte_arrays() -> None:
    assert of_words(DATA) == (KNOWN[4], KNOWN[8])
