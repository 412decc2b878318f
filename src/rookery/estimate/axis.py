"""Values as places on a line of floats, so that shares of ranges can be computed on arrays.

Numbers, days and times are placed as they are; text by its bytes after the common beginning of all bounds, as
digits of the characters that occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.estimate.regions import Key
from rookery.model.type_names import base_type, scale_of
from rookery.values.canonical import form_of, is_float

Floats = NDArray[np.float64]

_DIGITS = 12  # bytes of a text that are placed; more would be lost in a double
_CLASSES = ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))  # digits, capitals, small letters
_SAMPLE = 2000  # values from which the characters are learned


@dataclass(frozen=True, slots=True)
class Axis:
    """How the values of a column are placed."""

    unit: float  # the least distance of two values; 0 if there is none
    scale: float = 1.0  # of decimals: what a predicate's value is divided by
    text: TextDigits | None = None

    def place(self, key: Key) -> float:
        """Return the place of a predicate's value."""
        if self.text is not None:
            return float(self.text.places(pa.array([key], pa.large_binary()))[0])
        return float(key) / self.scale

    def places(self, values: pa.Array) -> Floats:
        """Return the places of values in their type's form; NaN for null."""
        if self.text is not None:
            return self.text.places(values)
        numbers = values.cast(pa.float64(), safe=False) if values.type != pa.float64() else values
        return np.asarray(numbers.fill_null(np.nan).to_numpy(zero_copy_only=False), np.float64)


@dataclass(frozen=True, slots=True)
class TextDigits:
    """Text as the digits of a number between 0 and 1, after a common prefix."""

    prefix: bytes
    lowest: int
    highest: int

    @classmethod
    def of(cls, values: pa.Array) -> TextDigits:
        """Learn the prefix and the characters from values in their form, such as bounds."""
        known = values.drop_null()
        if not len(known):
            return cls(b"", 0, 255)
        ends = pc.min_max(known).as_py()
        prefix = commonprefix([ends["min"], ends["max"]])  # noqa: RUF071  # not of paths
        step = max(len(known) // _SAMPLE, 1)
        sample = known.take(pa.array(np.arange(0, len(known), step))).to_pylist()
        used = np.frombuffer(b"".join(v[len(prefix) : len(prefix) + _DIGITS] for v in sample), np.uint8)
        if not len(used):
            return cls(prefix, 0, 255)
        lowest, highest = int(used.min()), int(used.max())
        for low, high in _CLASSES:  # of a class that occurs, all characters may
            if ((used >= low) & (used <= high)).any():
                lowest, highest = min(lowest, low), max(highest, high)
        return cls(prefix, lowest, highest)

    def places(self, values: pa.Array) -> Floats:
        """Return the place of each value; NaN for null."""
        start = len(self.prefix)
        known = values.fill_null(b"")
        digits = self._matrix(known, start)
        base = self.highest - self.lowest + 2.0  # 0 is the end of the text
        weights = base ** -np.arange(1, _DIGITS + 1)
        result = (digits * weights).sum(axis=1)  # a matrix product rounds by the number of rows
        if start:
            heads = pc.binary_slice(known.cast(pa.binary()), 0, start)
            result = np.where(_mask(pc.less(heads, self.prefix)), 0.0, result)
            result = np.where(_mask(pc.greater(heads, self.prefix)), 1.0, result)
        return np.where(_mask(values.is_null()), np.nan, result)

    def _matrix(self, values: pa.Array, start: int) -> Floats:
        cut = pc.binary_slice(values.cast(pa.binary()), start, start + _DIGITS)
        lengths = pc.binary_length(cut).to_numpy(zero_copy_only=False).astype(np.int64)
        data = np.frombuffer(b"".join(cut.to_pylist()), np.uint8).astype(np.float64)
        matrix = np.zeros((len(cut), _DIGITS))
        rows = np.repeat(np.arange(len(cut)), lengths)
        offsets = np.repeat(np.cumsum(lengths) - lengths, lengths)
        matrix[rows, np.arange(len(data)) - offsets] = (
            np.clip(data, self.lowest, self.highest) - self.lowest + 1
        )
        return matrix


def axis_of(type_name: str, samples: Sequence[pa.Array]) -> Axis:
    """Return how a column's values are placed; *samples* are values in their form, such as bounds."""
    kind = base_type(type_name)
    if pa.types.is_large_binary(form_of(type_name)):
        known = pa.concat_arrays([array.cast(pa.large_binary()) for array in samples])
        return Axis(0.0, text=TextDigits.of(known))
    if kind == "decimal":
        scale = 10.0 ** scale_of(type_name)
        return Axis(1 / scale, scale)
    return Axis(0.0 if is_float(kind) else 1.0)


def _mask(array: Any) -> NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), bool)
