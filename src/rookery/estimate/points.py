"""Rows of each file that have one of some values: by frequent values, quantiles, or distinct values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rookery.estimate.axis import Floats
from rookery.estimate.density import share_by_density
from rookery.estimate.known import KnownColumn, KnownTable
from rookery.estimate.regions import Key
from rookery.model import In, Value
from rookery.prune import by_theta
from rookery.prune.bounds import might_match
from rookery.prune.cascade import Pruning
from rookery.values.row_filter import true_values

EQUAL_SHARE = 0.005  # of a value in a column of which nothing is known
_ONE_BY_ONE = 8  # values; more are looked up together
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often a value occurs, as a share of all values that are not null, and the source of it."""

    share: float
    source: str
    low: float = 0.0
    high: float = math.inf
    is_rare: bool = False  # not among the frequent values: it occurs as often as others like it


def point_rows(table: KnownTable, column: KnownColumn, keys: Sequence[Key]) -> tuple[Floats, str]:
    """Return about how many rows of each file have one of these values, and the source of that number."""
    if len(keys) > _ONE_BY_ONE:
        return _together(table, column, keys)
    total = np.zeros(len(table.rows))
    sources: dict[str, None] = {}
    for key in keys:
        rows, source = _one(table, column, key)
        total += rows
        sources[source] = None
    return total, ", ".join(sources)


def _one(table: KnownTable, column: KnownColumn, key: Key) -> tuple[Floats, str]:
    bounded, candidates = _candidates(table, column, [key])
    if not bounded.any():
        return np.zeros(len(table.rows)), "bounds"
    if column.by_partition[bounded].all():
        return np.where(bounded, column.values, 0.0), "partitions"
    frequency = frequency_of(table, column, key)
    here = candidates & table.described
    if frequency.is_rare and here.any():
        by_files = _rare(table, column, bounded & table.described, here)
        if by_files is not None:
            share = by_files / max(float(column.values[table.described].sum()), 1.0)
            ceiling = frequency.high if math.isfinite(frequency.high) else 1.0
            frequency = Frequency(min(share, max(ceiling, 0.0)), frequency.source)
    return _spread(table, column, frequency.share, candidates), frequency.source


def _together(table: KnownTable, column: KnownColumn, keys: Sequence[Key]) -> tuple[Floats, str]:
    _, candidates = _candidates(table, column, keys)
    frequencies = [frequency_of(table, column, key) for key in keys]
    share = min(sum(each.share for each in frequencies), 1.0)
    sources = dict.fromkeys(each.source for each in frequencies)
    return _spread(table, column, share, candidates), ", ".join(sources)


def frequency_of(table: KnownTable, column: KnownColumn, key: Key) -> Frequency:
    """Return how often a value occurs among all rows that are described."""
    frequencies = column.frequencies
    if frequencies is not None and frequencies.seen:
        at = np.flatnonzero(_equal(column, key, frequencies.values))
        seen = frequencies.seen
        if len(at):
            counts = (frequencies.counts, frequencies.low, frequencies.high)
            about, low, high = (float(each[at].sum()) / seen for each in counts)
            return Frequency(about, "top-k", low, high)
        most = frequencies.error / seen
        if frequencies.is_complete:
            return Frequency(0.0, "top-k", 0.0, 0.0)
        others = max((column.ndv.value if column.ndv else 0.0) - len(frequencies.values), 1.0)
        return Frequency(min(frequencies.rest / seen / others, most), "top-k", 0.0, most, is_rare=True)
    step = _step_of(column, key)
    if step:
        return Frequency(step, "histogram")
    dense = share_by_density(column, column.axis.place(key))
    return Frequency(dense, "histogram") if dense is not None else _by_distinct(column)


def _step_of(column: KnownColumn, key: Key) -> float:
    distribution = column.distribution
    if distribution is None:
        return 0.0
    step = distribution.share_of(column.axis.place(key))
    return step if step > distribution.error else 0.0


def _by_distinct(column: KnownColumn) -> Frequency:
    if column.ndv is not None and column.ndv.value >= 1:
        return Frequency(1 / column.ndv.value, "distinct values", is_rare=True)
    low, high = column.ends
    unit = column.axis.unit
    if unit and math.isfinite(low):
        return Frequency(max(unit / (high - low + unit), EQUAL_SHARE), "bounds")
    return Frequency(EQUAL_SHARE, "default")


def _equal(column: KnownColumn, key: Key, values: pa.Array) -> NDArray[np.bool_]:
    return true_values(In(column.field, (value_of(column, key),)), values)


def value_of(column: KnownColumn, key: Key) -> Value:
    """Return a predicate's value again from its place in the order."""
    if column.field.type == "string":
        text: str = key.decode("utf-8", "surrogatepass")
        return text
    return bool(key) if column.field.type == "boolean" else key


def _candidates(
    table: KnownTable, column: KnownColumn, keys: Sequence[Key]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The files that may have one of the values: by their bounds, and by their distinct values too."""
    leaf = In(column.field, tuple(value_of(column, key) for key in keys))
    bounded = might_match(leaf, column.bounds)
    pruning = table.pruning
    view = Pruning(
        table=pruning.table,
        snapshot=pruning.snapshot,
        files=table.files,
        predicate=leaf,
        keep=bounded.copy(),
        alone=pruning.alone,
    )
    try:
        found, _ = by_theta.stage(view)
    except Exception as error:  # noqa: BLE001  # a damaged segment makes an estimate worse, not a failure
        table.notes.append(f"distinct values are not used: {error}")
        found = bounded
    return bounded, bounded & found


def _rare(
    table: KnownTable, column: KnownColumn, bounded: NDArray[np.bool_], here: NDArray[np.bool_]
) -> float | None:
    """How many rows have a value that is not frequent, by the files in which it may occur."""
    files, having = int(bounded.sum()), int(here.sum())
    distinct = table.distinct_in(column.field, here) if having < _HALF * table.described.sum() else None
    if having < files and not _is_clustered(table, column):
        # Rows in random files: so many are expected where a share of the files has none.
        return max(-files * math.log1p(-having / files), float(having))
    if distinct is None or distinct < 1:
        return None
    frequencies = column.frequencies
    values = float(column.values[here].sum())
    if frequencies is not None and having == int(table.described.sum()):
        return None  # the share of other values is known better
    return max(values / distinct, float(having if having < files else 0))


def _is_clustered(table: KnownTable, column: KnownColumn) -> bool:
    """Whether equal values are in the same files more often than by chance, as bounds show."""
    low, high = column.ends
    known = table.described & np.isfinite(column.lower) & np.isfinite(column.upper)
    span = high / 2 - low / 2  # the greatest doubles are infinitely far apart
    if not known.any() or not span > 0:
        return False
    widths = (column.upper[known] / 2 - column.lower[known] / 2) / span
    return float(np.average(widths, weights=np.maximum(column.values[known], 1.0))) < _HALF


def _spread(table: KnownTable, column: KnownColumn, share: float, candidates: NDArray[np.bool_]) -> Floats:
    """Rows of a value in the files that may have it, from its share of all values."""
    described = candidates & table.described
    known = float(column.values[table.described].sum())
    here = float(column.values[described].sum())
    if here > 0:
        density = min(share * known / here, 1.0)
    elif known > 0 and candidates.any():  # a new value, in new files alone
        density = min(share * known / max(float(column.values[candidates].sum()), 1.0), 1.0)
    else:
        density = share
    return np.where(candidates, column.values * density, 0.0)
