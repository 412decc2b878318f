"""Iceberg's values as bytes, from Arrow arrays and from Parquet's PLAIN encoding, into a builder.

For a theta sketch the bytes are those of Iceberg's single-value serialization: integers, dates and times
little-endian, decimals unscaled and big-endian in as few bytes as will do, strings in UTF-8, a UUID in its 16
bytes. A Bloom filter differs in decimals alone, which have a method of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.model.type_names import base_type


class ValueConsumer(Protocol):
    """A consumer of values as bytes: the builder of a theta sketch, or of a Bloom filter."""

    def add_fixed(self, data: NDArray[np.uint8], start: int, count: int, width: int) -> None:
        """Add *count* values of *width* bytes from *start*."""

    def add_widened(self, data: NDArray[np.uint8], start: int, count: int) -> None:
        """Add four-byte integers as longs."""

    def add_prefixed(self, data: NDArray[np.uint8], start: int, end: int) -> int:
        """Add the byte arrays from *start* to *end*, each after its length; return their number."""

    def add_offsets(self, data: NDArray[np.uint8], offsets: NDArray[np.int32] | NDArray[np.int64]) -> None:
        """Add the byte arrays between consecutive *offsets*."""

    def add_decimals(
        self, data: NDArray[np.uint8], start: int, count: int, width: int, *, little: bool
    ) -> None:
        """Add unscaled decimals of *width* bytes, little- or big-endian."""


PlainValues = Callable[[ValueConsumer, NDArray[np.uint8], int, int], None]

_WIDTHS = {
    "int": 4,
    "date": 4,
    "float": 4,
    "long": 8,
    "double": 8,
    "time": 8,
    "timestamp": 8,
    "timestamptz": 8,
}
_WIDTHS |= {"timestamp_ns": 8, "timestamptz_ns": 8}


def add_arrow(builder: ValueConsumer, type_name: str, array: pa.Array) -> None:
    """Add the values of an Arrow array of the Iceberg type *type_name*; nulls are passed over."""
    if pa.types.is_dictionary(array.type):
        array = pc.take(no_view(array.dictionary), pc.unique(array.indices.drop_null()))
    array = no_view(array)
    if array.null_count:
        array = array.drop_null()
    if not len(array):
        return
    kind = base_type(type_name)
    if kind == "boolean":
        values = np.unique(np.asarray(array.cast(pa.uint8())))
        builder.add_fixed(values, 0, len(values), 1)
    elif kind in ("string", "binary"):
        _add_variable(builder, array)
    elif kind == "decimal":
        _add_decimals(builder, array)
    elif kind in ("fixed", "uuid"):
        _add_fixed_binary(builder, array)
    else:
        _add_numbers(builder, kind, array)


def no_view(array: pa.Array) -> pa.Array:
    """View types, in which files of Rust's writers are read, are not supported by Arrow's other functions."""
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def _add_variable(builder: ValueConsumer, array: pa.Array) -> None:
    if not (pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)):
        array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    builder.add_offsets(np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8), bounds)


def _add_decimals(builder: ValueConsumer, array: pa.Array) -> None:
    width = array.type.bit_width // 8
    data = np.frombuffer(array.buffers()[1], np.uint8)
    builder.add_decimals(data, array.offset * width, len(array), width, little=True)


def _add_fixed_binary(builder: ValueConsumer, array: pa.Array) -> None:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = _uuid_bytes(array)
    if not pa.types.is_fixed_size_binary(array.type):
        _add_variable(builder, array)
        return
    width = array.type.byte_width
    builder.add_fixed(np.frombuffer(array.buffers()[1], np.uint8), array.offset * width, len(array), width)


def _uuid_bytes(texts: pa.Array) -> pa.Array:
    """Spark has no UUIDs and shows them as text."""
    digits = "".join(pc.replace_substring(texts, "-", "").to_pylist())
    return pa.Array.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(bytes.fromhex(digits))])


_ARROW = {
    "int": pa.int32(),
    "date": pa.date32(),
    "float": pa.float32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
}


def _add_numbers(builder: ValueConsumer, kind: str, array: pa.Array) -> None:
    if array.type != _ARROW[kind]:
        array = array.cast(_ARROW[kind], safe=False)
    width = _WIDTHS[kind]
    data = np.frombuffer(array.buffers()[1], np.uint8)
    builder.add_fixed(data, array.offset * width, len(array), width)


def in_one_form(type_name: str, array: pa.Array) -> pa.Array:
    """Return an array without nulls as the Arrow type of an Iceberg type, from any reader."""
    kind = base_type(type_name)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if kind in _ARROW and array.type != _ARROW[kind]:
        return array.cast(_ARROW[kind], safe=False)
    if kind == "decimal" and not pa.types.is_decimal128(array.type):
        return array.cast(pa.decimal128(38, array.type.scale))
    if kind == "uuid" and (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return _uuid_bytes(array)
    return array


def _fixed(width: int) -> PlainValues:
    def add(builder: ValueConsumer, data: NDArray[np.uint8], start: int, end: int) -> None:
        builder.add_fixed(data, start, _count(start, end, width), width)

    return add


def _widened(builder: ValueConsumer, data: NDArray[np.uint8], start: int, end: int) -> None:
    builder.add_widened(data, start, _count(start, end, 4))


def _decimals(width: int, little: bool) -> PlainValues:
    def add(builder: ValueConsumer, data: NDArray[np.uint8], start: int, end: int) -> None:
        builder.add_decimals(data, start, _count(start, end, width), width, little=little)

    return add


def _prefixed(builder: ValueConsumer, data: NDArray[np.uint8], start: int, end: int) -> None:
    builder.add_prefixed(data, start, end)


def _count(start: int, end: int, width: int) -> int:
    if width <= 0 or (end - start) % width:
        raise ValueError(f"{end - start} bytes are no whole number of values of {width}")
    return (end - start) // width


def plain_values(type_name: str, physical: str, width: int, time_unit: str | None) -> PlainValues | None:
    """Return how to add PLAIN-encoded values of a column, or None if a full reader must convert them first.

    *physical* is Parquet's type, *width* that of a fixed-length one, *time_unit* that of a time.
    """
    kind = base_type(type_name)
    if kind in ("time", "timestamp", "timestamptz"):
        return _fixed(8) if physical == "INT64" and time_unit == "us" else None
    if kind in ("timestamp_ns", "timestamptz_ns"):
        return _fixed(8) if physical == "INT64" and time_unit == "ns" else None
    if kind in ("fixed", "uuid"):
        return _fixed(width) if physical == "FIXED_LEN_BYTE_ARRAY" else None
    if (kind, physical) == ("decimal", "FIXED_LEN_BYTE_ARRAY"):
        return _decimals(width, little=False)
    return _PLAIN.get((kind, physical))


_PLAIN: dict[tuple[str, str], PlainValues] = {
    ("int", "INT32"): _fixed(4),
    ("date", "INT32"): _fixed(4),
    ("long", "INT64"): _fixed(8),
    ("long", "INT32"): _widened,
    ("float", "FLOAT"): _fixed(4),
    ("double", "DOUBLE"): _fixed(8),
    ("decimal", "INT32"): _decimals(4, little=True),
    ("decimal", "INT64"): _decimals(8, little=True),
    ("string", "BYTE_ARRAY"): _prefixed,
    ("binary", "BYTE_ARRAY"): _prefixed,
}
