"""Plain Spark queries in an attached session, and in one that is not."""

from benchmarks.attach.parts import PACKAGES, TITLE, rows

__all__ = ["PACKAGES", "TITLE", "rows"]
