"""Quantiles of rows: a KLL sketch of Apache DataSketches over numbers, or over text.

Dates and times are taken as the numbers that Iceberg stores; other types have no numeric order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Self

import datasketches
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.model import IN_MEMORY, FormatError, Place
from rookery.model.text import escaped
from rookery.model.type_names import base_type
from rookery.sketch.serde import TextSerDe

KLL_K = 400  # a rank error of about 0.7 %
_NUMBERS, _TEXT, _WITH_ENDS = b"n", b"t", b"e"
_LENGTH_SIZE = 2
_NUMERIC = {"int", "long", "float", "double", "decimal", "date", "time"}
_NUMERIC |= {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
SUPPORTED = frozenset(_NUMERIC | {"string"})


class QuantilesError(FormatError):
    """The payload is not a KLL sketch."""


@dataclass(frozen=True, eq=False, slots=True)
class Quantiles:
    """A KLL sketch, whether it is of text, and the ends if doubles cannot represent them."""

    sketch: Any
    text: bool
    low: Decimal | None = None  # of whole numbers, times and decimals
    high: Decimal | None = None

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
            for value in array.cast(pa.large_binary()).to_pylist():  # whose order is that of text
                added.update(value)
            return type(self)(added, True)
        array = _stored(array)
        if not len(array):
            return self
        # A copy: DataSketches does not accept read-only arrays.
        added.update(np.array(array.cast(pa.float64(), safe=False)))
        if pa.types.is_floating(array.type):
            return type(self)(added, False)
        return type(self)(added, False, *self._ends(*map(Decimal, pc.min_max(array).as_py().values())))

    def merge(self, other: Quantiles) -> Self:
        """Return the sketch of both."""
        merged = self._copy()
        merged.merge(other.sketch)
        return type(self)(merged, self.text, *self._ends(other.low, other.high))

    def _ends(self, low: Decimal | None, high: Decimal | None) -> tuple[Decimal | None, Decimal | None]:
        """The ends of this sketch and of another; those of an empty one are none."""
        lows = [end for end in (self.low, low) if end is not None]
        highs = [end for end in (self.high, high) if end is not None]
        return min(lows, default=None), max(highs, default=None)

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

    @property
    def ends(self) -> tuple[Any, Any] | None:
        """The least and the greatest value; None if there are none."""
        if self.sketch.is_empty():
            return None
        if self.low is not None:
            return self.low, self.high
        low, high = self.sketch.get_min_value(), self.sketch.get_max_value()
        return (escaped(low), escaped(high)) if self.text else (low, high)

    def at(self, ranks: Sequence[float]) -> list[Any]:
        """Return the values at these ranks, from 0 to 1; at 0 and 1, the least and the greatest."""
        if self.ends is None:
            return []
        # DataSketches returns for the ranks 0 and 1 the least and greatest value that it has retained.
        low, high = self.ends
        exact = {0.0: low, 1.0: high}
        values = self.sketch.get_quantiles(list(ranks))
        if self.text:
            return [exact.get(rank, escaped(value)) for rank, value in zip(ranks, values, strict=True)]
        return [
            exact.get(rank, min(max(value, low), high)) for rank, value in zip(ranks, values, strict=True)
        ]

    def histogram(self, buckets: int) -> list[float]:
        """Return the share of values in each of *buckets* equal ranges between the least and the greatest.

        None where these are infinitely far apart.
        """
        if self.text or self.sketch.is_empty():
            return []
        low, high = self.sketch.get_min_value(), self.sketch.get_max_value()
        if low == high:
            return [1.0]
        if not np.isfinite([low, high]).all():
            return []
        steps = np.arange(1, buckets) / buckets
        edges, places = np.unique(low * (1 - steps) + high * steps, return_inverse=True)
        below = np.array(self.sketch.get_cdf(list(edges)))[places]  # narrow ranges share an edge
        return [float(share) for share in np.diff(below, prepend=0.0, append=1.0)]

    def encode(self) -> bytes:
        """Return the kind, then the bytes of DataSketches."""
        if self.text:
            return _TEXT + bytes(self.sketch.serialize(TextSerDe()))
        if self.low is None:
            return _NUMBERS + bytes(self.sketch.serialize())
        ends = json.dumps([str(self.low), str(self.high)]).encode()
        return _WITH_ENDS + len(ends).to_bytes(_LENGTH_SIZE, "little") + ends + bytes(self.sketch.serialize())

    @classmethod
    def decode(cls, payload: bytes, *, place: Place = IN_MEMORY) -> Self:
        """Read the bytes."""
        kind, rest = payload[:1], payload[1:]
        try:
            if kind == _TEXT:
                return cls(datasketches.kll_items_sketch.deserialize(rest, TextSerDe()), True)
            if kind == _NUMBERS:
                return cls(datasketches.kll_doubles_sketch.deserialize(rest), False)
            if kind == _WITH_ENDS:
                size = _LENGTH_SIZE + int.from_bytes(rest[:_LENGTH_SIZE], "little")
                low, high = (Decimal(end) for end in json.loads(rest[_LENGTH_SIZE:size]))
                return cls(datasketches.kll_doubles_sketch.deserialize(rest[size:]), False, low, high)
        except (ValueError, TypeError, IndexError, RuntimeError, MemoryError, InvalidOperation) as error:
            raise QuantilesError(place, "a KLL sketch", str(error)) from error
        raise QuantilesError(place, "the kind of a KLL sketch", repr(kind))


def _stored(array: pa.Array) -> pa.Array:
    """Dates and times as the numbers that Iceberg stores."""
    kind = array.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return array.cast(pa.int32())
    return array.cast(pa.int64()) if pa.types.is_temporal(kind) else array
