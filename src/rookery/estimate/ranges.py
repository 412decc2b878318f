"""Rows of each file whose value is in a range: by its bounds, and by how the column's values are spread."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rookery.estimate.axis import Floats
from rookery.estimate.distribution import Distribution
from rookery.estimate.known import KnownColumn
from rookery.estimate.regions import Cut, Interval

RANGE_SHARE = 1 / 3  # of a range in a file of which nothing is known
_COARSE = 3.0  # errors of a rank: a file with less than that of all rows is below what a sketch resolves
_TINY, _MOST = float(np.finfo(float).tiny), float(np.finfo(float).max)
_PARTS = 4  # distances of the greatest doubles are infinite, those of their quarters are not
_ON_GRID = 1e-6


def range_rows(column: KnownColumn, interval: Interval) -> tuple[Floats, str]:
    """Return about how many rows of each file are in a range, and the source of that number."""
    lower, upper = column.lower, column.upper
    known = np.isfinite(lower) & np.isfinite(upper)
    start, end = _place(column, interval.start), _place(column, interval.end)
    inside = known & _not_after(start, lower, interval.start) & _not_before(end, upper, interval.end)
    outside = known & ((lower > end) | (upper < start))
    share = np.where(inside, 1.0, 0.0)
    source = "partitions" if (column.by_partition | (column.values == 0)).all() else "bounds"
    left = np.flatnonzero(~inside & ~outside)
    if len(left):
        share[left], source = _shares(column, interval, left)
    return share * column.values, source


def _place(column: KnownColumn, cut: Cut) -> float:
    if len(cut) == 1:
        return float(cut[0]) * np.inf
    return column.axis.place(cut[1])


def _not_after(start: float, lower: Floats, cut: Cut) -> NDArray[np.bool_]:
    return np.asarray((start < lower) if len(cut) > 1 and cut[2] else (start <= lower))


def _not_before(end: float, upper: Floats, cut: Cut) -> NDArray[np.bool_]:
    return np.asarray((end > upper) if len(cut) > 1 and not cut[2] else (end >= upper))


def _shares(column: KnownColumn, interval: Interval, files: NDArray[np.int64]) -> tuple[Floats, str]:
    """The shares of files that are partly in the range."""
    lower, upper = column.lower[files], column.upper[files]
    known = np.isfinite(lower) & np.isfinite(upper)
    low, high = column.ends
    lower, upper = np.where(known, lower, low), np.where(known, upper, high)
    distribution = column.distribution
    if distribution is None and not np.isfinite(low):
        return np.full(len(files), RANGE_SHARE), "default"
    if distribution is None:
        return _even(column, interval, lower, upper, column.values[files]), "bounds"
    if not np.isfinite(low):
        return np.full(len(files), _share_of_all(distribution, column, interval)), distribution.source
    part, whole = _masses(distribution, column, interval, lower, upper)
    resolved = whole > _COARSE * distribution.error
    by_sketch = part / np.maximum(whole, _TINY)
    if resolved.all():
        return np.clip(by_sketch, 0.0, 1.0), distribution.source
    even = _even(column, interval, lower, upper, column.values[files])
    source = distribution.source if resolved.any() else "bounds"
    return np.clip(np.where(resolved, by_sketch, even), 0.0, 1.0), source


def _masses(
    distribution: Distribution, column: KnownColumn, interval: Interval, lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """The shares of all rows between a file's bounds: in the range, and at all."""
    below, upto = distribution.share_below(lower), distribution.share_upto(upper)
    start = _mass(distribution, column, interval.start)
    end = _mass(distribution, column, interval.end)
    part = np.minimum(upto, end) - np.maximum(below, start)
    return np.maximum(part, 0.0), np.maximum(upto - below, 0.0)


def _mass(distribution: Distribution, column: KnownColumn, cut: Cut) -> float:
    if len(cut) == 1:
        return 0.0 if cut[0] < 0 else 1.0
    place = np.array([column.axis.place(cut[1])])
    return float((distribution.share_upto if cut[2] else distribution.share_below)(place)[0])


def _share_of_all(distribution: Distribution, column: KnownColumn, interval: Interval) -> float:
    return max(_mass(distribution, column, interval.end) - _mass(distribution, column, interval.start), 0.0)


def share_of_all(column: KnownColumn, interval: Interval) -> float | None:
    """Return the share of all values in a range, as sketches know it."""
    if column.distribution is None:
        return None
    return _share_of_all(column.distribution, column, interval)


def _even(column: KnownColumn, interval: Interval, lower: Floats, upper: Floats, values: Floats) -> Floats:
    """Shares as if the values of each file were spread evenly between its bounds."""
    start = _edge(column, interval.start)
    end = _edge(column, interval.end)
    step = max(_step(column, start) if np.isfinite(start) else _step(column, end), column.axis.unit)
    lower, upper = lower / _PARTS, upper / _PARTS
    start, end, step = (each / _PARTS for each in (start, end, step))
    width = upper - lower + step
    overlap = np.minimum(upper + step, end) - np.maximum(lower, start)
    single = width <= 0
    share = np.where(single, 1.0, np.clip(overlap / np.where(single, 1.0, width), 0.0, 1.0))
    if column.axis.text is not None and column.ndv is not None and column.ndv.value >= 1:
        # Texts are not spread evenly; a range that is asked for has one of them at least.
        share = np.maximum(share, min(1 / column.ndv.value, 1.0))
    if column.axis.text is not None:  # their bounds may be shortened
        return share
    # Two of the values are the bounds. If there are few, the others alone would be too few near the ends.
    few = (values >= 2) & (values * step < width)
    ends = sum(((bound >= start) & (bound < end)).astype(np.float64) for bound in (lower, upper))
    return np.where(few, (ends + (values - 2) * share) / np.maximum(values, 1.0), share)


def _edge(column: KnownColumn, cut: Cut) -> float:
    """Where a range begins or ends, if each value takes the place up to the next one."""
    if len(cut) == 1:
        return float(cut[0]) * np.inf
    place = column.axis.place(cut[1])
    return place + (max(_step(column, place), column.axis.unit) if cut[2] else 0.0)


def _step(column: KnownColumn, place: float) -> float:
    """The distance of distinct values if they are evenly spaced and *place* is one of them, else 0."""
    low, high = column.ends
    if column.ndv is None or column.ndv.value < 2 or not high > low:
        return 0.0
    step = (high / _PARTS - low / _PARTS) / (column.ndv.value - 1)
    steps = float(np.divide(place / _PARTS - low / _PARTS, step)) if step > 0 else math.inf
    if not math.isfinite(steps) or abs(steps - round(steps)) >= _ON_GRID * max(abs(steps), 1.0):
        return 0.0
    return float(min(step, _MOST / _PARTS) * _PARTS)
