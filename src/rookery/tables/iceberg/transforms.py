"""Iceberg's partition transforms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyiceberg.transforms import (
    BucketTransform,
    IdentityTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
)
from pyiceberg.types import IcebergType, LongType

from rookery.tables.partitioning import TransformKind

_KINDS: tuple[tuple[type[Transform[Any, Any]], TransformKind], ...] = (
    (IdentityTransform, TransformKind.IDENTITY),
    (BucketTransform, TransformKind.BUCKET),
    (TruncateTransform, TransformKind.TRUNCATE),
    (TimeTransform, TransformKind.TIME),
)


@dataclass(frozen=True, slots=True)
class IcebergTransform:
    """A transform as PyIceberg knows it."""

    transform: Transform[Any, Any]

    @property
    def kind(self) -> TransformKind:
        """Its kind; OTHER for void, and for unknown transforms."""
        return next(
            (kind for known, kind in _KINDS if isinstance(self.transform, known)), TransformKind.OTHER
        )

    @property
    def width(self) -> int:
        """The width of truncation."""
        return self.transform.width if isinstance(self.transform, TruncateTransform) else 0

    def result_type(self, source_type: str) -> str:
        """Return the type of its results; for times always a number, as in manifests."""
        if self.kind is TransformKind.TIME:
            return "int"
        return str(self.transform.result_type(_type(source_type)))

    def apply(self, value: Any, source_type: str) -> Any:
        """Return the result for a value that is not null."""
        return self.transform.transform(_type(source_type))(value)

    def shown(self, value: Any) -> str:
        """Format a result for people."""
        return self.transform.to_human_string(LongType(), value)

    def __str__(self) -> str:
        return str(self.transform)


def _type(name: str) -> IcebergType:
    return IcebergType.model_validate(name)
