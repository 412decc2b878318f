"""The bitmap index: for each value of a column, its rows in a group of files.

The rows of all files of a group share one space of 32-bit positions: row r of a file is at its base plus r.
Bases are multiples of 65,536, the reach of a roaring container, so no container belongs to two files, and a
file is moved by renumbering containers.
"""

from __future__ import annotations

from array import array as buffer
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap
from zlib_ng import zlib_ng

from rookery.model import IN_MEMORY, Place
from rookery.model.type_names import base_type
from rookery.sketch.bitmap_directory import CONTAINER, SPACE, BitmapDirectory, BitmapError, wrong_files
from rookery.sketch.single_value import shortest
from rookery.sketch.values import in_one_form, no_view

__all__ = ["BitmapBuilder", "BitmapDirectory", "BitmapError", "BitmapIndex", "bases", "cardinality_by_file"]

_SMALL = 1024  # positions a piece, up to which arrays are faster than containers
_Piece = tuple[int, int, int]  # first position, the one after the last, and the shift


def bases(rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return where each file of a group starts, by their numbers of rows.

    >>> bases([10, 65536, 65537, 1]).tolist()
    [0, 65536, 131072, 262144]
    """
    sizes = np.maximum((np.asarray(rows, np.int64) + CONTAINER - 1) // CONTAINER, 1) * CONTAINER
    ends = np.cumsum(sizes)
    if len(ends) and ends[-1] > SPACE:
        raise ValueError(f"a group of {sum(rows)} rows does not fit 2^32 positions")
    return np.asarray(ends - sizes, np.uint32)


def bitmap_of(positions: NDArray[np.uint32]) -> BitMap:
    """Return the bitmap of positions; pyroaring is fast with Python's own arrays."""
    return BitMap(buffer("I", positions.tobytes()))


def positions_of(bitmap: BitMap) -> NDArray[np.uint32]:
    """Return the positions, ascending."""
    return np.frombuffer(bitmap.to_array(), np.uint32) if bitmap else np.empty(0, np.uint32)


@dataclass(frozen=True, eq=False, slots=True)
class BitmapIndex:
    """Bitmaps by value: *values* are Iceberg's single-value bytes, ascending; rows without one are *nulls*.

    Floats are brought to one form: a zero is 0.0, and there is one NaN. Of files that are not *covered*
    nothing is known. Those *given_up* stay so when parts are merged, even if other parts have them.
    """

    type: str
    bases: NDArray[np.uint32]
    rows: NDArray[np.int64]
    covered: NDArray[np.bool_]
    given_up: NDArray[np.bool_]
    values: tuple[bytes, ...]
    bitmaps: tuple[BitMap, ...]
    nulls: BitMap

    @property
    def files(self) -> int:
        """How many files the group has."""
        return len(self.bases)

    @classmethod
    def merge(cls, parts: Sequence[BitmapIndex]) -> Self:
        """Join the parts of one group; of a file in several parts, each knows some rows."""
        first = parts[0]
        if any(part.type != first.type or not np.array_equal(part.bases, first.bases) for part in parts):
            raise ValueError("the indexes are not of one group and type")
        rows = np.max([part.rows for part in parts], axis=0)
        given_up = np.any([part.given_up for part in parts], axis=0)
        covered = np.any([part.covered for part in parts], axis=0)
        joined = cls.of_parts(
            first.type, first.bases, rows, covered, given_up, [part._pairs() for part in parts]
        )
        lost = np.flatnonzero(covered & given_up)
        return joined.without(lost) if len(lost) else joined

    @classmethod
    def of_parts(
        cls,
        type_name: str,
        starts: NDArray[np.uint32],
        rows: NDArray[np.int64],
        covered: NDArray[np.bool_],
        given_up: NDArray[np.bool_],
        parts: Iterable[Iterable[tuple[bytes | None, BitMap]]],
    ) -> Self:
        """Merge *parts*, with nulls under None; empty bitmaps are omitted."""
        if wrong_files(starts, rows):
            raise ValueError("the files are not consecutive")
        gathered: dict[bytes | None, list[BitMap]] = defaultdict(list)
        for pairs in parts:
            for value, bitmap in pairs:
                if bitmap:
                    gathered[value].append(bitmap)
        nulls = BitMap.union(BitMap(), *gathered.pop(None, []))
        values = tuple(sorted(value for value in gathered if value is not None))
        bitmaps = tuple(BitMap.union(*gathered[value]) for value in values)
        return cls(type_name, starts, rows, covered, given_up, values, bitmaps, nulls)

    def _pairs(self) -> list[tuple[bytes | None, BitMap]]:
        return [(None, self.nulls), *zip(self.values, self.bitmaps, strict=True)]

    def bitmap_of(self, value: bytes) -> BitMap:
        """Return the rows of a value, by its bytes."""
        at = bisect_left(self.values, value)
        return self.bitmaps[at] if at < len(self.values) and self.values[at] == value else BitMap()

    def moved(self, kept: NDArray[np.bool_], offset: int, starts: NDArray[np.uint32]) -> Self:
        """Return it with only the *kept* files, from *offset* on in a group whose bases are *starts*."""
        chosen = np.flatnonzero(kept)
        places = np.arange(offset, offset + len(chosen))
        rows = np.zeros(len(starts), np.int64)
        covered, given_up = np.zeros(len(starts), bool), np.zeros(len(starts), bool)
        rows[places], covered[places] = self.rows[chosen], self.covered[chosen]
        given_up[places] = self.given_up[chosen]
        live = self.covered[chosen]
        pieces = self._pieces(chosen[live], starts[places[live]])
        pairs = [(value, _shifted(bitmap, pieces)) for value, bitmap in self._pairs()]
        return type(self).of_parts(self.type, starts, rows, covered, given_up, [pairs])

    def without(self, ordinals: NDArray[np.int64]) -> Self:
        """Return it with some files no longer covered, but given up."""
        given_up = self.given_up.copy()
        given_up[ordinals] = True
        covered = self.covered & ~given_up
        stays = np.flatnonzero(covered)
        pieces = self._pieces(stays, self.bases[stays])
        pairs = [(value, _shifted(bitmap, pieces)) for value, bitmap in self._pairs()]
        return type(self).of_parts(self.type, self.bases, self.rows, covered, given_up, [pairs])

    def whole(self) -> Self:
        """Return it without the files of which some rows are missing: a row has one value, or is null."""
        counts = sum(self.cardinality_by_file(bitmap) for _, bitmap in self._pairs())
        torn = np.flatnonzero(self.covered & (counts != self.rows))
        return self.without(torn) if len(torn) else self

    def _pieces(self, stays: NDArray[np.int64], starts: NDArray[np.uint32]) -> list[_Piece]:
        """Join the files that follow each other and have the same shift, if no other is between them."""
        if not len(stays):
            return []
        old = self.bases[stays].astype(np.int64)
        shifts = starts - old
        among = np.searchsorted(np.flatnonzero(self.covered), stays)
        breaks = np.flatnonzero((np.diff(among) != 1) | (np.diff(shifts) != 0)) + 1
        first = np.concatenate([[0], breaks])
        last = np.concatenate([breaks, [len(stays)]]) - 1
        ends = old[last] + self.rows[stays[last]]
        return list(zip(old[first].tolist(), ends.tolist(), shifts[first].tolist(), strict=True))

    def cardinality_by_file(self, bitmap: BitMap) -> NDArray[np.int64]:
        """Return how many positions of a bitmap are in each file."""
        return cardinality_by_file(bitmap, self.bases, self.covered)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BitmapIndex)
            and (self.type, self.values, self.bitmaps) == (other.type, other.values, other.bitmaps)
            and self.nulls == other.nulls
            and np.array_equal(self.bases, other.bases)
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.covered, other.covered)
            and np.array_equal(self.given_up, other.given_up)
        )

    __hash__ = None  # type: ignore[assignment]

    def encode(self) -> bytes:
        """Return the bytes: a header, then the bitmaps, those of nulls last."""
        serialized = [_serialized(bitmap) for bitmap in (*self.bitmaps, self.nulls)]
        directory = BitmapDirectory(
            type=self.type,
            bases=self.bases,
            rows=self.rows,
            covered=self.covered,
            given_up=self.given_up,
            values=self.values,
            sizes=np.array([len(one) for one in serialized], np.int64),
            cardinalities=np.array([*map(len, self.bitmaps), len(self.nulls)], np.int64),
            crcs=np.array([zlib_ng.crc32(one) for one in serialized], np.uint32),
        )
        return b"".join([directory.encode(), *serialized])

    @classmethod
    def decode(cls, payload: bytes, *, place: Place = IN_MEMORY) -> Self:
        """Read the bytes, checking all that can be checked."""
        directory = BitmapDirectory.decode(payload, place=place)
        if len(payload) != directory.size:
            raise BitmapError(place, f"{directory.size} bytes", str(len(payload)))
        view = memoryview(payload)
        bitmaps = []
        for number in range(len(directory.sizes)):
            start, size = directory.entry(number)
            bitmaps.append(directory.read(number, view[start : start + size], place=place.at(start)))
        return cls(
            directory.type,
            directory.bases,
            directory.rows,
            directory.covered,
            directory.given_up,
            directory.values,
            tuple(bitmaps[:-1]),
            bitmaps[-1],
        )


def cardinality_by_file(
    bitmap: BitMap, starts: NDArray[np.uint32], covered: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return how many positions of a bitmap are in each of the files, which start at *starts*."""
    ordinals = np.flatnonzero(covered)
    counts = np.zeros(len(starts), np.int64)
    at = np.searchsorted(positions_of(bitmap), starts[ordinals])
    counts[ordinals] = np.diff(at, append=len(bitmap))
    return counts


def _serialized(bitmap: BitMap) -> bytes:
    bitmap = bitmap.copy()
    bitmap.run_optimize()
    return bitmap.serialize()


def _shifted(bitmap: BitMap, pieces: Sequence[_Piece]) -> BitMap:
    """Return the positions in the pieces, each shifted."""
    if not pieces or not bitmap:
        return BitMap()
    if len(bitmap) > _SMALL * len(pieces):
        shifted = [(bitmap & BitMap(range(first, end))).shift(by) for first, end, by in pieces]
        return BitMap.union(BitMap(), *shifted)
    firsts, ends, shifts = np.array(pieces, np.int64).T
    positions = positions_of(bitmap)
    at = np.searchsorted(firsts, positions, side="right") - 1
    inside = (at >= 0) & (positions < ends[at])
    return bitmap_of((positions[inside] + shifts[at[inside]]).astype(np.uint32))


class BitmapBuilder:
    """A bitmap index of a group of files under construction; *rows* are those of each file.

    A file with more than *max_values* distinct values is given up: nothing of it is kept.
    """

    def __init__(self, type_name: str, rows: Sequence[int], max_values: int = 4096) -> None:
        self._type = type_name
        self._max_values = max_values
        self._rows = np.array(rows, np.int64)
        self._bases = bases(self._rows)
        self._found: dict[int, dict[bytes | None, BitMap]] = defaultdict(dict)
        self._covered: set[int] = set()
        self.given_up: set[int] = set()

    def add(self, array: pa.Array, first_row: int, ordinal: int) -> None:
        """Add the values of a file's rows from *first_row* on."""
        if not 0 <= first_row <= first_row + len(array) <= self._rows[ordinal]:
            end = first_row + len(array)
            raise ValueError(f"file {ordinal} has {self._rows[ordinal]} rows, not {first_row} to {end}")
        if ordinal in self.given_up:
            return
        values, codes = _coded(self._type, array)
        bitmaps = self._found[ordinal]
        if len((bitmaps.keys() | values) - {None}) > self._max_values:
            self.given_up.add(ordinal)
            del self._found[ordinal]
            return
        start = int(self._bases[ordinal]) + first_row
        for value, bitmap in zip((*values, None), _bitmaps(codes, len(values) + 1, start), strict=True):
            bitmaps[value] = bitmaps[value] | bitmap if value in bitmaps else bitmap

    def cover(self, ordinal: int) -> None:
        """Mark a file as complete for this builder; without it, the file is not covered."""
        self._covered.add(ordinal)

    def result(self) -> BitmapIndex:
        """Return the current index."""
        given_up, covered = np.zeros(len(self._rows), bool), np.zeros(len(self._rows), bool)
        given_up[list(self.given_up)] = True
        covered[list(self._covered - self.given_up)] = True
        parts = [pairs.items() for ordinal, pairs in self._found.items() if covered[ordinal]]
        return BitmapIndex.of_parts(self._type, self._bases, self._rows, covered, given_up, parts)


def _bitmaps(codes: NDArray[np.int64], count: int, start: int) -> list[BitMap]:
    """Return for each code the bitmap of its positions, counted from *start*."""
    small = codes.astype(
        np.uint16 if count <= CONTAINER else np.uint32
    )  # a stable sort of two bytes is linear
    order = (np.argsort(small, kind="stable") + start).astype(np.uint32)
    ends = np.cumsum(np.bincount(codes, minlength=count))
    return [bitmap_of(part) for part in np.split(order, ends[:-1])]


def _coded(type_name: str, array: pa.Array) -> tuple[list[bytes], NDArray[np.int64]]:
    """Return the distinct values of an array, and for each row the number of its value; null comes last."""
    array = no_view(array)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        codes, distinct = _used(
            np.asarray(array.indices.cast(pa.int64()).fill_null(-1)), no_view(array.dictionary)
        )
        distinct = in_one_form(type_name, distinct)
    else:
        encoded = in_one_form(type_name, array.drop_null()).dictionary_encode()
        codes, distinct = np.full(len(array), -1), encoded.dictionary
        codes[np.asarray(array.is_valid())] = np.asarray(encoded.indices)
    numbers: dict[bytes, int] = {}
    table = [numbers.setdefault(value, len(numbers)) for value in _bytes_of(type_name, distinct)]
    return list(numbers), np.array([*table, len(numbers)], np.int64)[codes]


def _used(codes: NDArray[np.int64], dictionary: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Keep the entries that rows refer to; a null entry makes its rows null."""
    used = np.bincount(codes + 1, minlength=len(dictionary) + 1)[1:] > 0
    used &= np.asarray(dictionary.is_valid())
    table = np.full(len(dictionary) + 1, -1)
    table[:-1][used] = np.arange(used.sum())
    return table[codes], dictionary.take(pa.array(np.flatnonzero(used)))


def _bytes_of(type_name: str, values: pa.Array) -> list[bytes]:
    """Return the single-value bytes of values in one form."""
    kind = base_type(type_name)
    if kind in ("string", "binary", "fixed", "uuid"):
        texts = values if pa.types.is_fixed_size_binary(values.type) else values.cast(pa.large_binary())
        return texts.to_pylist()  # type: ignore[no-any-return]
    if kind == "decimal":
        return [shortest(int.from_bytes(one, "little", signed=True)) for one in _split(values, 16)]
    if kind == "boolean":
        return [bytes([one]) for one in values.to_pylist()]
    if kind in ("float", "double"):
        numbers = np.asarray(values) + 0.0  # negative zero becomes positive zero
        numbers[np.isnan(numbers)] = np.nan
        values = pa.array(numbers)
    return _split(values, values.type.bit_width // 8)


def _split(values: pa.Array, width: int) -> list[bytes]:
    data = values.buffers()[1]
    raw = data.to_pybytes() if data is not None else b""
    start = values.offset * width
    return [raw[at : at + width] for at in range(start, start + len(values) * width, width)]
