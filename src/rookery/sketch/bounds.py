"""Confidence bounds of a count that was sampled with a known probability."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

# The probability of being outside, on one side, at 1, 2 and 3 standard deviations.
_TAIL = {1: 0.15865525393145707, 2: 0.022750131948179195, 3: 0.0013498980316300933}
_GAUSSIAN_FROM = 121  # samples from which the normal approximation is as precise as the exact tail


def sampled_bounds(samples: int, probability: float, deviations: int = 2) -> tuple[float, float]:
    """Return the least and greatest population that *samples*, each kept with *probability*, may be of.

    >>> sampled_bounds(7, 1.0)
    (7.0, 7.0)
    """
    if probability >= 1.0:
        return float(samples), float(samples)
    estimate = samples / probability
    if samples >= _GAUSSIAN_FROM:
        low, high = _gaussian(samples, probability, deviations)
    else:
        low, high = _exact(samples, probability, _TAIL[deviations])
    return min(estimate, max(float(samples), low)), max(estimate, high)


def _gaussian(samples: int, probability: float, deviations: int) -> tuple[float, float]:
    """Solve (n·p - s)² = d²·n·p·(1-p) for n, with the continuity correction."""
    spread = deviations * math.sqrt((1.0 - probability) / probability)

    def solve(shifted: float, sign: int) -> float:
        centre = shifted / probability
        return centre + spread * spread / 2 + sign * spread / 2 * math.sqrt(spread * spread + 4 * centre)

    return solve(samples - 0.5, -1) - 0.5, solve(samples + 0.5, +1) + 0.5


def _exact(samples: int, probability: float, tail: float) -> tuple[float, float]:
    """Invert the binomial tails: the populations at which so few, or so many, become that unlikely."""
    if samples == 0:
        low = 0
    else:
        low = _first(lambda n: 1.0 - _at_most(samples - 1, n, probability) > tail, samples) - 1
    high = _first(lambda n: _at_most(samples, n, probability) < tail, samples)
    return float(max(low, samples)), float(high)


def _at_most(most: int, population: float, probability: float) -> float:
    """P(X ≤ most) for X binomial."""
    if population <= most:
        return 1.0
    counts = np.arange(most + 1, dtype=np.float64)
    # Term by term, as the difference of two lgamma of a large population is all rounding error.
    log_choose = np.zeros(most + 1)
    np.cumsum(np.log((population - counts[:-1]) / (counts[:-1] + 1)), out=log_choose[1:])
    logs = log_choose + counts * math.log(probability) + (population - counts) * math.log1p(-probability)
    return float(np.exp(logs).sum())


def _first(holds: Callable[[int], bool], start: int) -> int:
    """Return the least n >= start for which *holds*, which stays true from there on."""
    below, step = start - 1, 1
    while not holds(below + step):
        below += step
        step *= 2
    above = below + step
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above
