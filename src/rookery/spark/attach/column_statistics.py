"""The statistics that Spark's optimizer uses, of the files that a scan has left.

Only of types that its estimation knows: it fails on a range of any other column that has statistics, and
takes a number column without bounds for empty.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rookery.model import Field, Snapshot
from rookery.model.type_names import base_type, scale_of
from rookery.prune.bounds import Bounds
from rookery.prune.fileset import FileSet
from rookery.sketch.quantiles import Quantiles
from rookery.spark.attach.histograms import histogram

_NUMBERS = frozenset({"boolean", "int", "long", "float", "double", "decimal", "date", "timestamptz"})
_WHOLE = frozenset({"int", "long", "date", "timestamptz", "decimal"})
_TEXT = frozenset({"string", "binary"})
_MOSTLY_DISTINCT = 0.5  # of rows: new rows of such a column have new values


def live_rows(files: FileSet, keep: NDArray[np.bool_], snapshot: Snapshot) -> int:
    """Return about how many rows the files that are left have after deletes."""
    rows = int(files.files["rows"].to_numpy()[keep].sum())
    try:
        total, deleted = (
            int(snapshot.summary.get(name, "0")) for name in ("total-records", "total-position-deletes")
        )
    except ValueError:
        return rows
    return rows if total <= 0 else max(round(rows * max(total - deleted, 0) / total), min(rows, 1))


def column_statistics(
    files: FileSet, keep: NDArray[np.bool_], fields: Sequence[Field], rows: int, filtered: Container[int] = ()
) -> dict[str, dict[str, Any]]:
    """Return the statistics of columns in the files that are left, by column id.

    Those of *filtered* columns have a histogram.
    """
    assert files.state is not None
    state = files.store.sketched_state(files.state.name)
    described = int(files.files["rows"].to_numpy()[: len(files) - files.fresh].sum())
    total = int(files.files["rows"].to_numpy().sum())
    known = {}
    for field in fields:
        if base_type(field.type) in _NUMBERS | _TEXT and not field.repeated:
            bounds = files.bounds(field)
            statistics = _column(field, bounds, keep, rows)
            if statistics is not None:
                ndv = state.ndv(field.id) if field.id in state.thetas else None
                _add_ndv(statistics, field, ndv, (rows, total, described))
                if field.id in filtered:
                    _add_histogram(statistics, field, bounds, keep, state.quantiles.get(field.id))
                known[str(field.id)] = statistics
    return known


def _add_histogram(
    statistics: dict[str, Any],
    field: Field,
    bounds: Bounds,
    keep: NDArray[np.bool_],
    quantiles: Quantiles | None,
) -> None:
    if "min" not in statistics or base_type(field.type) == "boolean":
        return
    having = keep & bounds.has_numbers
    lower, upper = (
        each.filter(pa.array(having)).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        for each in (bounds.lower, bounds.upper)
    )
    values = np.maximum(bounds.values - np.maximum(bounds.nulls, 0) - np.maximum(bounds.nans, 0), 0)
    found = histogram(
        lower,
        upper,
        values[having].astype(np.float64),
        quantiles,
        ndv=statistics.get("ndv", 0),
        whole=base_type(field.type) in _WHOLE - {"decimal"},
    )
    if found is not None:
        statistics["histogram"] = found.plain()


def _column(field: Field, bounds: Bounds, keep: NDArray[np.bool_], rows: int) -> dict[str, Any] | None:
    nulls = _nulls(bounds, keep, rows)
    if nulls is None:
        return None
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
    if isinstance(low, float) and not (math.isfinite(low) and math.isfinite(high)):
        return None  # a share of an infinite range is nothing that Spark could compute
    return statistics | {"min": _plain(field, low), "max": _plain(field, high)}


def _plain(field: Field, value: Any) -> Any:
    if base_type(field.type) == "decimal":
        return str(value)
    return value


def _scale(field: Field) -> int:
    return scale_of(field.type) if base_type(field.type) == "decimal" else 0


def _nulls(bounds: Bounds, keep: NDArray[np.bool_], rows: int) -> int | None:
    """How many values are null, by the share in the files that state it; None if none does."""
    stating = keep & (bounds.nulls >= 0) & (bounds.values > 0)
    values = int(bounds.values[stating].sum())
    if not values:
        return None if keep.any() else 0
    return min(round(rows * int(bounds.nulls[stating].sum()) / values), rows)


def _add_ndv(statistics: dict[str, Any], field: Field, ndv: int | None, counts: tuple[int, int, int]) -> None:
    """Add the number of distinct values among the rows that are left.

    Of *ndv* in the described rows; a column in which most are distinct has grown with the table.
    """
    if ndv is None:
        return
    rows, total, described = counts
    expected = float(ndv)
    if described and ndv > _MOSTLY_DISTINCT * described:
        expected *= total / described
    if rows < total and expected > 0:
        # The expected number of distinct values among some rows, each value as frequent as any other.
        expected *= 1 - (1 - min(rows / total, 1.0)) ** max(total / expected, 1.0)
    most = float(rows - statistics["nulls"])
    if base_type(field.type) in _WHOLE and "min" in statistics:
        width = Decimal(statistics["max"]) - Decimal(statistics["min"])
        most = min(most, float(width.scaleb(_scale(field))) + 1)
    if most >= 1:  # a join of two columns without values would divide by 0
        statistics["ndv"] = max(math.ceil(min(expected, most)), 1)
