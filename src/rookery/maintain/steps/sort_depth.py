"""How far files are from being sorted: how many of a partition overlap, by their bounds.

Unlike the depth that status shows, overlap that sorting cannot remove does not count: files with one value
only, and files whose bounds are the same.
"""

from __future__ import annotations

import numpy as np

from rookery.maintain.facts.sort_order import sort_status, spans
from rookery.maintain.policies.policy import Compaction, Strategy
from rookery.maintain.survey import Survey
from rookery.model import Field, column_named


def sort_depth(survey: Survey, wanted: Compaction) -> float | None:
    """Return how deep files overlap in the order of a policy; None if bounds are missing."""
    field = _leading(survey, wanted)
    return None if field is None else depth(survey, field)


def _leading(survey: Survey, wanted: Compaction) -> Field | None:
    """The first column of the order; along a z-order's columns files overlap by design."""
    if wanted.strategy is not Strategy.SORT:
        return None
    if wanted.columns:
        return column_named(survey.table.fields(), wanted.columns[0])
    status = sort_status(survey)
    if status is None or status.column is None:
        return None
    return column_named(survey.table.fields(), status.column)


def depth(survey: Survey, field: Field) -> float | None:
    """Return how many files of its partition cover the point where a file begins, in the mean."""
    groups, lower, upper = spans(survey, field)
    if not len(groups):
        return None
    wide = lower < upper
    sortable = np.unique(np.stack([groups, lower, upper], axis=1)[wide], axis=0)
    if not len(sortable):
        return 1.0
    # Between two ranks is a gap; a file covers the gaps from its first rank to its last.
    width = int(sortable[:, 2].max()) + 1
    starts = np.sort(sortable[:, 0] * width + sortable[:, 1])
    ends = np.sort(sortable[:, 0] * width + sortable[:, 2])
    covering = np.searchsorted(starts, starts, "right") - np.searchsorted(ends, starts, "right")
    return float(covering.mean())
