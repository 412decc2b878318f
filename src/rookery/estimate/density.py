"""How often one value of many occurs, by how dense the rows are around it.

Values lie on a grid: whole numbers, days, cents. If a histogram implies as many distinct values of a grid as
there are, the rows around a value show how many have it.
"""

from __future__ import annotations

import math

import numpy as np

from rookery.estimate.axis import Floats
from rookery.estimate.distribution import Distribution
from rookery.estimate.known import KnownColumn

_GRIDS = (1.0, 0.1, 0.01, 0.001)  # of columns whose type has none
_CLOSE = 1.25  # between the number of distinct values that a grid implies, and the number that there is
_MANY = 1e300  # cells; of infinitely many, none could be counted
_AROUND = 8  # places of a histogram on either side


def share_by_density(column: KnownColumn, place: float) -> float | None:
    """Return the share of the rows that have a value, if the grid of values is known; else None."""
    distribution, ndv = column.distribution, column.ndv
    if distribution is None or ndv is None or distribution.source != "histogram" or column.axis.text:
        return None
    rows = float(column.values.sum())
    grid = _grid(column, distribution, ndv.value, rows)
    if grid is None:
        return None
    at = int(np.searchsorted(distribution.places, place))
    first, last = max(at - _AROUND, 0), min(at + _AROUND, len(distribution.places) - 1)
    width = float(distribution.places[last]) - float(distribution.places[first])
    mass = float(distribution.below[last] - distribution.upto[first])
    inside = slice(first + 1, last)
    mass -= float((distribution.upto[inside] - distribution.below[inside]).sum())
    if width <= 0 or mass <= 0:
        return None
    expected = rows * mass * grid / width
    if expected <= 0:  # of doubles that are too far apart
        return None
    return expected / -math.expm1(-expected) / rows  # of a value that occurs at all


def _grid(column: KnownColumn, distribution: Distribution, ndv: float, rows: float) -> float | None:
    """The distance of adjacent values that implies about as many distinct values as there are."""
    grids = (column.axis.unit,) if column.axis.unit else _GRIDS
    implied = {grid: _distinct(distribution, grid, rows) for grid in grids}
    best = min(implied, key=lambda grid: abs(math.log(max(implied[grid], 1.0) / max(ndv, 1.0))))
    return best if ndv / _CLOSE <= implied[best] <= ndv * _CLOSE else None


def _distinct(distribution: Distribution, grid: float, rows: float) -> float:
    """How many distinct values there would be on a grid."""
    mass: Floats = np.maximum(distribution.below[1:] - distribution.upto[:-1], 0.0) * rows
    with np.errstate(over="ignore"):  # of the greatest doubles
        cells = np.clip(np.diff(distribution.places) / grid, 1.0, _MANY)
    return float((cells * -np.expm1(-mass / cells)).sum() + (distribution.upto > distribution.below).sum())
