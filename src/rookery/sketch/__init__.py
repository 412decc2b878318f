"""Kernels as values: sketches that are updated, merged and serialized, with no I/O.

`rookery.sketch.kmv` and `rookery.sketch.values` build sketches and are imported by name: they bring numba.
"""

from rookery.sketch.hll import HllSketch
from rookery.sketch.hll_layout import HllError
from rookery.sketch.inverted import MAX_FILES, InvertedTheta, InvertedThetaBuilder, union
from rookery.sketch.theta import MAX_THETA, K, ThetaError, ThetaSketch

__all__ = [
    "MAX_FILES",
    "MAX_THETA",
    "HllError",
    "HllSketch",
    "InvertedTheta",
    "InvertedThetaBuilder",
    "K",
    "ThetaError",
    "ThetaSketch",
    "union",
]
