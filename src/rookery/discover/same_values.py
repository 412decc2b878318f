"""Columns with the same values, or nearly: copies, and both sides of a reference that is fully used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rookery.discover.confidence import share_confidence
from rookery.discover.overlap import Overlap
from rookery.model import Certainty

LEAST_SAME = 0.95  # of the values of both columns together, that are in both
LEAST_VALUES = 2  # one value, or two of a boolean, show nothing


@dataclass(frozen=True, slots=True)
class SameValues:
    """Two columns or column sets with nearly the same values."""

    table: str
    columns: tuple[str, ...]
    other_table: str
    other_columns: tuple[str, ...]
    jaccard: float  # values in both, as a share of those in either
    distinct: float  # of the first
    sample: int  # how many values of either were compared
    confidence: float  # that it is at least LEAST_SAME
    certainty: Certainty


def same_values(overlaps: Iterable[Overlap], least: float) -> list[SameValues]:
    """Return the pairs of at least that confidence, those with the most values first."""
    pairs = [pair for overlap in overlaps for pair in _of_one_type(overlap, least)]
    return sorted(pairs, key=lambda pair: (-pair.distinct, pair.table, pair.columns, pair.other_table))


def _of_one_type(overlap: Overlap, least: float) -> Iterator[SameValues]:
    if overlap.columns[0].types == ("boolean",):
        return
    either = overlap.sampled + overlap.sampled.T - overlap.common
    similar = np.triu(overlap.common >= LEAST_SAME * either, 1) & (overlap.common > 0)
    for first, second in np.argwhere(similar).tolist():
        one, other = overlap.columns[first], overlap.columns[second]
        common, sample = int(overlap.common[first, second]), int(either[first, second])
        share = float(overlap.shares[first, second])
        if min(one.distinct, other.distinct) < LEAST_VALUES:
            continue
        confidence = share_confidence(common, sample, LEAST_SAME, max(one.distinct, other.distinct), share)
        if confidence >= least and confidence > 0:
            yield SameValues(
                table=one.table,
                columns=one.columns,
                other_table=other.table,
                other_columns=other.columns,
                jaccard=common / sample,
                distinct=float(round(one.distinct)),
                sample=sample,
                confidence=confidence,
                certainty=Certainty.EXACT if share >= 1 else Certainty.SKETCHED,
            )
