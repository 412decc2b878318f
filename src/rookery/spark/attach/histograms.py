"""Equi-height histograms of number columns, from the bounds of files and the quantile sketch of a column.

The values of a file are spread over its range: as those of the quantile sketch if the column has one, else
evenly. The histogram is that of all files together: it shows how a table is clustered even without a sketch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rookery.sketch.quantiles import Quantiles

Floats = NDArray[np.float64]

BINS = 254  # as many as Spark's own statistics have
_MOST_FILES = 4096  # more are sampled
_RANKS = np.linspace(0, 1, 4 * BINS + 1).tolist()  # of the sample that a sketch gives
_VALUES_PER_BIN = 4  # at least: bounds of files do not describe single values
_ALMOST_EVEN = 0.02  # a difference of ranks that makes no difference to a plan
_ROUNDS = 4  # in which distinct values that do not fit a bin are given to others


@dataclass(frozen=True, slots=True)
class Histogram:
    """Bins of equal rows: between each edge and the next one, with the number of distinct values."""

    edges: Floats
    ndvs: NDArray[np.int64]

    def plain(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"edges": self.edges.tolist(), "ndvs": self.ndvs.tolist()}


def histogram(
    lower: Floats, upper: Floats, rows: Floats, quantiles: Quantiles | None, *, ndv: int, whole: bool
) -> Histogram | None:
    """Return the histogram of files with these bounds and rows; None if it would show an even distribution.

    *ndv* is the number of distinct values of all of them, *whole* whether they are whole numbers.
    """
    if len(rows) > _MOST_FILES:
        chosen = np.linspace(0, len(rows) - 1, _MOST_FILES).astype(np.int64)
        lower, upper, rows = lower[chosen], upper[chosen], rows[chosen]
    low, high = float(lower.min()), float(upper.max())
    if not (ndv > 1 and 0 < high - low < np.inf and rows.sum() > 0):
        return None
    sample = _sample(quantiles)
    if sample is None:
        edges = _even_edges(lower, upper, rows, min(BINS, max(ndv // _VALUES_PER_BIN, 1)))
    else:
        edges = _sampled_edges(lower, upper, rows, sample)
    if edges is None:
        return None
    edges[0], edges[-1] = low, high
    return Histogram(edges, _ndvs(edges, ndv, float(rows.sum()) / (len(edges) - 1), whole))


def _sample(quantiles: Quantiles | None) -> Floats | None:
    """Values of the column at evenly spaced ranks, a frequent one several times."""
    if quantiles is None or quantiles.text or not quantiles.count:
        return None
    values = np.array([float(value) for value in quantiles.at(_RANKS)])
    return np.sort(values) if np.isfinite(values).all() else None


def _sampled_edges(lower: Floats, upper: Floats, rows: Floats, sample: Floats) -> Floats:
    """The edges if the rows of a file are those values of the sample that are in its range."""
    outside = np.searchsorted(sample, lower, "left") == np.searchsorted(sample, upper, "right")
    sample = np.sort(np.concatenate([sample, lower[outside], upper[outside]]))
    start, end = np.searchsorted(sample, lower, "left"), np.searchsorted(sample, upper, "right")
    weight = rows / (end - start)
    changes = np.zeros(len(sample) + 1)
    np.add.at(changes, start, weight)
    np.subtract.at(changes, end, weight)
    reached = np.cumsum(np.maximum(np.cumsum(changes[:-1]), 0))
    wanted = np.linspace(0, 1, BINS + 1) * reached[-1]
    return np.asarray(sample[np.minimum(np.searchsorted(reached, wanted), len(sample) - 1)])


def _even_edges(lower: Floats, upper: Floats, rows: Floats, bins: int) -> Floats | None:
    """The edges if the rows of a file are spread evenly over its range; None if those of all files are."""
    points = np.unique(np.concatenate([lower, upper]))
    start, end = np.searchsorted(points, lower), np.searchsorted(points, upper)
    single = start == end
    slope, steps = np.zeros(len(points)), np.zeros(len(points))
    density = np.divide(rows, upper - lower, out=np.zeros_like(rows), where=~single)
    np.add.at(slope, start, density)
    np.subtract.at(slope, end, density)
    np.add.at(steps, start[single], rows[single])
    between = np.concatenate([[0.0], np.cumsum(slope)[:-1] * np.diff(points)])
    reached = np.cumsum(between + steps)
    # Each point twice: before and after the rows that are at this point alone.
    ranks = np.maximum.accumulate(np.column_stack([reached - steps, reached]).ravel() / reached[-1])
    values = np.repeat(points, 2)
    even = (values - points[0]) / (points[-1] - points[0])
    if np.abs(even - ranks).max() < _ALMOST_EVEN:
        return None
    return np.asarray(np.interp(np.linspace(0, 1, bins + 1), ranks, values))


def _ndvs(edges: Floats, ndv: int, height: float, whole: bool) -> NDArray[np.int64]:
    """The distinct values of each bin: by its width, and no more than it has rows or whole numbers."""
    width = np.diff(edges)
    most = np.where(width > 0, max(height, 1.0), 1.0)
    if whole:
        most = np.minimum(most, np.floor(width) + 1)
    ndvs = np.ones(len(width))
    left = ndv - ndvs[width > 0].sum() - 1
    for _ in range(_ROUNDS):
        room = most - ndvs
        weight = np.where(room > 0, width, 0.0)
        if left < 1 or weight.sum() <= 0:
            break
        added = np.minimum(weight / weight.sum() * left, room)
        ndvs += added
        left -= added.sum()
    return np.maximum(np.rint(ndvs), 1).astype(np.int64)
