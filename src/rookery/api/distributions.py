"""How the values of a column are spread over its rows: quantiles, a small histogram, frequent values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from rookery.api.values import plain
from rookery.model import Field, Sheet, counted
from rookery.model.type_names import base_type
from rookery.sidecar import State

__all__ = ["RowStats", "TopValue"]

RANKS = ("0", "0.25", "0.5", "0.75", "1")
BUCKETS = 16
TOP = 10
_BARS = "▁▂▃▄▅▆▇█"
_DIGITS = Context(prec=80)  # Iceberg's decimals have up to 38, and doubles round them
_FRACTIONAL = ("float", "double", "decimal", "string")


@dataclass(frozen=True, slots=True)
class TopValue:
    """A frequent value, and how often it occurs."""

    value: str
    count: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RowStats:
    """Distributions of the rows that were read."""

    rows: int
    stale: float  # the share of those rows removed since
    quantiles: Mapping[str, Any]  # by rank, "0" to "1"
    rank_error: float | None
    histogram: tuple[float, ...]  # the share of rows in equal ranges from the least to the greatest
    top: tuple[TopValue, ...]


def row_stats(state: State | None, field: Field) -> RowStats | None:
    """Return how a column's values are spread, if a state knows."""
    if state is None or state.header.rows is None:
        return None
    quantiles, frequent = state.quantiles.get(field.id), state.frequent.get(field.id)
    if quantiles is None and frequent is None:
        return None
    values = quantiles.at([float(rank) for rank in RANKS]) if quantiles is not None else []
    top = frequent.top(TOP) if frequent is not None else []
    return RowStats(
        rows=state.header.rows.rows_seen,
        stale=state.header.rows.stale,
        quantiles={rank: _quantile(field.type, value) for rank, value in zip(RANKS, values, strict=False)},
        rank_error=quantiles.rank_error if quantiles is not None else None,
        histogram=tuple(quantiles.histogram(BUCKETS)) if quantiles is not None else (),
        top=tuple(TopValue(value, count.value, count.low, count.high) for value, count in top),
    )


def _quantile(type_name: str, value: Any) -> Any:
    """A quantile as text of the type; the sketch holds numbers as floats, except its ends."""
    kind = base_type(type_name)
    if kind == "decimal":
        scale = int(type_name.rstrip(")").rpartition(",")[2])
        value = _DIGITS.quantize(Decimal(value), Decimal(1).scaleb(-scale))
    return plain(kind, value if kind in _FRACTIONAL else int(value))


def distribution_sheet(columns: Mapping[str, RowStats]) -> Sheet:
    """Draw the distribution of each column."""
    header = ("column", "histogram", "p25", "p50", "p75", "most frequent", "from")
    rows = tuple(_line(name, rows) for name, rows in columns.items())
    return Sheet("distribution of values", header, rows)


def _line(name: str, rows: RowStats) -> tuple[str, ...]:
    top = ", ".join(f"{item.value} {item.count:,.0f}" for item in rows.top[:3]) or "–"
    source = [counted(rows.rows, "row")]
    if rows.rank_error is not None:
        source.append(f"ranks ±{rows.rank_error:.1%}")
    if rows.stale:
        source.append(f"{rows.stale:.0%} of them removed since")
    quarters = [str(rows.quantiles.get(rank, "–")) for rank in ("0.25", "0.5", "0.75")]
    return (name, bars(rows.histogram), *quarters, top, ", ".join(source))


def bars(shares: tuple[float, ...]) -> str:
    """Draw shares as bars.

    >>> bars((0.1, 0.2, 0.7))
    '▂▃█'
    """
    peak = max(shares, default=0.0)
    return "".join(_BARS[min(int(share / peak * 8), 7)] for share in shares) if peak else "–"
