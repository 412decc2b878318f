"""How long it takes to tell how tables stand: a thousand small ones, and one of very many files."""

from benchmarks.status.parts import PACKAGES, TITLE, rows

__all__ = ["PACKAGES", "TITLE", "rows"]
