"""How a table is partitioned: fields, each made from a column by a transform."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class TransformKind(StrEnum):
    """What is known of a transform: enough to see a predicate through it."""

    IDENTITY = "identity"
    BUCKET = "bucket"
    TRUNCATE = "truncate"
    TIME = "time"  # years, months, days or hours
    OTHER = "other"  # of which nothing follows

    @property
    def keeps_order(self) -> bool:
        """Whether a greater value never becomes a smaller one."""
        return self in (TransformKind.IDENTITY, TransformKind.TRUNCATE, TransformKind.TIME)


class Transform(Protocol):
    """What makes a partition's value of a column's; types go by their names."""

    @property
    def kind(self) -> TransformKind:
        """What is known of it."""

    @property
    def width(self) -> int:
        """What is truncated to; 0 if nothing is."""

    def result_type(self, source_type: str) -> str:
        """Return the type of what it makes."""

    def apply(self, value: Any, source_type: str) -> Any:
        """Return what it makes of a value that is not null."""

    def shown(self, value: Any) -> str:
        """Return a value that it has made as people write it; of times, `2024-05`."""


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
