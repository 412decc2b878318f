"""The values that a footer describes, and those that a writer takes and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

THETA_V1 = "apache-datasketches-theta-v1"
DELETION_VECTOR_V1 = "deletion-vector-v1"

CREATED_BY_PROPERTY = "created-by"


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """One blob as the footer describes it; `extra` has the JSON keys that are not in the specification."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The offset of the first byte after the blob."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """The footer's content."""

    blobs: Sequence[BlobMetadata]
    properties: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blob:
    """The input of a writer: a payload, not compressed, and its description.

    `codec` None is the writer's default; `"none"` stores the payload as it is.
    """

    type: str
    payload: bytes
    fields: tuple[int, ...] = ()
    snapshot_id: int = -1
    sequence_number: int = -1
    codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What a catalog needs to know of a file that was written."""

    location: str
    size: int
    footer_size: int
    metadata: FileMetadata
