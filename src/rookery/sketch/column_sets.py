"""Column sets: the values of several columns together, as one value a row.

Each column's value is hashed to 64 bits, and the concatenated hashes of a row are the value of
the column set. Rows in which any of the columns is null are not counted, as in SQL's `count(distinct a, b)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.murmur import hash_bytes
from rookery.sketch.values import in_one_form, no_view


@njit(cache=True, nogil=True)
def _hash_fixed(data: np.ndarray, start: int, count: int, width: int, out: np.ndarray) -> None:
    for i in range(count):
        out[i] = hash_bytes(data, start + width * i, width)


@njit(cache=True, nogil=True)
def _hash_offsets(data: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(offsets) - 1):
        out[i] = hash_bytes(data, offsets[i], offsets[i + 1] - offsets[i])


def add_joint(builder: ThetaBuilder, types: Sequence[str], columns: Sequence[pa.Array]) -> None:
    """Add the rows of *columns*, which are of equal length and of these Iceberg types."""
    columns = [no_view(column) for column in columns]
    whole = columns[0].is_valid()
    for column in columns[1:]:
        whole = pc.and_(whole, column.is_valid())
    kept = [column.filter(whole) for column in columns]
    if not len(kept[0]):
        return
    rows = np.empty((len(kept[0]), len(kept)), np.uint64)
    for number, (kind, column) in enumerate(zip(types, kept, strict=True)):
        rows[:, number] = value_hashes(in_one_form(kind, column))
    builder.add_fixed(rows.view(np.uint8).reshape(-1), 0, len(rows), 8 * len(kept))


def value_hashes(array: pa.Array) -> NDArray[np.uint64]:
    """Return a hash of each value of an array without nulls; equal values of one type have equal hashes."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    out = np.empty(len(array), np.uint64)
    if _is_variable(array.type):
        array = array.cast(pa.large_binary())
        _, offsets, data = array.buffers()
        bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        values = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        _hash_offsets(values, bounds, out)
    else:
        width = array.type.bit_width // 8
        _hash_fixed(np.frombuffer(array.buffers()[1], np.uint8), array.offset * width, len(array), width, out)
    return out


def _is_variable(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_string_view,
            pa.types.is_binary_view,
        )
    )
