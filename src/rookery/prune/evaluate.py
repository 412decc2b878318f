"""Walking a predicate: leaves are tested, AND and OR join, and what is not understood may be true."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rookery.model import And, Leaf, Never, Or, Predicate
from rookery.model.predicate import Always, Opaque

Test = Callable[[Leaf], NDArray[np.bool_]]


def surely(predicate: Predicate, test: Test, count: int) -> NDArray[np.bool_]:
    """Return in which of *count* units the predicate is true of every row; what is not understood is not."""
    if isinstance(predicate, And):
        found = np.ones(count, bool)
        for part in predicate.parts:
            found &= surely(part, test, count)
        return found
    if isinstance(predicate, Or):
        found = np.zeros(count, bool)
        for part in predicate.parts:
            found |= surely(part, test, count)
        return found
    if isinstance(predicate, Always | Opaque | Never):
        return np.full(count, isinstance(predicate, Always))
    return test(predicate)


def evaluate(predicate: Predicate, test: Test, count: int) -> NDArray[np.bool_]:
    """Return in which of *count* units the predicate may be true of a row."""
    if isinstance(predicate, And):
        found = np.ones(count, bool)
        for part in predicate.parts:
            found &= evaluate(part, test, count)
        return found
    if isinstance(predicate, Or):
        found = np.zeros(count, bool)
        for part in predicate.parts:
            found |= evaluate(part, test, count)
        return found
    if isinstance(predicate, Always | Opaque):
        return np.ones(count, bool)
    if isinstance(predicate, Never):
        return np.zeros(count, bool)
    return test(predicate)
