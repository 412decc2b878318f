"""The most frequent values of rows: a frequent-items sketch of Apache DataSketches, over values as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import datasketches
import pyarrow as pa
import pyarrow.compute as pc

from rookery.model import IN_MEMORY, Certainty, Estimate, FormatError, Place
from rookery.model.text import escaped
from rookery.sketch.serde import Key, KeySerDe

LG_MAX = 12  # values whose share is above about 0.1 % are found


class FrequentError(FormatError):
    """The payload is not a frequent-items sketch."""


@dataclass(frozen=True, eq=False, slots=True)
class Frequent:
    """A sketch of how often values occur."""

    sketch: Any

    @classmethod
    def empty(cls) -> Self:
        """Return the sketch of no rows."""
        return cls(datasketches.frequent_items_sketch(LG_MAX))

    def with_values(self, array: pa.Array) -> Self:
        """Return the sketch with the values of an Arrow array added; nulls are passed over."""
        added = self._copy()
        counts = array.drop_null().value_counts()
        values = as_text(counts.field("values")).to_pylist()
        for value, count in zip(values, counts.field("counts").to_pylist(), strict=True):
            added.update(Key(value), count)
        return type(self)(added)

    def merge(self, other: Frequent) -> Self:
        """Return the sketch of both."""
        merged = self._copy()
        merged.merge(other.sketch)
        return type(self)(merged)

    def _copy(self) -> Any:
        return datasketches.frequent_items_sketch.deserialize(self.encode(), KeySerDe())

    @property
    def count(self) -> int:
        """How many values it has seen."""
        return int(self.sketch.total_weight)

    def top(self, most: int) -> list[tuple[str, Estimate]]:
        """Return the values that are surely frequent, most frequent first, with their counts."""
        kind = datasketches.frequent_items_error_type.NO_FALSE_POSITIVES
        items = self.sketch.get_frequent_items(kind)
        estimates = [
            (bytes(value), Estimate(about, low, high, Certainty.EXACT if low == high else Certainty.SKETCHED))
            for value, about, low, high in items
        ]
        estimates.sort(key=lambda item: (-item[1].value, item[0]))
        return [(escaped(value), count) for value, count in estimates[:most]]

    def encode(self) -> bytes:
        """Return the bytes of DataSketches."""
        return bytes(self.sketch.serialize(KeySerDe()))

    @classmethod
    def decode(cls, payload: bytes, *, place: Place = IN_MEMORY) -> Self:
        """Read the bytes."""
        try:
            return cls(datasketches.frequent_items_sketch.deserialize(payload, KeySerDe()))
        except (ValueError, IndexError, RuntimeError, MemoryError) as error:
            raise FrequentError(place, "a frequent-items sketch", str(error)) from error


def as_text(array: pa.Array) -> pa.Array:
    """Return values as the bytes of text: ISO dates and times, digits for numbers, hexadecimal for bytes."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([value.hex().encode() for value in array.to_pylist()], pa.large_binary())
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return (array if text else pc.cast(array, pa.string())).cast(pa.large_binary())
