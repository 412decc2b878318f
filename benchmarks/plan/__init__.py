"""Planning an equality in tables of very many files: ours, PyIceberg's and Java's."""

from benchmarks.plan.parts import PACKAGES, TITLE, rows

__all__ = ["PACKAGES", "TITLE", "rows"]
