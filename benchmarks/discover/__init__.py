"""Keys and references from states alone: those of TPC-H, and 1,000 columns compared."""

from benchmarks.discover.parts import PACKAGES, TITLE, rows

__all__ = ["PACKAGES", "TITLE", "rows"]
