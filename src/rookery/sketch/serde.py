"""Text in the items of DataSketches, as bytes: text that is not UTF-8 is unchanged, and sorted by bytes."""

from __future__ import annotations

import struct

import datasketches
from xxhash import xxh3_64_intdigest

_LENGTH = struct.Struct("<I")


class TextSerDe(datasketches.PyObjectSerDe):  # type: ignore[misc]
    """Bytes, mostly UTF-8, each item after its length in four bytes."""

    def __init__(self) -> None:
        datasketches.PyObjectSerDe.__init__(self)

    def get_size(self, item: bytes) -> int:
        """How many bytes an item takes."""
        return _LENGTH.size + len(item)

    def to_bytes(self, item: bytes) -> bytes:
        """Return an item's bytes."""
        return _LENGTH.pack(len(item)) + item

    def from_bytes(self, data: bytes, offset: int) -> tuple[bytes, int]:
        """Read one item at *offset*; return it with the number of bytes read."""
        (length,) = _LENGTH.unpack_from(data, offset)
        start = offset + _LENGTH.size
        if start + length > len(data):
            raise ValueError("an item is longer than the sketch")
        return self.item(data[start : start + length]), _LENGTH.size + length

    def item(self, data: bytes) -> bytes:
        """Return the items of a sketch as bytes."""
        return data


class Key(bytes):
    """Bytes with a hash that is the same in every process, so that sketches are."""

    def __hash__(self) -> int:
        return xxh3_64_intdigest(self) >> 1


class KeySerDe(TextSerDe):
    """The same, for sketches that look items up."""

    def item(self, data: bytes) -> Key:
        """Return the items of a sketch as bytes."""
        return Key(data)
