"""Compact theta sketches, byte for byte as Apache DataSketches writes them.

A theta sketch keeps the hashes of its values that are below θ, a share of the hash space. While θ is
whole, the count of hashes is exact; below that, count / θ estimates the number of distinct values.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntFlag
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rookery.model import IN_MEMORY, Certainty, Estimate, FormatError, Place
from rookery.sketch.bounds import sampled_bounds

MAX_THETA = 2**63 - 1
LG_K = 12  # as Iceberg and Trino have it
K = 1 << LG_K
DEFAULT_SEED_HASH = 0x93CC  # of the seed 9001, which Iceberg prescribes

_FAMILY_COMPACT = 3
_VERSION_PLAIN = 3
_VERSION_PACKED = 4

# Preamble: longs in the preamble, serial version, family, two bytes by version, flags, seed hash.
_PREAMBLE = struct.Struct("<BBBBBBH")
_COUNT = struct.Struct("<I")
_THETA = struct.Struct("<Q")
COUNT_OFFSET = 8
THETA_OFFSET = 16
PACKED_THETA_OFFSET = 8
_LONG = 8


class ThetaFlag(IntFlag):
    """The preamble's flags."""

    BIG_ENDIAN = 1
    READ_ONLY = 2
    EMPTY = 4
    COMPACT = 8
    ORDERED = 16
    SINGLE_ITEM = 32


class ThetaError(FormatError):
    """The payload is not a compact theta sketch."""


@dataclass(frozen=True, eq=False, slots=True)
class ThetaSketch:
    """The retained hashes (distinct, ascending, each below θ) and θ as a 63-bit number."""

    hashes: NDArray[np.uint64]
    theta: int = MAX_THETA
    seed_hash: int = DEFAULT_SEED_HASH

    @property
    def is_empty(self) -> bool:
        """Whether it has seen no value at all."""
        return self.theta == MAX_THETA and not len(self.hashes)

    @property
    def share(self) -> float:
        """θ as a share of the hash space, from 0 to 1."""
        return self.theta / MAX_THETA

    def estimate(self, deviations: int = 2) -> Estimate:
        """Return the number of distinct values, with bounds at that many standard deviations."""
        count = len(self.hashes)
        if self.theta == MAX_THETA:
            return Estimate.exact(count)
        low, high = sampled_bounds(count, self.share, deviations)
        return Estimate(count / self.share, low, high, Certainty.SKETCHED)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ThetaSketch)
            and self.theta == other.theta
            and self.seed_hash == other.seed_hash
            and np.array_equal(self.hashes, other.hashes)
        )

    __hash__ = None  # type: ignore[assignment]

    def encode(self) -> bytes:
        """Return the compact, ordered form of serial version 3, which every reader knows."""
        count = len(self.hashes)
        flags = ThetaFlag.READ_ONLY | ThetaFlag.COMPACT | ThetaFlag.ORDERED
        if self.theta != MAX_THETA:
            longs, rest = 3, _COUNT.pack(count) + bytes(4) + _THETA.pack(self.theta)
        elif count == 0:
            longs, rest, flags = 1, b"", flags | ThetaFlag.EMPTY
        elif count == 1:
            longs, rest, flags = 1, b"", flags | ThetaFlag.SINGLE_ITEM
        else:
            longs, rest = 2, _COUNT.pack(count) + bytes(4)
        preamble = _PREAMBLE.pack(longs, _VERSION_PLAIN, _FAMILY_COMPACT, 0, 0, int(flags), self.seed_hash)
        return preamble + rest + self.hashes.astype("<u8", copy=False).tobytes()

    @classmethod
    def decode(cls, payload: bytes, *, place: Place = IN_MEMORY) -> Self:
        """Read any compact form: empty, single item, exact, estimating, plain or packed."""
        if len(payload) < _PREAMBLE.size:
            raise ThetaError(place, f"a theta sketch of at least {_PREAMBLE.size} bytes", str(len(payload)))
        longs, version, family, first, second, flags, seed_hash = _PREAMBLE.unpack_from(payload)
        if family != _FAMILY_COMPACT:
            raise ThetaError(place.at(2), f"family {_FAMILY_COMPACT}, a compact theta sketch", str(family))
        if flags & ThetaFlag.BIG_ENDIAN:
            raise ThetaError(place.at(5), "little-endian bytes", "the big-endian flag")
        if version == _VERSION_PACKED:
            theta, hashes = _decode_packed(payload, longs, first, second, place)
        elif version == _VERSION_PLAIN:
            theta, hashes = _decode_plain(payload, longs, flags, place)
        else:
            raise ThetaError(
                place.at(1), f"serial version {_VERSION_PLAIN} or {_VERSION_PACKED}", str(version)
            )
        _check_hashes(hashes, theta, place)
        if flags & ThetaFlag.EMPTY:  # the only form without a required seed hash
            seed_hash = DEFAULT_SEED_HASH
        elif seed_hash != DEFAULT_SEED_HASH:
            raise ThetaError(
                place.at(6), f"the default seed's hash {DEFAULT_SEED_HASH:#06x}", f"{seed_hash:#06x}"
            )
        return cls(hashes, theta, seed_hash)


def _decode_plain(payload: bytes, longs: int, flags: int, place: Place) -> tuple[int, NDArray[np.uint64]]:
    if not 1 <= longs <= 3:
        raise ThetaError(place, "a preamble of 1 to 3 longs", str(longs))
    if flags & ThetaFlag.EMPTY:
        if longs != 1:
            raise ThetaError(place, "a preamble of 1 long on an empty sketch", str(longs))
        count = 0
    elif longs == 1:
        count = 1
    else:
        _need(payload, longs * _LONG, place)
        (count,) = _COUNT.unpack_from(payload, COUNT_OFFSET)
    _need(payload, longs * _LONG, place)
    theta = _THETA.unpack_from(payload, THETA_OFFSET)[0] if longs == 3 else MAX_THETA
    _check_theta(theta, place.at(THETA_OFFSET))
    expected = (longs + count) * _LONG
    if len(payload) != expected:
        raise ThetaError(place, f"{expected} bytes for {count} hashes", str(len(payload)))
    hashes = np.frombuffer(payload, "<u8", count, longs * _LONG)
    return theta, hashes if flags & ThetaFlag.ORDERED or count < 2 else np.sort(hashes)


def _decode_packed(
    payload: bytes, longs: int, bits: int, count_bytes: int, place: Place
) -> tuple[int, NDArray[np.uint64]]:
    """Serial version 4: the differences of the ordered hashes, each in the same number of bits."""
    if longs not in (1, 2):
        raise ThetaError(place, "a packed preamble of 1 or 2 longs", str(longs))
    if not 1 <= bits <= 63:
        raise ThetaError(place.at(3), "1 to 63 bits a hash", str(bits))
    if not 1 <= count_bytes <= 4:
        raise ThetaError(place.at(4), "a count of 1 to 4 bytes", str(count_bytes))
    start = longs * _LONG + count_bytes
    _need(payload, start, place)
    theta = _THETA.unpack_from(payload, PACKED_THETA_OFFSET)[0] if longs == 2 else MAX_THETA
    _check_theta(theta, place.at(PACKED_THETA_OFFSET))
    count = int.from_bytes(payload[longs * _LONG : start], "little")
    expected = start + (count * bits + 7) // 8
    if count == 0 or len(payload) != expected:
        raise ThetaError(place, f"{expected} bytes for {count} packed hashes", str(len(payload)))
    packed = np.frombuffer(payload, np.uint8, offset=start)
    matrix = np.unpackbits(packed, count=count * bits).reshape(count, bits)
    weights = np.uint64(1) << np.arange(bits - 1, -1, -1, dtype=np.uint64)
    return theta, np.cumsum(matrix.astype(np.uint64) @ weights, dtype=np.uint64)


def _need(payload: bytes, size: int, place: Place) -> None:
    if len(payload) < size:
        raise ThetaError(place, f"at least {size} bytes", str(len(payload)))


def _check_theta(theta: int, place: Place) -> None:
    if not 0 < theta <= MAX_THETA:
        raise ThetaError(place, f"θ from 1 to {MAX_THETA}", str(theta))


def _check_hashes(hashes: NDArray[np.uint64], theta: int, place: Place) -> None:
    """Hashes ascend strictly, and are above 0 and below θ; else counting them is meaningless."""
    if len(hashes) == 0:
        return
    if (hashes[1:] <= hashes[:-1]).any():
        raise ThetaError(place, "distinct hashes in ascending order", "others")
    if hashes[0] == 0 or hashes[-1] >= theta:
        raise ThetaError(place, f"hashes between 0 and θ {theta}", f"{hashes[0]} to {hashes[-1]}")
