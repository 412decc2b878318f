"""Finding rows by a key, and counting by a status: indexes beside the table against engines and formats."""

from benchmarks.lookup.parts import PACKAGES, TITLE, rows

__all__ = ["PACKAGES", "TITLE", "rows"]
