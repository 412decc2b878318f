"""The inverted theta: for each retained hash, in which files of a group it occurs.

It is a theta sketch whose hashes carry a row of bits, one per file. The sketch of any set of files is the
hashes whose row intersects that set, so files are added and removed without reading data again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rookery.model import IN_MEMORY, FormatError, Place
from rookery.sketch.theta import MAX_THETA, K, ThetaSketch

MAX_FILES = 1024
_HEADER = struct.Struct("<BBHIQ")  # version, 0, files, hashes, θ
_VERSION = 1


class InvertedThetaError(FormatError):
    """The payload is not an inverted theta."""


def bit_width(files: int) -> int:
    """How many bytes a row of bits takes.

    >>> bit_width(1), bit_width(8), bit_width(9), bit_width(1024)
    (1, 1, 2, 128)
    """
    return (files + 7) // 8


@dataclass(frozen=True, eq=False, slots=True)
class InvertedTheta:
    """Hashes (ascending, distinct, below θ), and a row of bits for each, the first file's bit lowest."""

    hashes: NDArray[np.uint64]
    rows: NDArray[np.uint8]
    theta: int
    files: int

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.hashes.nbytes + self.rows.nbytes

    @property
    def share(self) -> float:
        """θ as a share of the hash space, from 0 to 1."""
        return self.theta / MAX_THETA

    @classmethod
    def of(cls, sketch: ThetaSketch, ordinal: int, files: int) -> Self:
        """Return the inverted theta of one file's sketch."""
        rows = np.zeros((len(sketch.hashes), bit_width(files)), np.uint8)
        rows[:, ordinal // 8] = 1 << (ordinal % 8)
        return cls(sketch.hashes, rows, sketch.theta, files)

    @classmethod
    def empty(cls, files: int) -> Self:
        """Return that of no values at all."""
        return cls(np.empty(0, np.uint64), np.empty((0, bit_width(files)), np.uint8), MAX_THETA, files)

    @classmethod
    def merge(cls, parts: Sequence[InvertedTheta]) -> Self:
        """Join the parts of one group: θ is the least of theirs, and falls further if hashes are too many."""
        theta = min(part.theta for part in parts)
        keep = [int(np.searchsorted(part.hashes, theta)) for part in parts]
        hashes = np.concatenate([part.hashes[:n] for part, n in zip(parts, keep, strict=True)])
        rows = np.concatenate([part.rows[:n] for part, n in zip(parts, keep, strict=True)])
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        first = np.ones(len(hashes), bool)
        first[1:] = hashes[1:] != hashes[:-1]
        starts = np.flatnonzero(first)
        joined = np.bitwise_or.reduceat(rows[order], starts, axis=0) if len(starts) else rows
        return cls(hashes[starts], joined, theta, parts[0].files).cut()

    def cut(self) -> Self:
        """Let θ fall to leave k hashes, if there are 2k or more."""
        if len(self.hashes) < 2 * K:
            return self
        return type(self)(self.hashes[:K].copy(), self.rows[:K].copy(), int(self.hashes[K]), self.files)

    def below(self, theta: int) -> Self:
        """Return the hashes below a lower θ."""
        if theta >= self.theta:
            return self
        n = int(np.searchsorted(self.hashes, theta))
        return type(self)(self.hashes[:n], self.rows[:n], theta, self.files)

    def moved(self, kept: NDArray[np.bool_], offset: int, files: int) -> Self:
        """Return it with only the *kept* files, placed from *offset* on in a group of *files*."""
        bits = np.unpackbits(self.rows, axis=1, count=self.files, bitorder="little")[:, kept]
        is_used = bits.any(axis=1)
        placed = np.zeros((int(is_used.sum()), files), np.uint8)
        placed[:, offset : offset + bits.shape[1]] = bits[is_used]
        return type(self)(
            self.hashes[is_used], np.packbits(placed, axis=1, bitorder="little"), self.theta, files
        )

    def sketch(self, files: NDArray[np.bool_] | None = None) -> ThetaSketch:
        """Return the theta sketch of all files, or of those that are true in *files*."""
        if files is None:
            return ThetaSketch(self.hashes, self.theta)
        mask = np.packbits(files, bitorder="little")
        return ThetaSketch(self.hashes[(self.rows & mask).any(axis=1)], self.theta)

    def with_hash(self, value: int) -> NDArray[np.bool_] | None:
        """Return in which files a hash occurs, or None where θ has fallen below it and nothing is known."""
        if value >= self.theta:
            return None
        at = int(np.searchsorted(self.hashes, np.uint64(value)))
        if at == len(self.hashes) or self.hashes[at] != value:
            return np.zeros(self.files, bool)
        return np.unpackbits(self.rows[at], count=self.files, bitorder="little").astype(bool)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, InvertedTheta)
            and (self.theta, self.files) == (other.theta, other.files)
            and np.array_equal(self.hashes, other.hashes)
            and np.array_equal(self.rows, other.rows)
        )

    __hash__ = None  # type: ignore[assignment]

    def encode(self) -> bytes:
        """Return the bytes: a header, the hashes, the rows."""
        header = _HEADER.pack(_VERSION, 0, self.files, len(self.hashes), self.theta)
        return header + self.hashes.astype("<u8", copy=False).tobytes() + self.rows.tobytes()

    @classmethod
    def decode(cls, payload: bytes, *, place: Place = IN_MEMORY) -> Self:
        """Read the bytes, checking all that can be checked."""
        if len(payload) < _HEADER.size:
            raise InvertedThetaError(place, f"at least {_HEADER.size} bytes", str(len(payload)))
        version, _, files, count, theta = _HEADER.unpack_from(payload)
        if version != _VERSION:
            raise InvertedThetaError(place, f"version {_VERSION}", str(version))
        if not 0 < files <= MAX_FILES or not 0 < theta <= MAX_THETA:
            raise InvertedThetaError(place, "1 to 1024 files and a θ", f"{files} files, θ {theta}")
        width = bit_width(files)
        expected = _HEADER.size + count * (8 + width)
        if len(payload) != expected:
            raise InvertedThetaError(place, f"{expected} bytes for {count} hashes", str(len(payload)))
        hashes = np.frombuffer(payload, "<u8", count, _HEADER.size)
        rows = np.frombuffer(payload, np.uint8, count * width, _HEADER.size + 8 * count).reshape(count, width)
        if count and ((hashes[1:] <= hashes[:-1]).any() or hashes[0] == 0 or hashes[-1] >= theta):
            raise InvertedThetaError(place, "ascending hashes below θ", "others")
        return cls(hashes, rows, theta, files)


class InvertedThetaBuilder:
    """An inverted theta under construction, of a group of *files* files.

    Joining copies every row of bits, so the files' sketches are gathered, and many are joined at once; the
    more, the wider the rows are. But only joining lets θ fall, which saves work on later files.
    """

    def __init__(self, files: int) -> None:
        self._joined = InvertedTheta.empty(files)
        self._gathered: list[tuple[int, ThetaSketch]] = []
        self._count = 0
        self._most = K * max(bit_width(files) // 8, 1)

    @property
    def theta(self) -> int:
        """The current θ; hashes above it are not needed."""
        return self._joined.theta

    def add(self, sketch: ThetaSketch, ordinal: int) -> None:
        """Add the sketch of a file."""
        self._gathered.append((ordinal, sketch))
        self._count += len(sketch.hashes)
        if self._count >= self._most:
            self._join()

    def result(self) -> InvertedTheta:
        """Return the current inverted theta."""
        if self._gathered:
            self._join()
        return self._joined

    def _join(self) -> None:
        files = self._joined.files
        width = bit_width(files)
        theta = min(sketch.theta for _, sketch in self._gathered)
        below = [sketch.hashes[: np.searchsorted(sketch.hashes, theta)] for _, sketch in self._gathered]
        ordinals = np.repeat([ordinal for ordinal, _ in self._gathered], [len(part) for part in below])
        hashes, numbers = np.unique(np.concatenate(below), return_inverse=True)
        rows = np.zeros((len(hashes), width), np.uint8)
        bits = (1 << (ordinals % 8)).astype(np.uint8)
        np.bitwise_or.at(rows.reshape(-1), numbers * width + ordinals // 8, bits)
        gathered = InvertedTheta(hashes, rows, theta, files)
        self._joined = InvertedTheta.merge([self._joined, gathered])
        self._gathered, self._count = [], 0


def union(sketches: Iterable[ThetaSketch]) -> ThetaSketch:
    """Return the sketch of everything that the sketches have seen, reduced to k hashes if there are 2k."""
    parts = list(sketches)
    theta = min((part.theta for part in parts), default=MAX_THETA)
    below = [part.hashes[: np.searchsorted(part.hashes, np.uint64(theta))] for part in parts]
    hashes = np.unique(np.concatenate(below)) if below else np.empty(0, np.uint64)
    if len(hashes) >= 2 * K:
        return ThetaSketch(hashes[:K].copy(), int(hashes[K]))
    return ThetaSketch(hashes, theta)
