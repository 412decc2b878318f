"""Quantiles of rows: a KLL sketch of Apache DataSketches over numbers, or over text.

Dates and times are taken as the numbers that Iceberg stores; other types cannot be drawn on a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import datasketches
import numpy as np
import pyarrow as pa

from rookery.model import IN_MEMORY, FormatError, Place
from rookery.sketch.serde import TextSerDe
from rookery.sketch.typing import base_type

KLL_K = 400  # a rank error of about 0.7 %
_NUMBERS, _TEXT = b"n", b"t"
_NUMERIC = {"int", "long", "float", "double", "decimal", "date", "time"}
_NUMERIC |= {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
SUPPORTED = frozenset(_NUMERIC | {"string"})


class QuantilesError(FormatError):
    """The payload is not a KLL sketch."""


@dataclass(frozen=True, eq=False, slots=True)
class Quantiles:
    """A KLL sketch, and whether it is of text."""

    sketch: Any
    text: bool

    @classmethod
    def empty(cls, type_name: str) -> Self:
        """Return the sketch of no rows of a column of that type."""
        text = base_type(type_name) == "string"
        return cls(
            datasketches.kll_items_sketch(KLL_K) if text else datasketches.kll_doubles_sketch(KLL_K), text
        )

    def with_values(self, array: pa.Array) -> Self:
        """Return the sketch with the values of an Arrow array added; nulls and NaN are passed over."""
        array = array.drop_null()
        added = self._copy()
        if self.text:
            for value in array.cast(pa.string()).to_pylist():
                added.update(value)
        elif len(array):
            added.update(_numbers(array))
        return type(self)(added, self.text)

    def merge(self, other: Quantiles) -> Self:
        """Return the sketch of both."""
        merged = self._copy()
        merged.merge(other.sketch)
        return type(self)(merged, self.text)

    def _copy(self) -> Any:
        copy = type(self.sketch)(KLL_K)
        copy.merge(self.sketch)
        return copy

    @property
    def count(self) -> int:
        """How many values it has seen."""
        return int(self.sketch.n)

    @property
    def rank_error(self) -> float:
        """How far off, as a share of all values, the rank of a quantile may be (99 % of the time)."""
        return float(self.sketch.normalized_rank_error(False))

    def at(self, ranks: Sequence[float]) -> list[Any]:
        """Return the values at these ranks, from 0 to 1."""
        return [] if self.sketch.is_empty() else list(self.sketch.get_quantiles(list(ranks)))

    def histogram(self, buckets: int) -> list[float]:
        """Return the share of values in each of *buckets* equal ranges between the least and the greatest."""
        if self.text or self.sketch.is_empty():
            return []
        low, high = self.sketch.get_min_value(), self.sketch.get_max_value()
        if low == high:
            return [1.0]
        edges = np.linspace(low, high, buckets + 1)[1:-1]
        return [float(share) for share in self.sketch.get_pmf(list(edges))]

    def encode(self) -> bytes:
        """Return the kind, then the bytes of DataSketches."""
        if self.text:
            return _TEXT + bytes(self.sketch.serialize(TextSerDe()))
        return _NUMBERS + bytes(self.sketch.serialize())

    @classmethod
    def decode(cls, payload: bytes, *, place: Place = IN_MEMORY) -> Self:
        """Read the bytes."""
        try:
            if payload[:1] == _TEXT:
                return cls(datasketches.kll_items_sketch.deserialize(payload[1:], TextSerDe()), True)
            if payload[:1] == _NUMBERS:
                return cls(datasketches.kll_doubles_sketch.deserialize(payload[1:]), False)
        except (ValueError, IndexError, RuntimeError, MemoryError) as error:
            raise QuantilesError(place, "a KLL sketch", str(error)) from error
        raise QuantilesError(place, "the kind of a KLL sketch", repr(payload[:1]))


def _numbers(array: pa.Array) -> np.ndarray:
    kind = array.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        array = array.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        array = array.cast(pa.int64())
    return np.array(array.cast(pa.float64(), safe=False))  # a copy: DataSketches takes no read-only array
