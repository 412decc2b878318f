"""The Bloom filters of a group of files, stored block by block across the files.

A lookup needs one block of each filter, always the same one where the filters have equally many. So the
blocks of one number are stored together, a row, and a lookup in all files is one short read.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from zlib_ng import zlib_ng

from rookery.model import IN_MEMORY, Place
from rookery.sketch.bloom import BLOCK_SIZE, MAX_BLOCKS, WORDS, BloomError, BloomFilter, block_of, masks_of
from rookery.sketch.inverted import MAX_FILES

_FIXED = struct.Struct("<BBHIIdI")  # version, 0, files, files covered, blocks, rate, CRC of all blocks
_CRC = struct.Struct("<I")
_NUMBER = struct.Struct("<I")
_VERSION = 1


def header_size(covered: int) -> int:
    """How many bytes come before the rows, where *covered* files have filters.

    >>> header_size(1), header_size(1024)
    (30, 2076)
    """
    return _FIXED.size + 2 * covered + _CRC.size


MAX_HEADER_SIZE = header_size(MAX_FILES)
"""No header is longer."""


def _row_crc(number: int, row: bytes | memoryview, body: int) -> int:
    """The row's number counts, and the CRC of all blocks: a row of another place or matrix is noticed."""
    return zlib_ng.crc32(row, zlib_ng.crc32(_NUMBER.pack(number), body))


@dataclass(frozen=True, eq=False, slots=True)
class MatrixHeader:
    """What is needed to find and decode a row."""

    blocks: int
    files: int
    ordinals: NDArray[np.int32]
    fpp: float
    body: int  # CRC-32 of the blocks of all rows, which distinguishes matrices of one shape

    @property
    def row_size(self) -> int:
        """How many bytes a row takes, its CRC among them."""
        return BLOCK_SIZE * len(self.ordinals) + _CRC.size

    @property
    def size(self) -> int:
        """How many bytes the payload takes, header and rows."""
        return self.row_start(self.blocks)

    def row_start(self, number: int) -> int:
        """The offset of a row in the payload."""
        return header_size(len(self.ordinals)) + number * self.row_size

    def encode(self) -> bytes:
        """Return the bytes, the CRC of all others last."""
        fixed = _FIXED.pack(_VERSION, 0, self.files, len(self.ordinals), self.blocks, self.fpp, self.body)
        header = fixed + self.ordinals.astype("<u2").tobytes()
        return header + _CRC.pack(zlib_ng.crc32(header))

    @classmethod
    def decode(cls, data: bytes | memoryview, *, place: Place = IN_MEMORY) -> Self:
        """Read a header, checking all that can be checked; *data* may continue after it."""
        if len(data) < header_size(1):
            raise BloomError(place, f"at least {header_size(1)} bytes", str(len(data)))
        version, zero, files, covered, blocks, fpp, body = _FIXED.unpack_from(data)
        if (version, zero) != (_VERSION, 0):
            raise BloomError(place, f"version {_VERSION}", f"{version}, {zero}")
        if not 0 < covered <= files <= MAX_FILES or not 0 < blocks <= MAX_BLOCKS or not 0 < fpp < 1:
            actual = f"{covered} of {files} files, {blocks} blocks, {fpp}"
            raise BloomError(place, f"some of 1 to {MAX_FILES} files, blocks and a rate", actual)
        end = header_size(covered) - _CRC.size
        if len(data) < end + _CRC.size:
            raise BloomError(place, f"a header of {end + _CRC.size} bytes", str(len(data)))
        (stored,) = _CRC.unpack_from(data, end)
        computed = zlib_ng.crc32(data[:end])
        if stored != computed:
            raise BloomError(place.at(end), f"the CRC {computed:#010x} of the header", f"{stored:#010x}")
        ordinals = np.frombuffer(data, "<u2", covered, _FIXED.size).astype(np.int32)
        if (ordinals[1:] <= ordinals[:-1]).any() or ordinals[-1] >= files:
            raise BloomError(place.at(_FIXED.size), f"ascending ordinals below {files}", "others")
        return cls(blocks, files, ordinals, fpp, body)

    def row_range(self, value: int) -> tuple[int, int]:
        """Return the offset of the row of a hash in the payload, and its length."""
        return self.row_start(block_of(value, self.blocks)), self.row_size

    def probe(self, row: bytes, value: int, *, place: Place = IN_MEMORY) -> NDArray[np.bool_]:
        """Return which of the covered files may have the key of a hash, by its row."""
        masks = masks_of(value)
        words = self.words_of(row, block_of(value, self.blocks), place)
        return np.asarray(((words & masks) == masks).all(axis=1))

    def words_of(self, row: bytes | memoryview, number: int, place: Place) -> NDArray[np.uint32]:
        """Return the words of a row, after checking its CRC."""
        if len(row) != self.row_size:
            raise BloomError(place, f"a row of {self.row_size} bytes", str(len(row)))
        end = self.row_size - _CRC.size
        (stored,) = _CRC.unpack_from(row, end)
        computed = _row_crc(number, row[:end], self.body)
        if stored != computed:
            expected = f"the CRC {computed:#010x} of row {number}"
            raise BloomError(place.at(end), expected, f"{stored:#010x}")
        return np.frombuffer(row, "<u4", WORDS * len(self.ordinals)).reshape(-1, WORDS)


@dataclass(frozen=True, eq=False, slots=True)
class BloomMatrix:
    """The filters of some files of a group, all with the same number of blocks.

    *words* is indexed by block, by place in *ordinals*, and by word; *fpp* is the requested rate.
    """

    blocks: int
    files: int
    ordinals: NDArray[np.int32]
    fpp: float
    words: NDArray[np.uint32]

    @classmethod
    def of(cls, filters: Mapping[int, BloomFilter], files: int, fpp: float) -> list[Self]:
        """Return the matrices of filters by their file's ordinal: one for each number of blocks."""
        by_blocks: dict[int, list[int]] = defaultdict(list)
        for ordinal in sorted(filters):
            by_blocks[filters[ordinal].blocks].append(ordinal)
        return [
            cls(
                blocks,
                files,
                np.array(ordinals, np.int32),
                fpp,
                np.stack([filters[ordinal].words for ordinal in ordinals], axis=1),
            )
            for blocks, ordinals in sorted(by_blocks.items())
        ]

    @classmethod
    def merge(cls, matrices: Iterable[BloomMatrix]) -> list[Self]:
        """Join matrices of one group side by side where blocks and rate are equal."""
        by_shape: dict[tuple[int, float], list[BloomMatrix]] = defaultdict(list)
        for matrix in matrices:
            by_shape[matrix.blocks, matrix.fpp].append(matrix)
        return [cls._joined(by_shape[key]) for key in sorted(by_shape)]

    @classmethod
    def _joined(cls, parts: list[BloomMatrix]) -> Self:
        first = parts[0]
        if len({part.files for part in parts}) != 1:
            raise ValueError("the matrices are not of one group")
        ordinals = np.concatenate([part.ordinals for part in parts])
        order = np.argsort(ordinals)
        ordinals = ordinals[order]
        if (ordinals[1:] == ordinals[:-1]).any():
            raise ValueError("a file has a filter in two matrices")
        words = np.concatenate([part.words for part in parts], axis=1)
        if (order[1:] < order[:-1]).any():
            words = words[:, order]
        return cls(first.blocks, first.files, ordinals, first.fpp, words)

    @property
    def header(self) -> MatrixHeader:
        """The header by which rows are found."""
        return MatrixHeader(
            blocks=self.blocks,
            files=self.files,
            ordinals=self.ordinals,
            fpp=self.fpp,
            body=zlib_ng.crc32(self._body),
        )

    @property
    def _body(self) -> memoryview:
        """The blocks of all rows, one after the other."""
        return np.ascontiguousarray(self.words, "<u4").reshape(-1).view(np.uint8).data

    def filter_of(self, ordinal: int) -> BloomFilter | None:
        """Return the filter of a file, or None if it has none here."""
        at = int(np.searchsorted(self.ordinals, ordinal))
        if at == len(self.ordinals) or self.ordinals[at] != ordinal:
            return None
        return BloomFilter(np.ascontiguousarray(self.words[:, at]))

    def moved(self, kept: NDArray[np.bool_], offset: int, files: int) -> Self | None:
        """Return it with only the *kept* files, placed from *offset* on in a group of *files*."""
        stays = kept[self.ordinals]
        if not stays.any():
            return None
        places = np.cumsum(kept, dtype=np.int32) - 1 + offset
        ordinals = places[self.ordinals[stays]].astype(np.int32)
        words = self.words if stays.all() else self.words[:, stays]
        return type(self)(self.blocks, files, ordinals, self.fpp, words)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BloomMatrix)
            and (self.blocks, self.files, self.fpp) == (other.blocks, other.files, other.fpp)
            and np.array_equal(self.ordinals, other.ordinals)
            and np.array_equal(self.words, other.words)
        )

    __hash__ = None  # type: ignore[assignment]

    def encode(self) -> bytes:
        """Return the bytes: a header, then the rows, each with its CRC."""
        width = BLOCK_SIZE * len(self.ordinals)
        body, header = self._body, self.header
        pieces: list[bytes | memoryview] = [header.encode()]
        for number in range(self.blocks):
            row = body[number * width : (number + 1) * width]
            pieces += (row, _CRC.pack(_row_crc(number, row, header.body)))
        return b"".join(pieces)

    @classmethod
    def decode(cls, payload: bytes, *, place: Place = IN_MEMORY) -> Self:
        """Read the bytes, checking all that can be checked."""
        header = MatrixHeader.decode(payload, place=place)
        if len(payload) != header.size:
            raise BloomError(place, f"{header.size} bytes", str(len(payload)))
        words = np.empty((header.blocks, len(header.ordinals), WORDS), np.uint32)
        view = memoryview(payload)
        for number in range(header.blocks):
            at = header.row_start(number)
            words[number] = header.words_of(view[at : at + header.row_size], number, place.at(at))
        return cls(header.blocks, header.files, header.ordinals, header.fpp, words)
