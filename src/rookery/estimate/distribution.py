"""How the rows of a column are spread over its values, as a cumulative share with steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.estimate.axis import Axis, Floats
from rookery.sketch.quantiles import Quantiles

_REPEATED = 2.0  # weights of one item: a value that has more is frequent in itself
_MOSTLY_KEPT = 0.5  # of the distinct values: then each item stands for its own value alone


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """At each place, the share of rows below it, and up to it; between places the share grows evenly."""

    places: Floats  # ascending, distinct
    below: Floats
    upto: Floats
    error: float  # of a share, at most, 99 % of the time
    source: str

    def share_below(self, places: Floats) -> Floats:
        """Return the share of rows below each place."""
        return self._at(places, self.below)

    def share_upto(self, places: Floats) -> Floats:
        """Return the share of rows up to each place."""
        return self._at(places, self.upto)

    def share_of(self, place: float) -> float:
        """Return the share of the rows that have one value, as far as it is frequent; else 0."""
        at = int(np.searchsorted(self.places, place))
        if at == len(self.places) or self.places[at] != place:
            return 0.0
        return float(self.upto[at] - self.below[at])

    def _at(self, places: Floats, steps: Floats) -> Floats:
        at = np.searchsorted(self.places, places)
        inside = np.minimum(at, len(self.places) - 1)
        left = np.maximum(at - 1, 0)
        with np.errstate(over="ignore", invalid="ignore"):  # of the greatest doubles
            width = np.maximum(self.places[inside] - self.places[left], np.finfo(float).tiny)
            part = np.nan_to_num(np.clip((places - self.places[left]) / width, 0.0, 1.0))
        between = self.upto[left] + part * (self.below[inside] - self.upto[left])
        result = np.where(self.places[inside] == places, steps[inside], between)
        result = np.where(places < self.places[0], 0.0, result)
        return np.asarray(np.where(places > self.places[-1], 1.0, result))


def from_quantiles(quantiles: Quantiles, axis: Axis, ndv: float | None) -> Distribution | None:
    """Return the distribution that a KLL sketch describes."""
    if quantiles.sketch.is_empty():
        return None
    items = [(item, weight) for item, weight in quantiles.sketch]
    weights = np.array([weight for _, weight in items], np.float64)
    if quantiles.text:
        places = axis.places(pa.array([item for item, _ in items], pa.large_binary()))
    else:
        places = np.array([item for item, _ in items], np.float64)
    low, high = _ends(quantiles, axis)
    places = np.concatenate([places, [low, high]])
    weights = np.concatenate([weights, [0.0, 0.0]])
    finite = np.isfinite(places)
    distinct, numbers = np.unique(places[finite], return_inverse=True)
    mass = np.bincount(numbers, weights[finite], len(distinct))
    if not mass.sum():
        return None
    whole = ndv is not None and len(distinct) >= _MOSTLY_KEPT * ndv
    frequent = mass >= _REPEATED * weights.max() if not whole else np.ones(len(mass), bool)
    return _stepped(distinct, mass / mass.sum(), frequent, quantiles.rank_error, "histogram")


def _ends(quantiles: Quantiles, axis: Axis) -> tuple[float, float]:
    low, high = quantiles.sketch.get_min_value(), quantiles.sketch.get_max_value()
    if quantiles.text:
        low, high = axis.places(pa.array([low, high], pa.large_binary()))
    return float(low), float(high)


def from_values(
    places: Floats, shares: Floats, rest: tuple[float, float], source: str
) -> Distribution | None:
    """Return the distribution of known values and their shares; *rest* is the range of all other values."""
    ends = [end for end in rest if np.isfinite(end)]
    everywhere = np.concatenate([places, ends])
    if not len(everywhere):
        return None
    distinct, numbers = np.unique(everywhere, return_inverse=True)
    mass = np.bincount(numbers, np.concatenate([shares, np.zeros(len(ends))]), len(distinct))
    others = max(1.0 - mass.sum(), 0.0)
    apart = distinct / 2 - distinct[0] / 2  # the greatest doubles are infinitely far apart
    spread = apart / apart[-1] if apart[-1] > 0 else np.ones(len(distinct))
    total = mass.sum() + others
    upto = (np.cumsum(mass) + others * spread) / total
    return Distribution(places=distinct, below=upto - mass / total, upto=upto, error=0.0, source=source)


def _stepped(
    places: Floats, mass: Floats, frequent: NDArray[np.bool_], error: float, source: str
) -> Distribution:
    """A step at frequent values; the others stand for those around them."""
    upto = np.cumsum(mass)
    below = upto - mass
    middle = (below + upto) / 2
    below, upto = np.where(frequent, below, middle), np.where(frequent, upto, middle)
    if not frequent[0]:
        below[0] = upto[0] = 0.0
    if not frequent[-1]:
        below[-1] = upto[-1] = 1.0
    return Distribution(places=places, below=below, upto=upto, error=error, source=source)
