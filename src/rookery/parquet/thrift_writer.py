"""Writing Thrift's compact protocol: dicts by field id become structs.

A number is an i32 unless it is an `I64` or an `I8`; bytes are a binary.

>>> encode({1: 2, 3: b"a"}).hex()
'150428016100'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rookery.parquet.thrift import BINARY, BYTE, FALSE, I32, LIST, STOP, STRUCT, TRUE
from rookery.parquet.thrift import I64 as I64_KIND

_LONG_LIST = 15


class I64(int):
    """A number of eight bytes."""

    __slots__ = ()


class I8(int):
    """A number of one byte."""

    __slots__ = ()


def encode(fields: Mapping[int, Any]) -> bytes:
    """Write one struct."""
    out = bytearray()
    _struct(out, fields)
    return bytes(out)


def _struct(out: bytearray, fields: Mapping[int, Any]) -> None:
    last = 0
    for number in sorted(fields):
        value = fields[number]
        kind = _kind(value)
        delta = number - last
        if 0 < delta < 16:
            out.append(delta << 4 | kind)
        else:
            out.append(kind)
            _varint(out, _zigzag(number))
        last = number
        if kind not in (TRUE, FALSE):  # a boolean is its kind
            _value(out, kind, value)
    out.append(STOP)


def _kind(value: Any) -> int:
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    if isinstance(value, int):
        return I64_KIND if isinstance(value, I64) else BYTE if isinstance(value, I8) else I32
    if isinstance(value, bytes):
        return BINARY
    return STRUCT if isinstance(value, Mapping) else LIST


def _value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I32, I64_KIND):
        _varint(out, _zigzag(value))
    elif kind == BINARY:
        _varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _struct(out, value)
    elif kind == LIST:
        _list(out, value)
    elif kind == BYTE:
        out.append(value & 0xFF)
    else:  # inside a list a boolean has a byte of its own
        out.append(kind)


def _list(out: bytearray, values: list[Any]) -> None:
    kinds = [_kind(value) for value in values]
    # All booleans of a list have one kind, and each its value.
    of_all = TRUE if kinds and kinds[0] == FALSE else kinds[0] if kinds else I32
    if len(values) < _LONG_LIST:
        out.append(len(values) << 4 | of_all)
    else:
        out.append(_LONG_LIST << 4 | of_all)
        _varint(out, len(values))
    for kind, value in zip(kinds, values, strict=True):
        _value(out, kind, value)


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
