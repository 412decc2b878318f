"""Foreign keys: a column whose values are all among those of a unique column of another table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rookery.discover.column import ColumnFacts
from rookery.discover.confidence import both, contained_confidence, unique_confidence
from rookery.discover.names import RELATED, name_evidence
from rookery.discover.overlap import Overlap
from rookery.model import Certainty

LEAST_CONTAINED = 0.9  # a column with more values that are missing is no foreign key at any confidence
LEAST_UNIQUE = 0.9  # of the rows of the parent that have a value of their own
MUCH = 0.5  # of the parent's values, or of their range


class Likely(StrEnum):
    """Whether a containment is meant, or by chance: small numbers are among the values of most keys."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


_ORDER = {Likely.HIGH: 0, Likely.MEDIUM: 1, Likely.LOW: 2}


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A column, or a column set, that may refer to a unique one."""

    table: str
    columns: tuple[str, ...]
    parent_table: str
    parent_columns: tuple[str, ...]
    containment: float  # the share of the column's values that the parent has
    coverage: float  # the share of the parent's values that the column has
    range_coverage: float | None  # the same of the ranges between least and greatest, of whole numbers
    uniqueness: float  # distinct values of the parent, as a share of its rows
    name_evidence: float
    sample: int  # how many values were looked up
    confidence: float  # that the containment holds and that the parent is unique
    likely: Likely
    certainty: Certainty
    deletes: bool  # whether rows of either table are deleted


def foreign_keys(overlaps: Iterable[Overlap], least: float) -> list[ForeignKey]:
    """Return the foreign keys of at least that confidence, the likely ones first."""
    keys = [key for overlap in overlaps for key in _of_one_type(overlap, least)]
    return sorted(
        keys,
        key=lambda key: (
            _ORDER[key.likely],
            -key.name_evidence,
            -max(key.coverage, key.range_coverage or 0.0),
            (key.table, key.columns, key.parent_table, key.parent_columns),
        ),
    )


def _of_one_type(overlap: Overlap, least: float) -> Iterator[ForeignKey]:
    columns = overlap.columns
    unique = np.array([unique_confidence(column) for column in columns])
    distinct = np.array([column.distinct / max(column.rows_high, 1) for column in columns])
    parents = np.array([not column.repeated and column.equals_by_bits for column in columns])
    parents &= (unique >= least) & (distinct >= LEAST_UNIQUE)
    least_common = overlap.sampled * (1.0 if least > 0 else LEAST_CONTAINED)
    enough = overlap.common >= least_common
    for child, parent in np.argwhere(enough & (overlap.sampled > 0) & parents[None, :]).tolist():
        if columns[child].table == columns[parent].table:
            continue
        contained = _contained_confidence(overlap, child, parent)
        confidence = both(contained, float(unique[parent]))
        if confidence >= least:
            yield _foreign_key(overlap, child, parent, confidence, bool(unique[child] > MUCH))


def _contained_confidence(overlap: Overlap, child: int, parent: int) -> float:
    """How sure it is that every value of the child is one of the parent."""
    own, other = overlap.columns[child], overlap.columns[parent]
    if overlap.common[child, parent] < overlap.sampled[child, parent] or _is_outside(own, other):
        return 0.0
    if own.may_be_empty and not other.has_empty:
        return 0.0
    return contained_confidence(own.distinct, float(overlap.shares[child, parent]))


def _is_outside(child: ColumnFacts, parent: ColumnFacts) -> bool:
    """Whether the least or the greatest value of the child is beyond all of the parent."""
    if not child.tight:
        return False
    below = child.low is not None and parent.low is not None and child.low < parent.low
    return below or (child.high is not None and parent.high is not None and child.high > parent.high)


def _foreign_key(
    overlap: Overlap, child: int, parent: int, confidence: float, child_is_unique: bool
) -> ForeignKey:
    own, other = overlap.columns[child], overlap.columns[parent]
    common, sample = int(overlap.common[child, parent]), int(overlap.sampled[child, parent])
    coverage = common / max(int(overlap.sampled[parent, child]), 1)
    ranges, names = _range_coverage(own, other), name_evidence(own, other)
    is_sampled = own.is_sampled or other.is_sampled
    return ForeignKey(
        own.table,
        own.columns,
        other.table,
        other.columns,
        containment=common / sample,
        coverage=coverage,
        range_coverage=ranges,
        uniqueness=min(other.distinct / other.rows_high, 1.0),
        name_evidence=names,
        sample=sample,
        confidence=confidence,
        likely=likely(names, max(coverage, ranges or 0.0), child_is_unique),
        certainty=Certainty.SKETCHED if is_sampled else Certainty.EXACT,
        deletes=own.deletes or other.deletes,
    )


def likely(names: float, covered: float, child_is_unique: bool) -> Likely:
    """Rank a containment: by names first; without those, by how much of the parent is covered.

    >>> [str(likely(*each)) for each in ((1.0, 0.01, True), (0.0, 0.6, False), (0.0, 0.6, True))]
    ['high', 'medium', 'low']
    """
    if names >= RELATED:
        return Likely.HIGH
    return Likely.MEDIUM if covered >= MUCH and not child_is_unique else Likely.LOW


def _range_coverage(child: ColumnFacts, parent: ColumnFacts) -> float | None:
    if child.low is None or child.high is None or parent.low is None or parent.high is None:
        return None
    shared = min(child.high, parent.high) - max(child.low, parent.low) + 1
    return max(shared, 0) / (parent.high - parent.low + 1)
