"""Which columns of a Parquet file are which of the table's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from rookery.model.schema import Column
from rookery.parquet import Leaf

_FIELD_ID = b"PARQUET:field_id"


def field_id(stored: pa.Field) -> int | None:
    """Return the field id that a Parquet file gives a column, as Arrow reads it; None if it gives none."""
    text = (stored.metadata or {}).get(_FIELD_ID)
    return None if text is None else int(text)


class ColumnMapping(Protocol):
    """How the columns of a file are found. It is sent to executors, so it is small."""

    def with_ids(self, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
        """Return the leaf columns of a file with the ids that they have in the table.

        Those without an id are not columns of the table, or it is not known of which.
        """

    def is_same(self, stored: pa.Field, column: Column) -> bool:
        """Whether a part of a nested column, as Arrow reads it from a file, is the table's *column*."""


class FieldIds:
    """By the field ids that Parquet files have."""

    def with_ids(self, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
        """Return the leaves as they are."""
        return leaves

    def is_same(self, stored: pa.Field, column: Column) -> bool:
        """Whether a part of a nested column has the id of the table's."""
        return field_id(stored) == column.id


BY_FIELD_ID = FieldIds()
