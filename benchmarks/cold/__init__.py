"""What a command costs in a process of its own: processor time and memory."""

from benchmarks.cold.parts import PACKAGES, TITLE, rows

__all__ = ["PACKAGES", "TITLE", "rows"]
