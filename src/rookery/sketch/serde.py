"""Text in the items of DataSketches: UTF-8, as the library's own serde breaks on other than ASCII."""

from __future__ import annotations

import struct

import datasketches

_LENGTH = struct.Struct("<I")


class TextSerDe(datasketches.PyObjectSerDe):  # type: ignore[misc]
    """Strings as UTF-8, each behind its length in four bytes."""

    def __init__(self) -> None:
        datasketches.PyObjectSerDe.__init__(self)

    def get_size(self, item: str) -> int:
        """How many bytes an item takes."""
        return _LENGTH.size + len(item.encode())

    def to_bytes(self, item: str) -> bytes:
        """Return an item's bytes."""
        data = item.encode()
        return _LENGTH.pack(len(data)) + data

    def from_bytes(self, data: bytes, offset: int) -> tuple[str, int]:
        """Read one item at *offset*; return it with the number of bytes taken."""
        (length,) = _LENGTH.unpack_from(data, offset)
        start = offset + _LENGTH.size
        if start + length > len(data):
            raise ValueError("an item is longer than the sketch")
        return data[start : start + length].decode(), _LENGTH.size + length
