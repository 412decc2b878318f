"""How much the numbers of distinct values may have changed since they were collected.

Only metadata is read. Files that no statistics describe bring at least the values that must be new,
as their bounds are outside of all that is known, and at most one for each non-null value, or for each
number between their bounds. Removed files take at most one for each of their rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.maintain.facts.changes import Difference
from rookery.maintain.facts.staleness import StatsComparison, changed_rows, stated_ndvs
from rookery.maintain.survey import Survey
from rookery.model import Estimate, Field
from rookery.model.type_names import SKETCHED, base_type
from rookery.prune.bounds import Bounds
from rookery.sketch import K
from rookery.tables import identities
from rookery.tables.files import EQUALITY_DELETES
from rookery.values.canonical import SUPPORTED, is_float

_DEVIATIONS = 3
_FOREIGN_ERROR = _DEVIATIONS / math.sqrt(K)  # of sketches of the size that engines write
_DISCRETE = frozenset(
    {"int", "long", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
)


@dataclass(frozen=True, slots=True)
class Drift:
    """The range of a column's number of distinct values now, and how far that is from before."""

    field: Field
    before: float | None  # none: never counted
    low: float
    high: float | None  # None: unbounded
    moved: bool = True  # false: every file is described, and none was removed

    @property
    def at_least(self) -> float | None:
        """The least change, as a share of the earlier number."""
        if not self.before or not self.moved:
            return None if self.before is None else 0.0
        away = max(self.low - self.before, self.before - (math.inf if self.high is None else self.high), 0.0)
        return away / self.before

    @property
    def at_most(self) -> float | None:
        """The greatest possible change."""
        if not self.moved:
            return 0.0
        if not self.before or self.high is None:
            return None
        return max(self.high - self.before, self.before - self.low, 0.0) / self.before


@dataclass(frozen=True, slots=True, eq=False)
class Unread:
    """The live files, divided into those that are described and those that are not."""

    known: NDArray[np.bool_]
    shrunk: NDArray[np.bool_]  # not described as they are, but as they were with fewer deletes
    whole: NDArray[np.bool_]  # no deletes are attached
    rows_gone: int  # rows that are described and may have been removed since
    # Rows added and removed by later snapshots, as these state; a rewrite does neither. None: not stated.
    rows_brought: int | None = None
    rows_taken: int | None = None


def drifts(
    survey: Survey, counted: Mapping[int, Estimate], unread: Unread, *, uncounted: bool = True
) -> list[Drift]:
    """Return the drift of each column; *counted* are the statistics of the files that they describe.

    Without *uncounted*, only of columns that were counted: for others there is no earlier number.
    """
    columns = [field for field in survey.table.fields() if base_type(field.type) in SKETCHED]
    columns = [field for field in columns if uncounted or field.id in counted]
    if survey.fileset is None:
        return [Drift(field, None, 0.0, 0.0) for field in columns]
    if columns and (len(counted) < len(columns) or not unread.known.all() or unread.rows_gone):
        survey.fileset.expect_all_columns()
    nothing = Unread(np.zeros_like(unread.known), np.zeros_like(unread.known), unread.whole, 0)
    rows = float(survey.numbers("rows").sum())
    results = []
    for field in columns:
        before = counted.get(field.id)
        if before is not None and unread.known.all() and not unread.rows_gone:
            most = before.high if field.repeated else min(before.high, rows)
            results.append(Drift(field, before.value, before.low, most, moved=False))
            continue
        low, high = _between(survey, field, before or Estimate.exact(0), unread if before else nothing)
        results.append(Drift(field, before.value if before else None, low, high))
    return results


def drift_of(comparison: StatsComparison, *, uncounted: bool = True) -> list[Drift]:
    """Return the drift of each column since the statistics that there are."""
    survey, base = comparison.survey, comparison.base
    if base is None or survey.fileset is None:
        nothing = np.zeros(survey.files.num_rows, bool)
        return drifts(survey, {}, Unread(nothing, nothing, _whole(survey), 0), uncounted=uncounted)
    if base.ours and survey.state is not None:
        types = {field.id: field.type for field in survey.table.fields()}
        counted = {
            number: _as_registered(sketch.estimate(_DEVIATIONS), survey.state.ndv(number))
            for number, sketch in survey.state.thetas.items()
            if survey.state.header.types.get(number) == types.get(number)
        }
        unread = unread_since_state(survey, comparison.difference, on_line=comparison.on_line)
    else:
        assert base.file is not None
        counted = {number: from_stated(stated) for number, stated in stated_ndvs(base.file).items()}
        unread = unread_since_snapshot(survey, comparison.difference)
    changed = changed_rows(survey, comparison.since) if comparison.on_line else None
    if changed is not None:
        unread = replace(unread, rows_brought=changed.brought, rows_taken=changed.taken)
    return drifts(survey, counted, unread, uncounted=uncounted)


def _as_registered(estimate: Estimate, ndv: int) -> Estimate:
    """Return an estimate with the number that is registered: whole, and not above the number of values."""
    return replace(estimate, value=ndv, low=min(estimate.low, ndv))


def from_stated(stated: int) -> Estimate:
    """Return the bounds of a number that another engine's sketch has stated."""
    exact = Estimate.exact(stated)
    if stated < K:
        return exact
    error = stated * _FOREIGN_ERROR
    return Estimate(stated, stated - error, stated + error, exact.kind)


def unread_since_state(survey: Survey, difference: Difference, *, on_line: bool) -> Unread:
    """Divide files by the state; along the line of ancestors, deletes are only added."""
    assert survey.fileset is not None
    count = len(survey.fileset)
    known = np.arange(count) < count - survey.fileset.fresh
    whole = _whole(survey)
    gone = difference.rows_gone
    shrunk = np.zeros(count, bool)
    if on_line and not whole.all() and gone:
        shrunk, back = _shrunk(survey, known, whole)
        gone -= back
    return Unread(known, shrunk, whole, gone)


def unread_since_snapshot(survey: Survey, difference: Difference) -> Unread:
    """Divide files by which are new; any file with deletes may have lost rows since."""
    is_new = pc.is_in(identities(survey.files), value_set=identities(difference.fresh))
    known = ~np.asarray(is_new.to_numpy(zero_copy_only=False), bool)
    whole = _whole(survey)
    deleted = _deleted_at_most(survey, np.flatnonzero(known & ~whole))
    gone = difference.rows_gone + int(deleted.sum())
    return Unread(known, np.zeros(len(known), bool), whole, gone)


def _whole(survey: Survey) -> NDArray[np.bool_]:
    """The files to which no deletes are attached."""
    return np.asarray(pc.equal(survey.files["deletes"], "").to_numpy(), bool)


def _shrunk(
    survey: Survey, known: NDArray[np.bool_], whole: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], int]:
    """The files that were described before they had their deletes, and how many of their rows are left.

    They were written before the state's snapshot, so the state contains them, with fewer deletes.
    """
    assert survey.state is not None
    limit = survey.state.header.sequence_number
    old = survey.numbers("sequence_number") <= limit
    shrunk = ~known & ~whole & old & (limit > 0)
    numbers = np.flatnonzero(shrunk)
    left = survey.numbers("rows")[numbers] - _deleted_at_most(survey, numbers)
    return shrunk, int(left.sum())


def _deleted_at_most(survey: Survey, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows of these files their deletes may hide: equality deletes may hide all."""
    rows = survey.numbers("rows")[numbers]
    found = survey.attached
    hidden = np.zeros(len(numbers), np.int64)
    for place, number in enumerate(numbers.tolist()):
        attached = found.get(number, [])
        everything = any(row["content"] == EQUALITY_DELETES for row in attached)
        hidden[place] = rows[place] if everything else sum(row["rows"] for row in attached)
    return np.minimum(hidden, rows)


def _between(survey: Survey, field: Field, before: Estimate, unread: Unread) -> tuple[float, float | None]:
    assert survey.fileset is not None
    new = ~unread.known & ~unread.shrunk
    low = _left(field, before, unread.rows_gone)
    if base_type(field.type) not in SUPPORTED:
        brought = float(survey.numbers("rows")[new].sum())
        return low, None if field.repeated else before.high + brought
    bounds = survey.fileset.bounds(field)
    low += _certainly_new(bounds, new & unread.whole, unread.known | unread.shrunk)
    if unread.rows_taken is not None:
        low = max(low, _left(field, before, unread.rows_taken))
    filled = _filled(survey, field, bounds)
    if filled is None:
        return low, None
    brought = _new_at_most(field, bounds, filled, new)
    if unread.rows_brought is not None and not field.repeated:
        brought = min(brought, float(unread.rows_brought))
    high = min(before.high + brought, float(filled.sum())) + _empty_text(field, bounds)
    return min(low, high), high


def _left(field: Field, before: Estimate, rows_gone: int) -> float:
    """How many values are left at least after rows are removed; a row of a list may hold any number."""
    if field.repeated and rows_gone:
        return 0.0
    return max(before.low - rows_gone, 0.0)


def _empty_text(field: Field, bounds: Bounds) -> int:
    """One more where the empty text may occur: sketches skip it, as Iceberg's do, but it is a value."""
    if base_type(field.type) not in ("string", "binary"):
        return 0
    shortest = pc.min(pc.binary_length(bounds.lower)).as_py()
    return int(not shortest or bounds.lower.null_count > 0)


def _filled(survey: Survey, field: Field, bounds: Bounds) -> NDArray[np.int64] | None:
    """How many values each file has that are not null, at most; None where unbounded."""
    rows = survey.numbers("rows")
    if field.repeated and (bounds.values < 0).any():
        return None
    values = np.where(bounds.values >= 0, bounds.values, rows)
    return np.asarray(values - np.maximum(bounds.nulls, 0), np.int64)


def _certainly_new(bounds: Bounds, new: NDArray[np.bool_], known: NDArray[np.bool_]) -> int:
    """How many values must be new: of files disjoint from each other and from all that is known.

    Bounds need not be values that occur, so a run of files that overlap counts as one.
    """
    has = (
        (bounds.values > 0)
        & (bounds.nulls >= 0)
        & (bounds.values > bounds.nulls + np.maximum(bounds.nans, 0))
    )
    bounded = np.asarray(pc.and_(bounds.lower.is_valid(), bounds.upper.is_valid()).to_numpy(False), bool)
    empty = (bounds.nulls >= 0) & (bounds.nulls == bounds.values)
    if not (bounded | empty)[known].all():
        return 0
    chosen = np.flatnonzero(new & has & bounded & (bounds.nans >= 0))
    seen = np.flatnonzero(known & bounded)
    if not len(chosen):
        return 0
    count = len(chosen) + len(seen)
    at = pa.array(np.concatenate([chosen, seen]))
    both = pa.concat_arrays([bounds.lower.take(at), bounds.upper.take(at)])
    ranks = pc.rank(both, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    lower, upper = ranks[:count], ranks[count:]
    order = np.argsort(lower, kind="stable")
    reach = np.maximum.accumulate(upper[order])
    starts = np.concatenate([[True], lower[order][1:] > reach[:-1]])
    runs = np.cumsum(starts) - 1
    touched = np.zeros(int(runs[-1]) + 1, bool)
    touched[runs[order >= len(chosen)]] = True
    return int((~touched).sum())


def _new_at_most(field: Field, bounds: Bounds, filled: NDArray[np.int64], new: NDArray[np.bool_]) -> float:
    """How many values new files can bring: one a value that is not null, or a number between their bounds."""
    chosen = np.flatnonzero(new)
    at = pa.array(chosen)
    lower, upper = bounds.lower.take(at), bounds.upper.take(at)
    counts = filled[chosen].astype(np.float64)
    bounded = np.asarray(pc.and_(lower.is_valid(), upper.is_valid()).to_numpy(False), bool)
    kind = base_type(field.type)
    if not bounded.any():
        return float(min(counts.sum(), 2.0) if kind == "boolean" else counts.sum())
    if kind in _DISCRETE or kind == "boolean":
        low = lower.filter(pa.array(bounded)).to_numpy().astype(np.int64)
        high = upper.filter(pa.array(bounded)).to_numpy().astype(np.int64)
        capped = np.minimum(counts[bounded], _width(low, high))
        return float(counts[~bounded].sum() + min(capped.sum(), _union(low, high)))
    single = np.asarray(pc.equal(lower, upper).fill_null(False).to_numpy(False), bool)
    # Of a float, zero has two signs and NaN has no bounds.
    return float(np.where(single, np.minimum(counts, 3.0 if is_float(kind) else 1.0), counts).sum())


def _width(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.float64]:
    """How many whole numbers are between the two, both included; 0 if the first is the greater."""
    wide = high.view(np.uint64) - low.view(np.uint64)  # right beyond 2^63 too
    return np.where(high >= low, wide.astype(np.float64) + 1, 0.0)


def _union(low: NDArray[np.int64], high: NDArray[np.int64]) -> float:
    """How many whole numbers are in at least one of the spans.

    >>> _union(np.array([1, 3, 10]), np.array([4, 6, 10]))
    7.0
    """
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    reach = np.maximum.accumulate(high)
    starts = np.concatenate([[True], low[1:] > reach[:-1]])
    ends = np.concatenate([starts[1:], [True]])
    return float(_width(low[starts], reach[ends]).sum())


def worst(column_drifts: Sequence[Drift]) -> tuple[float, float | None]:
    """Return the greatest drift of a table's columns: at least, and at most."""
    counted = [drift for drift in column_drifts if drift.before]
    least = max((drift.at_least or 0.0 for drift in counted), default=0.0)
    most = [drift.at_most for drift in counted]
    return least, None if None in most else max((each for each in most if each is not None), default=0.0)
