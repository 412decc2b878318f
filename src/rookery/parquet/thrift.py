"""Thrift's compact protocol, as far as Parquet's footers, page headers and page indexes use it.

pyarrow hides `encoding_stats` and page headers, which show whether a chunk's dictionary has all its values,
and the page index, which has the places of its pages. A footer is parsed for every file that is examined, so
the loop over a struct's fields keeps its position in a local and reads numbers inline.
"""

from __future__ import annotations

from typing import Any

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
_MAX_DEPTH = 32
_MAX_SHIFT = 63
_LONG_LIST = 15  # a list of so many elements or more has its size in a number of its own

Struct = dict[int, Any]


class ThriftError(ValueError):
    """The bytes are not a struct of the compact protocol."""


class Cursor:
    """Reads structs from *data*, each into a dict by field id."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes | memoryview, position: int = 0) -> None:
        self.data = data
        self.position = position

    def struct(self) -> Struct:
        """Read one struct."""
        try:
            return self._struct(0)
        except IndexError:
            raise ThriftError("the bytes end inside a struct") from None

    def _struct(self, depth: int) -> Struct:
        if depth > _MAX_DEPTH:
            raise ThriftError("structs nest too deep")
        fields: Struct = {}
        number = 0
        data, at = self.data, self.position
        while head := data[at]:  # a zero byte is the stop
            at += 1
            kind = head & 0x0F
            if head > 0x0F:
                number += head >> 4
            else:
                self.position = at
                number = self._zigzag()
                at = self.position
            if I16 <= kind <= I64:
                value = data[at]
                at += 1
                if value > 0x7F:
                    value &= 0x7F
                    shift = 7
                    while (byte := data[at]) > 0x7F and shift < _MAX_SHIFT:
                        value |= (byte & 0x7F) << shift
                        shift += 7
                        at += 1
                    if byte > 0x7F:
                        raise ThriftError("a number is too long")
                    value |= byte << shift
                    at += 1
                fields[number] = (value >> 1) ^ -(value & 1)
            elif TRUE <= kind <= FALSE:
                fields[number] = kind == TRUE
            else:
                self.position = at
                fields[number] = self._struct(depth + 1) if kind == STRUCT else self._value(kind, depth)
                at = self.position
        self.position = at + 1
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind == BINARY:
            return self._take(self._varint())
        if kind in (LIST, SET):
            return self._list(depth)
        if kind == STRUCT:
            return self._struct(depth + 1)
        if kind in (I32, I64, I16):
            return self._zigzag()
        if kind == BYTE:
            return self._take(1)[0]
        if kind == DOUBLE:
            return self._take(8)
        if kind in (TRUE, FALSE):  # inside a list a boolean has a byte of its own
            return self._take(1)[0] == TRUE
        raise ThriftError(f"no field has the type {kind}")

    def _list(self, depth: int) -> list[Any]:
        if depth > _MAX_DEPTH:
            raise ThriftError("lists nest too deep")
        head = self.data[self.position]
        self.position += 1
        size = head >> 4
        if size == _LONG_LIST:
            size = self._varint()
        if size > len(self.data) - self.position:
            raise ThriftError("a list is longer than the bytes")
        kind = head & 0x0F
        if kind == STRUCT:
            return [self._struct(depth + 2) for _ in range(size)]
        if kind == I32:
            small = self.data[self.position : self.position + size]
            if size and max(small) < 0x80:  # as encodings are
                self.position += size
                return [(value >> 1) ^ -(value & 1) for value in small]
        return [self._value(kind, depth + 1) for _ in range(size)]

    def _take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self.data):
            raise ThriftError("a value is longer than the bytes")
        taken = bytes(self.data[self.position : end])
        self.position = end
        return taken

    def _varint(self) -> int:
        data, position = self.data, self.position
        byte = data[position]
        position += 1
        result = byte & 0x7F
        shift = 7
        while byte & 0x80:
            if shift > _MAX_SHIFT:
                raise ThriftError("a number is too long")
            byte = data[position]
            position += 1
            result |= (byte & 0x7F) << shift
            shift += 7
        self.position = position
        return result

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
