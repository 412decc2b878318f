"""Estimates of filters, compared with what is true."""

from benchmarks.estimate.parts import PACKAGES, TITLE, rows

__all__ = ["PACKAGES", "TITLE", "rows"]
