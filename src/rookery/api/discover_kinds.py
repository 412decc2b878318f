"""What `discover` looks for by default, without imports, so that the command line starts fast."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["LEAST_CONFIDENCE", "DiscoverKind"]

LEAST_CONFIDENCE = 0.99


class DiscoverKind(StrEnum):
    """The kinds of findings."""

    FOREIGN_KEY = "foreign-key"
    UNIQUE = "unique"
    DEPENDENCY = "dependency"
    SAME_VALUES = "same-values"
