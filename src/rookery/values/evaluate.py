"""Walking a predicate: leaves are tested, AND and OR join; the rest is for the asker to judge."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rookery.model import Always, And, Leaf, Never, Opaque, Or, Predicate

Test = Callable[[Leaf], NDArray[np.bool_]]


def evaluate(
    predicate: Predicate, test: Test, count: int, opaque: Callable[[Opaque], bool] = lambda part: True
) -> NDArray[np.bool_]:
    """Return of which of *count* units the predicate holds, if its leaves do as *test* says.

    Where leaves say what may be true of some row, a part that is not understood may be too.
    """
    if isinstance(predicate, And):
        found = np.ones(count, bool)
        for part in predicate.parts:
            found &= evaluate(part, test, count, opaque)
        return found
    if isinstance(predicate, Or):
        found = np.zeros(count, bool)
        for part in predicate.parts:
            found |= evaluate(part, test, count, opaque)
        return found
    if isinstance(predicate, Opaque):
        return np.full(count, opaque(predicate))
    if isinstance(predicate, Always | Never):
        return np.full(count, isinstance(predicate, Always))
    return test(predicate)


def surely(predicate: Predicate, test: Test, count: int) -> NDArray[np.bool_]:
    """The same where leaves say what is true of every row: a part that is not understood is not."""
    return evaluate(predicate, test, count, lambda part: False)
