"""Unique keys: columns, and declared column sets, of which no two rows have the same value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rookery.discover.column import ColumnFacts
from rookery.discover.confidence import unique_confidence
from rookery.model import Certainty


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A column or a column set whose values are all different."""

    table: str
    columns: tuple[str, ...]
    distinct: float
    rows: int  # that are not null; where rows are deleted or nulls not known, at most
    confidence: float
    certainty: Certainty
    deletes: bool  # whether rows of the table are deleted: those are among the rows


def unique_keys(columns: Iterable[ColumnFacts], least: float) -> list[UniqueKey]:
    """Return the keys of at least that confidence, the surest first."""
    keys = [
        UniqueKey(
            table=column.table,
            columns=column.columns,
            distinct=float(round(min(column.distinct, column.rows_high))),
            rows=column.rows_high,
            confidence=confidence,
            certainty=Certainty.SKETCHED if column.is_sampled else Certainty.EXACT,
            deletes=column.deletes,
        )
        for column in columns
        if (confidence := unique_confidence(column)) >= least and confidence > 0
    ]
    return sorted(keys, key=lambda key: (key.table, -key.confidence, len(key.columns), key.columns))
