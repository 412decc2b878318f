"""A condition on one column: about how many rows of each file match, between which bounds, and by what."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.estimate.axis import Floats
from rookery.estimate.frequencies import matching
from rookery.estimate.known import KnownColumn, KnownTable, is_known_type
from rookery.estimate.points import point_rows
from rookery.estimate.proofs import proved
from rookery.estimate.ranges import range_rows, share_of_all
from rookery.estimate.regions import Key, Region, prefix_region, region_of
from rookery.model import And, Like, Predicate, leaves_of
from rookery.sketch.quantiles import Quantiles
from rookery.values.canonical import is_float
from rookery.values.evaluate import evaluate
from rookery.values.row_filter import true_values
from rookery.where.to_sql import spell

OPAQUE_SHARE = 0.25
PATTERN_SHARE = 0.1  # of the texts that have the beginning of a pattern
BOUNDS_OF_RANKS = 1.0  # errors of a rank on either side


@dataclass(frozen=True, slots=True)
class Condition:
    """A line of a report: a part of the predicate, the rows that match it alone, and the source."""

    text: str
    rows: float
    selectivity: float
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The estimate of a part of a predicate, deleted rows included."""

    predicate: Predicate
    rows: Floats  # about, of each file
    low: float  # of all files
    high: float
    proven: bool  # whether low and high are proved, not only likely
    conditions: tuple[Condition, ...]
    points: tuple[Key, ...] | None = None  # the values, where it asks for single values of one column


def part_of(
    table: KnownTable, predicate: Predicate, rows: Floats, source: str, note: str = "", text: str = ""
) -> Part:
    """Return the estimate of a condition, limited to what is proved of it."""
    known = proved(table, predicate)
    rows = np.clip(rows, known.least, known.most)
    total = max(float(table.rows.sum()), 1.0)
    about = float(rows.sum())
    line = Condition(
        text=text or spell(predicate), rows=about, selectivity=about / total, source=source, note=note
    )
    return Part(
        predicate=predicate,
        rows=rows,
        low=float(known.least.sum()),
        high=float(known.most.sum()),
        proven=True,
        conditions=(line,),
    )


def single_column(table: KnownTable, predicate: Predicate) -> Part:
    """Return the estimate of a predicate all of whose leaves are on one column."""
    field = next(leaves_of(predicate)).field
    if not is_known_type(field):
        note = f"there are no statistics of columns of type {field.type}"
        return part_of(table, predicate, table.rows * OPAQUE_SHARE, "default", note)
    column = table.column(field)
    region = region_of(predicate)
    if region is None:
        return _by_samples(table, column, predicate)
    rows, source = region_rows(table, column, region)
    part = replace(part_of(table, predicate, rows, source), points=region.points)
    return part if _is_sampled(table) else _within(part, _likely_bounds(table, column, predicate, region))


def region_rows(table: KnownTable, column: KnownColumn, region: Region) -> tuple[Floats, str]:
    """Return about how many rows of each file have a value in a region."""
    rows = np.zeros(len(table.rows))
    sources: dict[str, None] = {}
    if region.nulls or region.nans:
        rows += column.nulls if region.nulls else 0.0
        rows += column.nans if region.nans else 0.0
    ranges, added, lacking = region.parts()
    if not ranges and not added:
        sources["null counts"] = None
    for interval in ranges:
        found, source = range_rows(column, interval)
        rows += found
        if len(ranges) > 1 or not lacking or found.sum() < column.values.sum():
            sources[source] = None
    if added:
        found, source = point_rows(table, column, added)
        rows += found
        sources[source] = None
    if lacking:
        found, source = point_rows(table, column, lacking)
        rows -= found
        sources[source] = None
    return np.clip(rows, 0.0, table.rows), ", ".join(sources)


def _within(part: Part, likely: tuple[float, float, bool] | None) -> Part:
    """Narrow the bounds of a part, and bring its rows between them."""
    if likely is None:
        return part
    low, high, proven = max(likely[0], part.low), min(likely[1], part.high), likely[2]
    if low > high:
        return part
    about = float(part.rows.sum())
    wanted = min(max(about, low), high)
    rows = part.rows * (wanted / about) if about > 0 else part.rows
    narrowed = (low, high) != (part.low, part.high)
    (line,) = part.conditions
    scale = wanted / about if about > 0 else 1.0
    line = replace(line, rows=line.rows * scale, selectivity=line.selectivity * scale)
    return replace(
        part,
        rows=rows,
        low=low,
        high=high,
        proven=part.proven and (proven or not narrowed),
        conditions=(line,),
    )


def _likely_bounds(
    table: KnownTable, column: KnownColumn, predicate: Predicate, region: Region
) -> tuple[float, float, bool] | None:
    """Bounds of the matching rows by the sketches of a column, and whether they are proved."""
    more = _nulls_and_nans(column, region)
    frequencies = column.frequencies
    values, fresh = float(column.values.sum()), float(column.values[~table.described].sum())
    if (
        frequencies is not None
        and not column.nans.any()
        and frequencies.seen
        and (region.points is not None or frequencies.is_complete)
    ):
        is_true = evaluate(
            predicate, lambda leaf: true_values(leaf, frequencies.values), len(frequencies.values)
        )
        _, low, high = matching(frequencies, is_true)
        missing = max(len(region.points or ()) - int(is_true.sum()), 0)
        high += frequencies.error * missing
        known = not region.nulls or bool((column.bounds.nulls >= 0).all())
        if column.is_counted and known and not is_float(column.field.type):
            return low + more, high + more, True
        scale = (values - fresh) / frequencies.seen
        return low * scale * _kept(table) + more, high * scale + fresh + more, False
    distribution = column.distribution
    if distribution is None or distribution.source != "histogram" or fresh:
        return None
    shares = [share_of_all(column, interval) for interval in region.intervals if not interval.is_point]
    if len(shares) < len(region.intervals):
        return None
    share = sum(each for each in shares if each is not None)
    error = BOUNDS_OF_RANKS * 2 * distribution.error * len(shares)
    low, high = max(share - error, 0.0) * _kept(table), min(share + error, 1.0)
    return low * values + more, high * values + more, False


def _is_sampled(table: KnownTable) -> bool:
    """Whether row statistics are those of some row groups, which may differ from the others by any number."""
    state = table.state
    return state is not None and state.header.rows is not None and bool(state.header.rows.sample)


def _nulls_and_nans(column: KnownColumn, region: Region) -> float:
    """About how many rows match as null or NaN; what no file counts is taken for rare."""
    nulls = float(column.nulls.sum()) if region.nulls else 0.0
    return nulls + (float(column.nans.sum()) if region.nans else 0.0)


def _kept(table: KnownTable) -> float:
    """The share of the rows described by row statistics that are still there."""
    state = table.state
    return 1.0 if state is None or state.header.rows is None else 1.0 - state.header.rows.stale


def _by_samples(table: KnownTable, column: KnownColumn, predicate: Predicate) -> Part:
    """A condition such as LIKE '%a%': tested on the values that sketches have."""
    frequencies, quantiles = column.frequencies, _quantiles(table, column)
    shares: list[tuple[float, float, str]] = []  # of the values, their weight, and the source
    if frequencies is not None and frequencies.seen:
        is_true = _true(predicate, frequencies.values)
        weight = 1 - frequencies.rest / frequencies.seen
        counted = float(frequencies.counts.sum())
        shares.append((float(frequencies.counts[is_true].sum()) / max(counted, 1.0), weight, "top-k"))
    left = 1 - sum(weight for _, weight, _ in shares)
    if left > 0 and quantiles is not None and quantiles.text:
        items = list(quantiles.sketch)
        weights = np.array([weight for _, weight in items], np.float64)
        is_true = _true(predicate, pa.array([item for item, _ in items], pa.large_binary()))
        shares = (
            [(float(weights[is_true].sum() / weights.sum()), 1.0, "histogram")] if left > 0.05 else shares
        )
    elif left > 0:
        shares.append((_pattern_share(table, column, predicate), left, "default"))
    share = sum(each * weight for each, weight, _ in shares) / max(sum(w for _, w, _ in shares), 1e-9)
    sources = dict.fromkeys(source for _, weight, source in shares if weight > 0)
    rows = _limited(table, column, predicate, share)
    note = f"a pattern is assumed to match {PATTERN_SHARE:.0%} of the texts" if "default" in sources else ""
    part = part_of(table, predicate, rows, ", ".join(sources), note)
    if frequencies is not None and frequencies.is_complete and column.is_counted:
        _, low, high = matching(frequencies, _true(predicate, frequencies.values))
        return _within(part, (low, high, not table.pruning.table.maps_names))
    return part


def _true(predicate: Predicate, values: pa.Array) -> NDArray[np.bool_]:
    return evaluate(predicate, lambda leaf: true_values(leaf, values), len(values))


def _limited(table: KnownTable, column: KnownColumn, predicate: Predicate, share: float) -> Floats:
    """The rows of a share of all values, in the files whose bounds may have the beginning of the pattern."""
    most = proved(table, predicate).most > 0
    possible = float(column.values[most].sum())
    wanted = share * float(column.values.sum())
    return np.where(most, column.values * min(wanted / max(possible, 1.0), 1.0), 0.0)


def _pattern_share(table: KnownTable, column: KnownColumn, predicate: Predicate) -> float:
    """The share of a pattern of which only its beginning is known."""
    total = max(float(column.values.sum()), 1.0)
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    share = 1.0
    for part in parts:
        if isinstance(part, Like) and part.regex is not None:
            rows, _ = region_rows(table, column, prefix_region(part.prefix))
            matched = PATTERN_SHARE * float(rows.sum()) / total
            share *= 1 - matched if part.negated else matched
        elif (region := region_of(part)) is not None:
            share *= float(region_rows(table, column, region)[0].sum()) / total
        else:
            share *= OPAQUE_SHARE
    return share


def _quantiles(table: KnownTable, column: KnownColumn) -> Quantiles | None:
    state = table.state
    found = None if state is None else state.quantiles.get(column.field.id)
    return None if found is None or found.sketch.is_empty() else found
