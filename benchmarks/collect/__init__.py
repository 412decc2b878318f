"""Statistics on Spark: collected, refreshed, planned, and the memory that this takes."""

from benchmarks.collect.parts import PACKAGES, TITLE, rows

__all__ = ["PACKAGES", "TITLE", "rows"]
