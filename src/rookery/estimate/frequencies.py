"""The frequent values of a column, as a sketch knows them, in the form in which predicates are tested."""

from __future__ import annotations

from dataclasses import dataclass

import datasketches
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.estimate.axis import Floats
from rookery.model.schema import Primitive
from rookery.model.type_names import base_type
from rookery.read.types import arrow_type
from rookery.sketch.frequent import Frequent
from rookery.values.canonical import form_of, from_rows

_HEX = frozenset({"binary", "fixed", "uuid"})


@dataclass(frozen=True, slots=True, eq=False)
class Frequencies:
    """Values with how often each was seen; a value that is not among them was seen at most *error* times."""

    values: pa.Array  # in their type's form
    counts: Floats
    low: Floats
    high: Floats
    error: float
    seen: int  # values that are not null

    @property
    def is_complete(self) -> bool:
        """Whether every value that was seen is among them, with its exact count."""
        return self.error == 0

    @property
    def rest(self) -> float:
        """How many of the values seen are other values."""
        return max(self.seen - float(self.counts.sum()), 0.0)


def frequencies_of(type_name: str, frequent: Frequent) -> Frequencies | None:
    """Return the values of a sketch; None if they cannot be read back from their text."""
    kind = datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES
    items = frequent.sketch.get_frequent_items(kind)
    if not items:
        return None
    try:
        values = _from_text(type_name, [bytes(item[0]) for item in items])
    except (pa.ArrowException, ValueError):
        return None
    low = np.array([item[2] for item in items], np.float64)
    high = np.array([item[3] for item in items], np.float64)
    error = float((high - low).max())
    # A value that was counted from the start on has lost the whole error, a late one nothing.
    counts = low + (high - low) * low / np.maximum(high, 1.0)
    return Frequencies(values=values, counts=counts, low=low, high=high, error=error, seen=frequent.count)


def _from_text(type_name: str, texts: list[bytes]) -> pa.Array:
    if type_name == "string":
        return pa.array(texts, pa.large_binary())
    if base_type(type_name) in _HEX:
        return pa.array([bytes.fromhex(text.decode()) for text in texts], form_of(type_name))
    arrow = arrow_type(Primitive(type_name))
    if arrow is None:
        raise ValueError(f"no type of Arrow: {type_name}")
    return from_rows(type_name, pa.array([text.decode() for text in texts], pa.string()).cast(arrow))


def matching(frequencies: Frequencies, is_true: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return how often values were seen of which a predicate is true: about, at least, at most."""
    return (
        float(frequencies.counts[is_true].sum()),
        float(frequencies.low[is_true].sum()),
        float(frequencies.high[is_true].sum()),
    )
