"""Values in one form per type, so that predicates compare arrays from any writer.

Whole numbers, days and times become int64, booleans too (0 and 1); float and double become float64; texts,
binaries and UUIDs become bytes; decimals stay decimals. What cannot be converted becomes null:
unknown.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.model import Value
from rookery.model.type_names import base_type, scale_of

_INTEGERS = frozenset({"int", "long", "date", "time", "timestamp", "timestamptz"})
_INTEGERS |= {"timestamp_ns", "timestamptz_ns"}
_BYTES = frozenset({"string", "binary", "fixed", "uuid"})
_WIDTHS = {"int": (4,), "date": (4,), "long": (4, 8), "float": (4,), "double": (4, 8)}
SUPPORTED = _INTEGERS | _BYTES | {"boolean", "float", "double", "decimal"}
MOST_DIGITS = 38


def is_float(type_name: str) -> bool:
    """Whether a type has NaN."""
    return type_name in ("float", "double")


def form_of(type_name: str) -> pa.DataType:
    """Return the Arrow type of a type's form."""
    kind = base_type(type_name)
    if kind in _BYTES:
        return pa.large_binary()
    if kind == "decimal":
        return pa.decimal128(MOST_DIGITS, scale_of(type_name))
    return pa.float64() if is_float(kind) else pa.int64()


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Return a decimal with all its digits: Python's own arithmetic rounds to 28.

    >>> decimal_of(-(10**37) - 1, 10)
    Decimal('-1000000000000000000000000000.0000000001')
    """
    return Decimal(f"{unscaled}E-{scale}")


def unscaled_of(value: Decimal, scale: int) -> int:
    """Return a decimal's digits, of which *scale* are after the point.

    >>> unscaled_of(Decimal("-1.5"), 2)
    -150
    """
    return int(Fraction(value) * 10**scale)


def scalar(type_name: str, value: Value) -> pa.Scalar:
    """Return a predicate's value in its column's form."""
    kind = base_type(type_name)
    if kind == "string":
        return pa.scalar(str(value).encode("utf-8", "surrogatepass"), pa.large_binary())
    if kind == "decimal":
        return pa.scalar(decimal_of(int(value), scale_of(type_name)), form_of(type_name))
    if kind == "boolean":
        return pa.scalar(int(value), pa.int64())
    return pa.scalar(value, form_of(type_name))


def from_rows(type_name: str, array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Bring an array of rows into its type's form."""
    array = _whole(array)
    kind, form = base_type(type_name), form_of(type_name)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), form)
    if kind == "decimal" and pa.types.is_decimal(array.type):
        return array.cast(form) if array.type != form else array
    if kind in ("timestamp", "timestamptz"):
        array = array.cast(pa.timestamp("us", array.type.tz)) if array.type.unit != "us" else array
    elif kind in ("timestamp_ns", "timestamptz_ns"):
        array = array.cast(pa.timestamp("ns", array.type.tz)) if array.type.unit != "ns" else array
    elif kind == "time" and array.type != pa.time64("us"):
        array = array.cast(pa.time64("us"))
    if kind == "date":
        return array.cast(pa.int32()).cast(form)
    if kind == "uuid" and (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        raise pa.ArrowTypeError("a UUID in text")
    return array.cast(form)


def from_bytes(type_name: str, values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Read Iceberg's single-value bytes, which may be null; one of a wrong width is unknown."""
    values = _whole(values)
    kind = base_type(type_name)
    if kind in _BYTES:
        return values.cast(pa.large_binary())
    if kind == "decimal":
        return _decimals(values, scale_of(type_name))
    if kind == "boolean":
        return _fixed(values, {1: np.dtype("u1")}, pa.int64())
    code = "f" if is_float(kind) else "i"
    dtypes = {width: np.dtype(f"<{code}{width}") for width in _WIDTHS.get(kind, (8,))}
    return _fixed(values, dtypes, form_of(type_name))


def bound_from_bytes(type_name: str, values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Read bounds as `from_bytes` does; NaN is none, though some have written it as one."""
    array = from_bytes(type_name, values)
    return pc.if_else(pc.is_nan(array), None, array) if is_float(type_name) else array


def _fixed(values: pa.Array, dtypes: dict[int, np.dtype[Any]], form: pa.DataType) -> pa.Array:
    """Numbers of fixed widths; a column that was widened has old ones of the smaller."""
    result = np.zeros(len(values), form.to_pandas_dtype())
    known = np.zeros(len(values), bool)
    for width, places, data in _by_width(values):
        if width in dtypes:
            result[places] = data.reshape(-1).view(dtypes[width])
            known[places] = True
    return pa.array(result, form, mask=~known)


def _decimals(values: pa.Array, scale: int) -> pa.Array:
    """Big-endian two's complement of any length, brought to the sixteen little-endian bytes of Arrow."""
    result = np.zeros((len(values), 16), np.uint8)
    known = np.zeros(len(values), bool)
    for width, places, data in _by_width(values):
        if 0 < width <= 16:
            result[places] = np.where(data[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
            result[places, :width] = data[:, ::-1]
            known[places] = True
    validity = pa.py_buffer(np.packbits(known, bitorder="little"))
    form = pa.decimal128(MOST_DIGITS, scale)
    return pa.Array.from_buffers(form, len(values), [validity, pa.py_buffer(result)])


def _by_width(values: pa.Array) -> list[tuple[int, NDArray[np.int64], NDArray[np.uint8]]]:
    """Group byte strings by their lengths: length, their places, and their bytes, a row each."""
    lengths = pc.binary_length(values).fill_null(-1).to_numpy(zero_copy_only=False)
    parts = []
    for width in np.unique(lengths[lengths > 0]).tolist():
        places = np.flatnonzero(lengths == width)
        taken = values if len(places) == len(values) else values.take(pa.array(places))
        fixed = taken.cast(pa.binary(width))
        data = np.frombuffer(fixed.buffers()[1], np.uint8)
        start = fixed.offset * width
        parts.append((width, places, data[start : start + len(places) * width].reshape(-1, width)))
    return parts


def _whole(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return array


def mask(array: Any) -> NDArray[np.bool_]:
    """A boolean Arrow array as numpy, null as false."""
    if array.null_count:
        array = array.fill_null(False)
    return np.asarray(array.to_numpy(zero_copy_only=False), bool)
