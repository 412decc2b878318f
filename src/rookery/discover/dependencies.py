"""Functional dependencies: a value of some columns of a declared column set determines the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rookery.discover.column import ColumnFacts
from rookery.discover.confidence import TOLERATED_REPEATS, dependency_confidence
from rookery.model import Certainty


@dataclass(frozen=True, slots=True)
class Dependency:
    """Columns that determine others of the same table."""

    table: str
    columns: tuple[str, ...]
    determines: tuple[str, ...]
    distinct: float  # of the determining columns
    distinct_together: float
    confidence: float
    certainty: Certainty


def dependencies(columns: Iterable[ColumnFacts], least: float) -> list[Dependency]:
    """Return the dependencies of at least that confidence.

    Nearly unique columns are skipped: they determine all others.
    """
    by_table: dict[str, list[ColumnFacts]] = {}
    for column in columns:
        by_table.setdefault(column.table, []).append(column)
    return [each for table in sorted(by_table) for each in _of_table(by_table[table], least)]


def _of_table(columns: Sequence[ColumnFacts], least: float) -> Iterator[Dependency]:
    nullable = {column.columns[0] for column in columns if len(column.columns) == 1 and column.has_nulls}
    for column_set in columns:
        for part in columns if len(column_set.columns) > 1 else ():
            nearly_unique = part.distinct >= (1 - TOLERATED_REPEATS) * part.rows_high
            if not set(part.columns) < set(column_set.columns) or nearly_unique:
                continue
            # A column set does not count rows with a null; the determining columns alone do.
            if nullable.intersection(column_set.columns) - set(part.columns):
                continue
            confidence = dependency_confidence(part, column_set)
            if confidence >= least and confidence > 0:
                yield Dependency(
                    table=column_set.table,
                    columns=part.columns,
                    determines=tuple(name for name in column_set.columns if name not in part.columns),
                    distinct=float(round(part.distinct)),
                    distinct_together=float(round(column_set.distinct)),
                    confidence=confidence,
                    certainty=Certainty.SKETCHED
                    if part.is_sampled or column_set.is_sampled
                    else Certainty.EXACT,
                )
