"""How a table is partitioned: fields, each made from a column by a transform."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class TransformKind(StrEnum):
    """The kind of a transform: enough to project a predicate through it."""

    IDENTITY = "identity"
    BUCKET = "bucket"
    TRUNCATE = "truncate"
    TIME = "time"  # years, months, days or hours
    OTHER = "other"  # which cannot be used for pruning

    @property
    def keeps_order(self) -> bool:
        """Whether a greater value never becomes a smaller one."""
        return self in (TransformKind.IDENTITY, TransformKind.TRUNCATE, TransformKind.TIME)


class Transform(Protocol):
    """A function from a column's value to a partition's; types are given by name."""

    @property
    def kind(self) -> TransformKind:
        """Its kind."""

    @property
    def width(self) -> int:
        """The width of truncation; 0 if none."""

    def result_type(self, source_type: str) -> str:
        """Return the type of its results."""

    def apply(self, value: Any, source_type: str) -> Any:
        """Return the result for a value that is not null."""

    def shown(self, value: Any) -> str:
        """Format a result for people; for times, `2024-05`."""


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A part of a partition."""

    id: int
    source_id: int  # of the column
    name: str
    transform: Transform


@dataclass(frozen=True, slots=True)
class SortField:
    """A part of a sort order."""

    source_id: int
    transform: Transform
    direction: str  # ASC or DESC
    nulls: str  # NULLS FIRST or NULLS LAST
