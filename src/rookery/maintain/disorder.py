"""How far files are from being sorted: how many of a partition lie over one another, as bounds tell it.

Unlike the depth that status shows, what no sorting could mend does not count: files that hold one value
alone, and files whose bounds are the same.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.maintain.policy import Compaction, Strategy
from rookery.maintain.sort_order import partition_codes, sort_status
from rookery.maintain.survey import Survey
from rookery.model import Field, column_named


def disorder(survey: Survey, wanted: Compaction) -> float | None:
    """Return how deep files overlap in the order that a policy wants; None where bounds do not tell."""
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
    if survey.fileset is None:
        return None
    bounds = survey.fileset.bounds(field)
    known = np.asarray(pc.and_(bounds.lower.is_valid(), bounds.upper.is_valid()).to_numpy(False), bool)
    if not known.any():
        return None
    chosen = pa.array(known)
    both = pa.concat_arrays([bounds.lower.filter(chosen), bounds.upper.filter(chosen)])
    ranks = pc.rank(both, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    count = int(known.sum())
    spans = np.stack([partition_codes(survey)[known], ranks[:count], ranks[count:]], axis=1)
    spans = np.unique(spans[spans[:, 1] < spans[:, 2]], axis=0)
    if not len(spans):
        return 1.0
    # Between two ranks lies a gap; a file covers the gaps from its first rank to its last.
    width = int(spans[:, 2].max()) + 1
    starts = np.sort(spans[:, 0] * width + spans[:, 1])
    ends = np.sort(spans[:, 0] * width + spans[:, 2])
    covering = np.searchsorted(starts, starts, "right") - np.searchsorted(ends, starts, "right")
    return float(covering.mean())
