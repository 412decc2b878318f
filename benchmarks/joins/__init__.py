"""TPC-H queries with a selective filter: pruned by the keys of a join, and as Spark runs them."""

from benchmarks.joins.parts import PACKAGES, TITLE, rows

__all__ = ["PACKAGES", "TITLE", "rows"]
