"""The header of a bitmap index, by which single bitmaps are found and read."""

from __future__ import annotations

import struct
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap
from zlib_ng import zlib_ng

from rookery.model import IN_MEMORY, FormatError, Place
from rookery.model.type_names import SKETCHED, base_type
from rookery.sketch.inverted import MAX_FILES

CONTAINER = 1 << 16
SPACE = 1 << 32
PREFIX_SIZE = 8
_PREFIX = struct.Struct("<3sBI")  # magic, version, size of the header
_COUNTS = struct.Struct("<HHI")  # length of the type's name, files, values
_CRC = struct.Struct("<I")
_MAGIC = b"RkB"
_VERSION = 1
_COVERED, _GIVEN_UP = 1, 2
_FILE = np.dtype([("base", "<u4"), ("rows", "<i8"), ("state", "u1")])
_ENTRY = np.dtype([("value", "<u4"), ("size", "<u8"), ("cardinality", "<u8"), ("crc", "<u4")])


class BitmapError(FormatError):
    """The payload is not a bitmap index."""


def wrong_files(bases: NDArray[np.uint32], rows: NDArray[np.int64]) -> bool:
    """Whether files are not consecutive, each from a container's first position on."""
    starts = bases.astype(np.int64)
    room = np.diff(starts, append=SPACE)
    return bool(((starts % CONTAINER != 0) | (room <= 0) | (rows < 0) | (rows > room)).any())


@dataclass(frozen=True, eq=False)
class BitmapDirectory:
    """The header of an index: values, their counts, and the places of the bitmaps.

    The bitmaps are numbered as the values are; the one after the last is that of the nulls.
    """

    type: str
    bases: NDArray[np.uint32]
    rows: NDArray[np.int64]
    covered: NDArray[np.bool_]
    given_up: NDArray[np.bool_]
    values: tuple[bytes, ...]
    sizes: NDArray[np.int64]
    cardinalities: NDArray[np.int64]
    crcs: NDArray[np.uint32]

    @property
    def files(self) -> int:
        """How many files the group has."""
        return len(self.bases)

    @property
    def nulls(self) -> int:
        """The number of the nulls' bitmap."""
        return len(self.values)

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        fixed = _PREFIX.size + _COUNTS.size + len(self.type.encode()) + self.files * _FILE.itemsize
        entries = len(self.sizes) * _ENTRY.itemsize + sum(map(len, self.values))
        return fixed + entries + _CRC.size + np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def size(self) -> int:
        """How many bytes the payload takes, header and bitmaps."""
        return int(self._offsets[-1])

    def find(self, value: bytes) -> int | None:
        """Return the number of a value, by its bytes, or None if no row has it."""
        at = bisect_left(self.values, value)
        return at if at < len(self.values) and self.values[at] == value else None

    def entry(self, number: int) -> tuple[int, int]:
        """Return the offset of a bitmap in the payload, and its length."""
        return int(self._offsets[number]), int(self.sizes[number])

    def read(self, number: int, serialized: bytes | memoryview, *, place: Place = IN_MEMORY) -> BitMap:
        """Return a bitmap from its bytes, after checking them."""
        if len(serialized) != self.sizes[number]:
            raise BitmapError(place, f"{self.sizes[number]} bytes", str(len(serialized)))
        crc = zlib_ng.crc32(serialized)
        if crc != self.crcs[number]:
            raise BitmapError(place, f"the CRC {self.crcs[number]:#010x} of a bitmap", f"{crc:#010x}")
        try:
            bitmap = BitMap.deserialize(bytes(serialized))
        except ValueError as error:
            raise BitmapError(place, "a roaring bitmap", str(error)) from error
        if len(bitmap) != self.cardinalities[number]:
            raise BitmapError(place, f"{self.cardinalities[number]} positions", str(len(bitmap)))
        return bitmap

    def encode(self) -> bytes:
        """Return the bytes, the CRC of all others last."""
        files = np.zeros(self.files, _FILE)
        files["base"], files["rows"] = self.bases, self.rows
        files["state"] = np.where(self.given_up, _GIVEN_UP, np.where(self.covered, _COVERED, 0))
        entries = np.zeros(len(self.sizes), _ENTRY)
        entries["value"][:-1] = [len(value) for value in self.values]
        entries["size"], entries["cardinality"], entries["crc"] = self.sizes, self.cardinalities, self.crcs
        name = self.type.encode()
        header = b"".join(
            [
                _PREFIX.pack(_MAGIC, _VERSION, int(self._offsets[0])),
                _COUNTS.pack(len(name), self.files, len(self.values)),
                name,
                files.tobytes(),
                entries.tobytes(),
                *self.values,
            ]
        )
        return header + _CRC.pack(zlib_ng.crc32(header))

    @staticmethod
    def head_size(prefix: bytes | memoryview, *, place: Place = IN_MEMORY) -> int:
        """Return how many bytes the header takes, by its first eight."""
        if len(prefix) < PREFIX_SIZE:
            raise BitmapError(place, f"at least {PREFIX_SIZE} bytes", str(len(prefix)))
        magic, version, size = _PREFIX.unpack_from(prefix)
        if (magic, version) != (_MAGIC, _VERSION):
            raise BitmapError(place, f"the magic {_MAGIC!r} and version {_VERSION}", f"{magic!r}, {version}")
        if size < _PREFIX.size + _COUNTS.size + _CRC.size:
            raise BitmapError(place, "the size of a header", str(size))
        return int(size)

    @classmethod
    def decode(cls, data: bytes | memoryview, *, place: Place = IN_MEMORY) -> Self:
        """Read a header, checking all that can be checked; *data* may continue after it."""
        end = cls.head_size(data, place=place) - _CRC.size
        if len(data) < end + _CRC.size:
            raise BitmapError(place, f"a header of {end + _CRC.size} bytes", str(len(data)))
        (stored,) = _CRC.unpack_from(data, end)
        computed = zlib_ng.crc32(data[:end])
        if stored != computed:
            raise BitmapError(place.at(end), f"the CRC {computed:#010x} of the header", f"{stored:#010x}")
        directory = cls._parse(bytes(data[:end]), place)
        if wrong_files(directory.bases, directory.rows):
            raise BitmapError(place, "consecutive files", "others")
        if any(one >= other for one, other in pairwise(directory.values)):
            raise BitmapError(place, "ascending values", "others")
        if base_type(directory.type) not in SKETCHED:
            raise BitmapError(place, "a type of Iceberg's", repr(directory.type))
        if int(directory.cardinalities.sum()) > int(directory.rows[directory.covered].sum()):
            raise BitmapError(place, "no more positions than rows", str(directory.cardinalities.sum()))
        return directory

    @classmethod
    def _parse(cls, header: bytes, place: Place) -> Self:
        name_size, count, values = _COUNTS.unpack_from(header, PREFIX_SIZE)
        at = PREFIX_SIZE + _COUNTS.size + name_size
        entries_at = at + count * _FILE.itemsize
        values_at = entries_at + (values + 1) * _ENTRY.itemsize
        if not 0 < count <= MAX_FILES or values_at > len(header):
            actual = f"{count} files, {values} values in {len(header)} bytes"
            raise BitmapError(place.at(PREFIX_SIZE), f"1 to {MAX_FILES} files that fit the header", actual)
        files = np.frombuffer(header, _FILE, count, at)
        entries = np.frombuffer(header, _ENTRY, values + 1, entries_at)
        ends = values_at + np.cumsum(entries["value"].astype(np.int64))
        if ends[-1] != len(header) or entries["value"][-1] or (entries["size"] > SPACE << 1).any():
            raise BitmapError(place.at(entries_at), "values and bitmaps that fit the header", "others")
        if (files["state"] > _GIVEN_UP).any():
            raise BitmapError(place.at(at), "files that are covered, or not, or given up", "others")
        bounds = [values_at, *ends[:-1].tolist()]
        return cls(
            header[at - name_size : at].decode(errors="replace"),
            files["base"].astype(np.uint32),
            files["rows"].astype(np.int64),
            files["state"] == _COVERED,
            files["state"] == _GIVEN_UP,
            tuple(header[start:end] for start, end in pairwise(bounds)),
            entries["size"].astype(np.int64),
            np.minimum(entries["cardinality"], SPACE).astype(np.int64),
            entries["crc"].astype(np.uint32),
        )
