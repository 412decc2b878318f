"""Single values as bytes, in Iceberg's single-value serialization.

A value has the form that `rookery.model.predicate` describes.
"""

from __future__ import annotations

import struct

from rookery.model.predicate import Value
from rookery.model.type_names import base_type

_NUMBERS = {
    "boolean": struct.Struct("<?"),
    "int": struct.Struct("<i"),
    "date": struct.Struct("<i"),
    "float": struct.Struct("<f"),
    "double": struct.Struct("<d"),
}
_LONGS = ("long", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
_NUMBERS |= dict.fromkeys(_LONGS, struct.Struct("<q"))

UNFIT = (struct.error, OverflowError, UnicodeEncodeError)
"""The error for a value that does not fit its type."""


def shortest(number: int) -> bytes:
    """Return a whole number big-endian in as few bytes as possible.

    >>> shortest(127), shortest(128), shortest(-129), shortest(0)
    (b'\\x7f', b'\\x00\\x80', b'\\xff\\x7f', b'\\x00')
    """
    bits = (~number if number < 0 else number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def whole(value: Value) -> int:
    """Return an unscaled decimal."""
    if not isinstance(value, int):
        raise OverflowError(f"no unscaled decimal: {value!r}")
    return value


def single_value(type_name: str, value: Value) -> bytes:
    """Return the bytes of a value; raise one of `UNFIT` if it does not fit its type.

    >>> single_value("int", 7), single_value("decimal(9, 2)", -129), single_value("string", "a")
    (b'\\x07\\x00\\x00\\x00', b'\\xff\\x7f', b'a')
    """
    kind = base_type(type_name)
    if kind == "decimal":
        return shortest(whole(value))
    if kind in _NUMBERS:
        return _NUMBERS[kind].pack(value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise OverflowError(f"no {kind}: {value!r}")
