"""Numbers that carry their certainty."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    """How a number was obtained."""

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


def describe(estimate: Estimate) -> str:
    """Format an estimate as text.

    >>> describe(Estimate.exact(7)), describe(Estimate(10.4, 8.2, 12.9, Certainty.SKETCHED))
    ('7 exactly', 'about 10, between 8 and 13')
    """
    if estimate.kind is Certainty.EXACT:
        return f"{estimate.value:,.0f} exactly"
    return f"about {estimate.value:,.0f}, between {estimate.low:,.0f} and {estimate.high:,.0f}"
