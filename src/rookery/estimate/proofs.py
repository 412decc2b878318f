"""What is proved of the matching rows of each file: at least and at most so many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.estimate.axis import Floats
from rookery.estimate.known import KnownTable, is_known_type
from rookery.model import Always, And, IsNaN, IsNull, Leaf, Like, Never, Or, Predicate
from rookery.prune.bounds import Bounds, might_match, must_match
from rookery.prune.by_bounds import sure_files
from rookery.prune.cascade import Pruning
from rookery.values.canonical import form_of, is_float
from rookery.values.row_filter import true_values


@dataclass(frozen=True, slots=True, eq=False)
class Proved:
    """At least and at most so many rows of each file match, deleted ones among them."""

    least: Floats
    most: Floats


def proved(table: KnownTable, predicate: Predicate) -> Proved:
    """Return what bounds, counts and partition values prove of a predicate."""
    known = _proved(table, predicate)
    # A row of a file that does not stand alone may be replaced by another file.
    return Proved(np.where(table.pruning.alone, known.least, 0.0), known.most)


def _proved(table: KnownTable, predicate: Predicate) -> Proved:
    rows = table.rows
    nothing, everything = np.zeros(len(rows)), rows.copy()
    if isinstance(predicate, Always):
        return Proved(everything, rows)
    if isinstance(predicate, Never):
        return Proved(nothing, nothing)
    if isinstance(predicate, And | Or):
        parts = [_proved(table, part) for part in predicate.parts]
        least = np.array([part.least for part in parts])
        most = np.array([part.most for part in parts])
        if isinstance(predicate, And):
            overlap = least.sum(axis=0) - (len(parts) - 1) * rows
            return Proved(np.maximum(overlap, 0.0), most.min(axis=0))
        return Proved(least.max(axis=0), np.minimum(most.sum(axis=0), rows))
    if not isinstance(predicate, Leaf) or not is_known_type(predicate.field):
        return Proved(nothing, everything)
    if table.pruning.table.maps_names:  # a name may now be that of another column
        return Proved(nothing, everything)
    return _leaf(predicate, table.bounds(predicate.field)[0], rows)


def _leaf(leaf: Leaf, bounds: Bounds, rows: Floats) -> Proved:
    if isinstance(leaf, IsNull | IsNaN):
        return _counted(leaf, bounds, rows)
    nulls = np.where(bounds.nulls >= 0, bounds.nulls, 0)
    most = np.where(might_match(leaf, bounds), rows - nulls, 0.0)
    least = np.where(must_match(leaf, bounds), rows, 0.0)
    single, is_true = _single_value(leaf, bounds)
    return Proved(
        np.where(single, np.where(is_true, rows, 0.0), least),
        np.where(single, np.where(is_true, rows, 0.0), np.maximum(most, least)),
    )


def _counted(leaf: IsNull | IsNaN, bounds: Bounds, rows: Floats) -> Proved:
    if isinstance(leaf, IsNaN) and not is_float(leaf.field.type):
        counts = np.zeros(len(rows), np.int64)
    else:
        counts = bounds.nulls if isinstance(leaf, IsNull) else bounds.nans
    least, most = np.where(counts >= 0, counts, 0.0), np.where(counts >= 0, counts, rows)
    least, most = np.minimum(least, rows), np.minimum(most, rows)
    return Proved(rows - most, rows - least) if leaf.negated else Proved(least, most)


def _single_value(leaf: Leaf, bounds: Bounds) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The files all of whose rows have one value, and whether the leaf is true of it."""
    same = np.asarray(pc.equal(bounds.lower, bounds.upper).fill_null(False).to_numpy(zero_copy_only=False))
    single: NDArray[np.bool_] = same & (bounds.nulls == 0) & (bounds.nans == 0)
    if isinstance(leaf, Like) and leaf.field.type != "string":
        return np.zeros(len(single), bool), single
    if not single.any():
        return single, single
    is_true = np.zeros(len(single), bool)
    numbers = np.flatnonzero(single)
    is_true[numbers] = true_values(leaf, bounds.lower.take(numbers).cast(form_of(leaf.field.type)))
    return single, is_true


def with_cascade(table: KnownTable, known: Proved) -> Proved:
    """Add what the cascade has proved: skipped files, and rows that indexes have counted."""
    pruning = table.pruning
    alone = pruning.alone
    most = np.where(pruning.keep, known.most, 0.0)
    least = np.where(alone, np.minimum(known.least, most), 0.0)
    counts, exact = index_counts(pruning)
    covered = counts >= 0
    most = np.where(covered, np.minimum(most, counts), most)
    exact &= alone
    least = np.where(exact, np.minimum(counts, most), np.minimum(least, most))
    return Proved(least, most)


def index_counts(pruning: Pruning) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return how many rows of each file indexes leave, -1 if unknown, and which counts are exact."""
    counts = np.full(len(pruning.files), -1, np.int64)
    exact = np.zeros(len(pruning.files), bool)
    if pruning.table.maps_names:
        return counts, exact
    sure = cache(partial(sure_files, pruning))  # segments mostly leave the same undecided
    for place in pruning.files.places:
        rows = pruning.rows.get(place.segment)
        if rows is not None:
            covered = rows.covered[place.ordinals]
            numbers = place.numbers[covered]
            counts[numbers] = rows.counts[place.ordinals[covered]]
            exact[numbers] = sure(rows.undecided)[numbers]
    return counts, exact
