"""Evaluating a predicate: leaves are tested, AND and OR combine; the caller decides the rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rookery.model import Always, And, Leaf, Never, Opaque, Or, Predicate

Test = Callable[[Leaf], NDArray[np.bool_]]


def evaluate(
    predicate: Predicate, test: Test, count: int, opaque: Callable[[Opaque], bool] = lambda part: True
) -> NDArray[np.bool_]:
    """Return for which of *count* units the predicate is true, with its leaves decided by *test*.

    If *test* returns what may be true of some row, an opaque part may be true too.
    """
    if isinstance(predicate, And):
        result = np.ones(count, bool)
        for part in predicate.parts:
            result &= evaluate(part, test, count, opaque)
        return result
    if isinstance(predicate, Or):
        result = np.zeros(count, bool)
        for part in predicate.parts:
            result |= evaluate(part, test, count, opaque)
        return result
    if isinstance(predicate, Opaque):
        return np.full(count, opaque(predicate))
    if isinstance(predicate, Always | Never):
        return np.full(count, isinstance(predicate, Always))
    return test(predicate)


def surely(predicate: Predicate, test: Test, count: int) -> NDArray[np.bool_]:
    """The same if *test* returns what is true of every row: an opaque part is not."""
    return evaluate(predicate, test, count, lambda part: False)
