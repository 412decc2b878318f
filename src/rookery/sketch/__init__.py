"""Kernels as values: sketches that update, merge and turn into bytes, with no I/O."""

from rookery.sketch.theta import MAX_THETA, ThetaError, ThetaSketch

__all__ = ["MAX_THETA", "ThetaError", "ThetaSketch"]
