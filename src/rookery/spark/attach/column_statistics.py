"""The statistics that Spark's optimizer uses: of the rows of a scan that match its conditions.

Spark estimates each condition on its own, by the statistics of one column. So it is given those of the
matching rows, for which every condition that was taken into account is true, and multiplies by 1.

Only of types that its estimation knows: it fails on a range of any other column that has statistics, and
takes a number column without bounds for empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.estimate.groups import estimate_groups
from rookery.estimate.regions import Cut, Key, Region, region_of
from rookery.estimate.selection import Selection
from rookery.model import And, Field, Or, Predicate, all_of, leaves_of
from rookery.model.type_names import base_type, scale_of
from rookery.spark.attach.histograms import histogram
from rookery.values.canonical import decimal_of, unscaled_of
from rookery.where.to_sql import spell

_NUMBERS = frozenset({"boolean", "int", "long", "float", "double", "decimal", "date", "timestamptz"})
_WHOLE = frozenset({"int", "long", "date", "timestamptz", "decimal"})
_TEXT = frozenset({"string", "binary"})
_EXACT = 1 << 53  # Spark compares all numbers as doubles
_MANY_VALUES = 20  # so many that one which is excluded makes no difference


def matching_rows(selection: Selection) -> int:
    """Return about how many rows match; 0 only if that is proved."""
    return max(round(selection.rows.value), 0 if selection.rows.high == 0 and selection.proven else 1)


def column_statistics(selection: Selection, fields: Sequence[Field]) -> dict[str, dict[str, Any]]:
    """Return the statistics of columns in the matching rows, by column id."""
    known = {}
    for field in fields:
        if base_type(field.type) in _NUMBERS | _TEXT and not field.repeated:
            statistics = _column(selection, field)
            lengths = _lengths(selection, field) if field.type in _TEXT else {}
            if statistics is not None:
                ends = {end: _plain(field, statistics[end]) for end in ("min", "max") if end in statistics}
                known[str(field.id)] = statistics | ends | lengths
            elif lengths:  # alone, they have no effect on how conditions are estimated
                known[str(field.id)] = lengths
    return known


def _lengths(selection: Selection, field: Field) -> dict[str, int]:
    """The bytes of a value, on average and at most, in the files that are left: Spark takes 20 otherwise."""
    lengths = selection.known.lengths(field)
    among = None if lengths is None else lengths.among(selection.known.pruning.keep)
    return {} if among is None else {"avg_len": among[0], "max_len": among[1]}


def _plain(field: Field, key: Key) -> Any:
    """A value as the JVM reads it: a decimal as text, and a boolean also where a condition has a number."""
    match base_type(field.type):
        case "decimal":
            return str(decimal_of(key, scale_of(field.type)))
        case "boolean":
            return bool(key)
    return key


def _column(selection: Selection, field: Field) -> dict[str, Any] | None:
    on_field = _condition_on(selection.known.pruning.predicate, field)
    if on_field is None:
        return None
    statistics = _in_files(selection, field)
    if statistics is None:
        return None
    ndv = _ndv(selection, field, statistics)
    if ndv is not None:
        statistics["ndv"] = ndv
    if not on_field:
        return statistics
    region = region_of(all_of(*on_field))
    if region is None:  # a pattern, which Spark does not estimate
        return statistics | {"nulls": 0}
    return _in_region(selection, field, statistics, region)


def _condition_on(predicate: Predicate, field: Field) -> list[Predicate] | None:
    """The conditions on a column; None if one of them is a disjunction: Spark would estimate it once more."""
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    on_field = [part for part in parts if any(leaf.field.id == field.id for leaf in leaves_of(part))]
    return None if any(isinstance(part, Or) for part in on_field) else on_field


def _in_files(selection: Selection, field: Field) -> dict[str, Any] | None:
    """Nulls and bounds in the files that are left; None if they are not known."""
    keep = selection.known.pruning.keep
    bounds = selection.known.files.bounds(field)
    rows = matching_rows(selection)
    stating = keep & (bounds.nulls >= 0) & (bounds.values > 0)
    values = int(bounds.values[stating].sum())
    if not values and keep.any():
        return None
    nulls = min(round(rows * int(bounds.nulls[stating].sum()) / values), rows) if values else 0
    statistics: dict[str, Any] = {"nulls": nulls}
    if base_type(field.type) in _TEXT:
        return statistics
    having = pa.array(keep & bounds.has_numbers)
    lower, upper = bounds.lower.filter(having), bounds.upper.filter(having)
    if not len(lower):
        return statistics
    if lower.null_count or upper.null_count:
        return None
    low, high = pc.min(lower).as_py(), pc.max(upper).as_py()
    if isinstance(low, float) and not math.isfinite(high - low):
        return None  # a share of an infinite range is nothing that Spark could compute
    if isinstance(low, Decimal):
        low, high = (unscaled_of(each, scale_of(field.type)) for each in (low, high))
    return statistics | {"min": low, "max": high}


def _in_region(
    selection: Selection, field: Field, statistics: dict[str, Any], region: Region
) -> dict[str, Any] | None:
    """The statistics of the values that a condition accepts; None if Spark would not take it for true."""
    if region.nulls:
        return None if region.intervals or region.nans else {"nulls": matching_rows(selection)}
    statistics["nulls"] = 0
    ranges, added, lacking = region.parts()
    if lacking and statistics.get("ndv", 0) < _MANY_VALUES:
        return None  # Spark takes `<>` for true of all values but one
    if base_type(field.type) in _TEXT:
        if region.points is not None and "ndv" in statistics:
            statistics["ndv"] = len(region.points)
        return statistics
    if "min" not in statistics:
        return statistics
    if len(ranges) > 1 or (ranges and added):
        return None
    low, high = statistics["min"], statistics["max"]
    if ranges:
        low, high = _after(field, ranges[0].start, low), _before(field, ranges[0].end, high)
        if low > high or max(abs(low), abs(high)) > _EXACT:
            return None
    else:
        within = [key for key in added if low <= key <= high]
        if not within:
            return None
        low, high = within[0], within[-1]
        statistics["ndv"] = len(within)
    statistics |= {"min": low, "max": high}
    if "ndv" in statistics and base_type(field.type) in _WHOLE:
        statistics["ndv"] = min(statistics["ndv"], int(high) - int(low) + 1)
    if ranges:
        _add_histogram(selection, field, statistics)
    return statistics


def _after(field: Field, start: Cut, low: Key) -> Key:
    """The least value after a place."""
    if len(start) == 1:
        return low
    _, key, is_after = start
    return max(low, _next(field, key, math.inf) if is_after else key)


def _before(field: Field, end: Cut, high: Key) -> Key:
    if len(end) == 1:
        return high
    _, key, is_after = end
    return min(high, key if is_after else _next(field, key, -math.inf))


def _next(field: Field, key: Key, towards: float) -> Key:
    """The next float in a direction; intervals of whole numbers include their ends."""
    if field.type == "float":
        return float(np.nextafter(np.float32(key), np.float32(towards)))
    return math.nextafter(key, towards) if field.type == "double" else key


def _ndv(selection: Selection, field: Field, statistics: dict[str, Any]) -> int | None:
    """The distinct values of which the matching rows have some; None if they are not known.

    Conditions on other columns do not reduce them. Spark takes all values of the side of a join that has
    fewer for values of the other side too: if a condition leaves a tenth of the orders, and another one a
    tenth of their items, it would estimate that all of these items are of those orders. Where it needs the
    distinct values themselves, for groups, it takes at most the number of rows.
    """
    column = selection.known.column(field)
    if column.ndv is None or matching_rows(selection) <= statistics["nulls"]:
        return None  # a join of two columns without values would divide by 0
    rows = _rows_by_own_conditions(selection, field)
    wider = replace(selection.rows, value=rows, high=max(rows, selection.rows.high))
    groups, _ = estimate_groups(replace(selection, rows=wider), [field])
    with_null = 1 if statistics["nulls"] else 0
    most = rows
    if base_type(field.type) in _WHOLE and "min" in statistics:
        most = min(most, float(statistics["max"] - statistics["min"]) + 1)
    return max(math.ceil(min(groups.value - with_null, most)), 1)


def _rows_by_own_conditions(selection: Selection, field: Field) -> float:
    """The rows of the files that are left for which the conditions on a column are true."""
    matching = float(matching_rows(selection))
    on_field = _condition_on(selection.known.pruning.predicate, field)
    if not on_field:
        return max(selection.possible_rows, matching)
    text = spell(all_of(*on_field))
    rows = next((line.rows for line in selection.conditions if line.text == text), matching)
    return max(min(rows, selection.possible_rows), matching)


def _add_histogram(selection: Selection, field: Field, statistics: dict[str, Any]) -> None:
    if "ndv" not in statistics or base_type(field.type) == "boolean":
        return
    bounds = selection.known.files.bounds(field)
    having = selection.known.pruning.keep & bounds.has_numbers
    lower, upper = (
        each.filter(pa.array(having)).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        for each in (bounds.lower, bounds.upper)
    )
    low, high = (float(_plain(field, statistics[end])) for end in ("min", "max"))
    within = (upper >= low) & (lower <= high)
    if not within.any():
        return
    state = selection.known.state
    found = histogram(
        np.clip(lower[within], low, high),
        np.clip(upper[within], low, high),
        selection.by_file[having][within],
        None if state is None else state.quantiles.get(field.id),
        ndv=statistics["ndv"],
        whole=base_type(field.type) in _WHOLE - {"decimal"},
    )
    if found is not None:
        statistics["histogram"] = found.plain()
