"""Sketches by Apache DataSketches, which are right by definition."""

from __future__ import annotations

from collections.abc import Iterable

import datasketches
import numpy as np

Reference = datasketches.compact_theta_sketch


def reference(values: Iterable[int], lg_k: int = 5, *, p: float = 1.0, ordered: bool = True) -> Reference:
    """A compact sketch of *values*; it keeps some 2^lg_k hashes, each with probability *p* at first."""
    sketch = datasketches.update_theta_sketch(lg_k, p)
    for value in values:
        sketch.update(value)
    return sketch.compact(ordered)


def hashes_of(sketch: Reference) -> list[int]:
    return sorted(sketch)


def random_hashes(count: int, theta: int, seed: int) -> np.ndarray:
    """Distinct hashes below θ, ascending."""
    drawn = np.random.default_rng(seed).integers(1, theta, count, dtype=np.uint64)
    return np.unique(drawn)
