"""Thrift's compact protocol, as far as Parquet's footers and page headers use it.

pyarrow hides `encoding_stats` and page headers, which tell whether a chunk's dictionary holds all its values.
"""

from __future__ import annotations

from typing import Any

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_MAX_DEPTH = 32

Struct = dict[int, Any]


class ThriftError(ValueError):
    """The bytes are not a struct of the compact protocol."""


class Cursor:
    """Reads structs from *data*, each into a dict by field id."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes | memoryview, position: int = 0) -> None:
        self.data = data
        self.position = position

    def struct(self, depth: int = 0) -> Struct:
        """Read one struct."""
        if depth > _MAX_DEPTH:
            raise ThriftError("structs nest too deep")
        fields: Struct = {}
        number = 0
        data = self.data
        try:
            while True:
                head = data[self.position]
                self.position += 1
                kind = head & 0x0F
                if kind == _STOP:
                    return fields
                delta = head >> 4
                number = number + delta if delta else self._zigzag()
                if kind == _TRUE:
                    fields[number] = True
                elif kind == _FALSE:
                    fields[number] = False
                else:
                    fields[number] = self._value(kind, depth)
        except IndexError:
            raise ThriftError("the bytes end inside a struct") from None

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_I32, _I64, _I16):
            return self._zigzag()
        if kind == _BINARY:
            length = self._varint()
            return self._take(length)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _BYTE:
            return self._take(1)[0]
        if kind == _DOUBLE:
            return self._take(8)
        if kind in (_TRUE, _FALSE):  # inside a list a boolean has a byte of its own
            return self._take(1)[0] == _TRUE
        raise ThriftError(f"no field has the type {kind}")

    def _list(self, depth: int) -> list[Any]:
        if depth > _MAX_DEPTH:
            raise ThriftError("lists nest too deep")
        head = self.data[self.position]
        self.position += 1
        size = head >> 4
        if size == 15:
            size = self._varint()
        if size > len(self.data) - self.position:
            raise ThriftError("a list is longer than the bytes")
        kind = head & 0x0F
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
            if shift > 63:
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
