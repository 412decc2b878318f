"""Q-errors, and how those of one estimator compare with those of another."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.estimate.data import Estimated
from benchmarks.estimate.filters import filters

PERCENTILES = range(1, 100)
_SAME = 1.001  # a factor between q-errors that is a difference of rounding

Estimator = Callable[[str], float]
"""Returns the estimated rows of a filter."""


@dataclass(frozen=True)
class Asked:
    """Filters of a table, and how many rows match each of them."""

    table: Estimated
    wheres: tuple[str, ...]
    truth: tuple[int, ...]

    @classmethod
    def of(cls, table: Estimated, wheres: Sequence[str]) -> Asked:
        """Count with DuckDB."""
        return cls(table, tuple(wheres), tuple(table.true_counts(wheres)))

    @classmethod
    def generated(cls, table: Estimated, count: int) -> Asked:
        """The same filters in each run."""
        return cls.of(table, filters(table.filtered, random.Random(1), count))

    def estimates(self, estimator: Estimator) -> list[float]:
        return [estimator(where) for where in self.wheres]

    def errors(self, estimator: Estimator) -> list[float]:
        """The q-errors in ascending order."""
        return sorted(q_errors(self.estimates(estimator), self.truth))


def q_errors(estimates: Sequence[float], truth: Sequence[int]) -> list[float]:
    """Return by which factor each estimate is off; less than one row counts as one."""
    known = zip((max(each, 1.0) for each in estimates), (max(each, 1) for each in truth), strict=True)
    return [max(about / true, true / about) for about, true in known]


def quantile(ascending: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    return ascending[min(int(share * len(ascending)), len(ascending) - 1)]


def percentiles(ascending: Sequence[float]) -> list[float]:
    """Return the values at the percentiles from 1 to 99."""
    return [round(quantile(ascending, percent / 100), 4) for percent in PERCENTILES]


def worse_percentiles(ours: Sequence[float], theirs: Sequence[float]) -> int:
    """Return at how many percentiles the errors of another estimator are smaller.

    >>> worse_percentiles([1, 1, 2, 5], [1, 1, 3, 4])
    25
    """
    pairs = zip(percentiles(ours), percentiles(theirs), strict=True)
    return sum(our > their * _SAME for our, their in pairs)


def empty_estimates(estimates: Sequence[float], truth: Sequence[int]) -> int:
    """Return how many filters are estimated to match no rows, and match some."""
    return sum(about < 1 <= true for about, true in zip(estimates, truth, strict=True))
