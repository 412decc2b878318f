"""MurmurHash3 x64 128 in plain Python, after Appleby's public text: the judge of the kernels."""

from __future__ import annotations

from collections.abc import Iterable

SEED = 9001
_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def _rotl(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (64 - bits))) & _MASK


def _fmix(x: int) -> int:
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & _MASK
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & _MASK
    return x ^ (x >> 33)


def murmur3_x64_128(data: bytes, seed: int = SEED) -> tuple[int, int]:
    h1 = h2 = seed
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        k1 = int.from_bytes(data[at : at + 8], "little")
        k2 = int.from_bytes(data[at + 8 : at + 16], "little")
        h1 ^= _rotl(k1 * _C1 & _MASK, 31) * _C2 & _MASK
        h1 = ((_rotl(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= _rotl(k2 * _C2 & _MASK, 33) * _C1 & _MASK
        h2 = ((_rotl(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    k1 = int.from_bytes(data[whole : whole + 8], "little")
    k2 = int.from_bytes(data[whole + 8 :], "little")
    h2 ^= _rotl(k2 * _C2 & _MASK, 33) * _C1 & _MASK
    h1 ^= _rotl(k1 * _C1 & _MASK, 31) * _C2 & _MASK
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _fmix(h1), _fmix(h2)
    h1 = (h1 + h2) & _MASK
    return h1, (h2 + h1) & _MASK


def theta_hash(data: bytes) -> int:
    return murmur3_x64_128(data)[0] >> 1


def theta_hashes(values: Iterable[bytes]) -> list[int]:
    """The hashes that a sketch of *values* retains while θ is whole; an empty value counts for nothing."""
    return sorted({theta_hash(value) for value in values if value})
