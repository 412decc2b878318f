"""Numbers that carry their certainty."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    """How a number came about."""

    EXACT = "exact"
    SKETCHED = "sketched"
    STALE = "stale"  # of rows that have all changed since


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value between its bounds.

    >>> Estimate.exact(7)
    Estimate(value=7, low=7, high=7, kind=<Certainty.EXACT: 'exact'>)
    """

    value: float
    low: float
    high: float
    kind: Certainty

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """Return a number that is known for certain."""
        return cls(value, value, value, Certainty.EXACT)
