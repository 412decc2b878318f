"""How many distinct combinations of columns the matching rows have: the groups of a GROUP BY."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.estimate.frequencies import Frequencies
from rookery.estimate.known import KnownColumn, KnownTable, column_sets, is_known_type
from rookery.estimate.regions import region_of
from rookery.estimate.selection import Selection
from rookery.model import ALWAYS, And, Certainty, Estimate, Field, Predicate, all_of, leaves_of
from rookery.values.canonical import is_float
from rookery.where.to_sql import spell

_MOSTLY_DISTINCT = 0.5  # of rows: new rows of such columns have new values
_UNKNOWN_SHARE = 0.1  # of rows: distinct values of a column of which nothing is known


def estimate_groups(selection: Selection, fields: Sequence[Field]) -> tuple[Estimate, str]:
    """Return the number of distinct combinations, null counting as a value, and its source."""
    table, rows = selection.known, selection.rows
    if rows.high == 0:
        return Estimate.exact(0), ""
    by_files = _by_single_values(selection, fields)
    if by_files is not None:
        return by_files
    distinct, source = _distinct(table, fields)
    if table.pruning.predicate == ALWAYS and table.is_current:
        capped = min(distinct.value, max(rows.value, 1.0))
        kind = distinct.kind if capped == distinct.value else Certainty.SKETCHED
        return Estimate(capped, distinct.low, min(distinct.high, rows.high), kind), source
    value = _expected(selection, fields, distinct.value)
    low = 1.0 if rows.low >= 1 else 0.0
    fresh = float(table.rows[~table.described].sum())
    high = min(distinct.high + fresh, rows.high) if table.state is not None else rows.high
    return Estimate(min(max(value, low), high), low, max(high, low), Certainty.SKETCHED), source


def _by_single_values(selection: Selection, fields: Sequence[Field]) -> tuple[Estimate, str] | None:
    """The combinations of files that have one value of each column throughout, such as partitions."""
    table = selection.known
    if table.pruning.table.maps_names or not all(map(is_known_type, fields)):
        return None
    possible = selection.most > 0
    columns = [table.column(field) for field in fields]
    single = np.logical_and.reduce([_is_single(column) for column in columns])
    if not (single | ~possible).all():
        return None
    codes = np.zeros(len(possible), np.int64)
    for column in columns:
        lower = column.bounds.lower
        if pa.types.is_floating(lower.type):
            lower = pc.add(lower, 0.0)  # -0.0 becomes 0.0, which is the same value to GROUP BY
        encoded = lower.dictionary_encode(null_encoding="encode")
        codes = np.unique(
            codes * (len(encoded.dictionary) + 1) + np.asarray(encoded.indices), return_inverse=True
        )[1]
    least = len(np.unique(codes[possible & (selection.least > 0)]))
    most = len(np.unique(codes[possible]))
    partitioned = all((column.by_partition | ~possible).all() for column in columns)
    source = "partitions" if partitioned else "bounds"
    if least == most:
        return Estimate.exact(most), source
    about = len(np.unique(codes[possible & (selection.by_file >= 0.5)]))
    return Estimate(min(max(about, least, 1), most), least, most, Certainty.SKETCHED), source


def _is_single(column: KnownColumn) -> NDArray[np.bool_]:
    """The files in which a column has one value, or null, throughout."""
    bounds = column.bounds
    same = np.asarray(pc.equal(bounds.lower, bounds.upper).fill_null(False).to_numpy(zero_copy_only=False))
    null = (bounds.nulls == bounds.values) & np.asarray(bounds.lower.is_null())
    return np.asarray((same & (bounds.nulls == 0) & (bounds.nans == 0)) | null)


def _distinct(table: KnownTable, fields: Sequence[Field]) -> tuple[Estimate, str]:
    """The distinct combinations in the whole table."""
    ids = {field.id for field in fields}
    for number, members in column_sets(table).items():
        assert table.state is not None
        if set(members) == ids and len(fields) > 1:
            joint = table.state.thetas[number].estimate()
            whole = Field(number, "", table.state.header.types[number])
            exact = not any(_has_nulls(table, field) or is_float(field.type) for field in fields)
            return _grown(table, joint, exact=exact and _is_complete(table, whole)), "column set"
    parts = [_of_column(table, field) for field in fields]
    sources = dict.fromkeys(source for _, source in parts)
    if len(parts) == 1:
        return parts[0]
    values, lows, highs = ([getattr(part, end) for part, _ in parts] for end in ("value", "low", "high"))
    total = float(table.rows.sum())
    value = min(math.prod(values), total)
    product = Estimate(value, max(lows), min(math.prod(highs), total), Certainty.SKETCHED)
    return product, ", ".join(sources)


def _of_column(table: KnownTable, field: Field) -> tuple[Estimate, str]:
    column = table.column(field) if is_known_type(field) else None
    total = float(table.rows.sum())
    if column is None or column.ndv is None:
        most = total
        if column is not None and column.axis.unit and math.isfinite(column.ends[0]):
            most = min(total, (column.ends[1] - column.ends[0]) / column.axis.unit + 1)
        return Estimate(
            min(most, max(total * _UNKNOWN_SHARE, 1.0)), 0.0, total, Certainty.SKETCHED
        ), "default"
    known = bool((column.bounds.nulls >= 0).all()) and _is_complete(table, field)
    known &= not is_float(field.type) and not _has_empty(column)
    more = 1 if _has_nulls(table, field) else 0
    with_null = Estimate(
        column.ndv.value + more, column.ndv.low + more, column.ndv.high + more, column.ndv.kind
    )
    return _grown(table, with_null, exact=known), "distinct values"


def _is_complete(table: KnownTable, field: Field) -> bool:
    """Whether the distinct values of every file are known."""
    return table.state is not None and field.id in table.state.complete([field])


def _has_empty(column: KnownColumn) -> bool:
    """Whether there may be empty texts, which are not counted as distinct values."""
    if column.axis.text is None:
        return False
    lower = column.bounds.lower.filter(pa.array(column.bounds.has_values))
    return bool(lower.null_count or pc.any(pc.equal(lower, b"")).as_py())


def _has_nulls(table: KnownTable, field: Field) -> bool:
    return bool((table.column(field).bounds.nulls != 0).any())


def _grown(table: KnownTable, distinct: Estimate, *, exact: bool) -> Estimate:
    """The number for all files, of which some are newer than the state."""
    described, total = float(table.rows[table.described].sum()), float(table.rows.sum())
    value = distinct.value
    if described and value > _MOSTLY_DISTINCT * described:
        value *= total / described
    kind = distinct.kind if exact and table.is_current else Certainty.SKETCHED
    return Estimate(value, min(distinct.low, value), max(distinct.high, value), kind)


def _expected(selection: Selection, fields: Sequence[Field], distinct: float) -> float:
    """How many of the distinct combinations are expected among the matching rows."""
    total, rows = max(selection.table_rows, 1.0), selection.rows.value
    for field in fields:
        on_field = _condition_on(selection.known.pruning.predicate, field)
        if on_field is None:
            continue
        region = region_of(on_field)
        text = spell(on_field)
        line = next((each for each in selection.conditions if each.text == text), None)
        share = line.selectivity if line is not None else 1.0
        ndv = selection.known.column(field).ndv if is_known_type(field) else None
        left = len(region.points) if region is not None and region.points is not None else None
        wanted = left / ndv.value if left is not None and ndv is not None and ndv.value else share
        distinct = max(distinct * min(wanted, 1.0), 1.0)
        total = max(total * share, rows)
    frequencies = selection.known.column(fields[0]).frequencies if is_known_type(fields[0]) else None
    if len(fields) == 1 and frequencies is not None and total == selection.table_rows:
        return _drawn_by_frequency(frequencies, distinct, min(rows / total, 1.0))
    return _drawn(distinct, rows, total)


def _drawn_by_frequency(frequencies: Frequencies, distinct: float, share: float) -> float:
    """The same, where it is known how frequent the values are."""
    missed = np.power(1 - share, frequencies.counts)
    others = max(distinct - len(frequencies.counts), 0.0)
    return float((1 - missed).sum()) + _drawn(others, share * frequencies.rest, frequencies.rest)


def _condition_on(predicate: Predicate, field: Field) -> Predicate | None:
    """The parts of a predicate, joined by AND, that are on one column alone."""
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    own = [part for part in parts if {leaf.field.id for leaf in leaves_of(part)} == {field.id}]
    return all_of(*own) if own else None


def _drawn(distinct: float, rows: float, total: float) -> float:
    """The expected number of distinct values among some rows, each value as frequent as any other."""
    if distinct <= 0 or total <= 0 or rows <= 0:
        return 0.0
    if rows >= total:
        return min(distinct, rows)
    each = max(total / distinct, 1.0)
    return min(distinct * -math.expm1(each * math.log1p(-min(rows / total, 1 - 1e-12))), rows)
