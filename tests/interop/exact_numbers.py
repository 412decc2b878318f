"""A table's numbers as Spark counts them over all rows, and where a report contradicts them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import rookery
from rookery.api.lake import Lake
from rookery.api.statistics import ColumnStats, StatsReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Exact:
    """What is true of a column; NaN is neither least nor greatest."""

    least: Any
    greatest: Any
    nulls: int
    distinct: int
    has_empty: bool  # the empty text or binary, which sketches pass over


def exact_numbers(
    spark: SparkSession, name: str, columns: Mapping[str, str], where: str = "true"
) -> dict[str, Exact]:
    """Count over all rows; *columns* has Iceberg's type of each."""
    parts = []
    for number, (column, kind) in enumerate(columns.items()):
        quoted = ".".join(f"`{part}`" for part in column.split("."))
        numbers = f"IF(isnan({quoted}), NULL, {quoted})" if kind in ("float", "double") else quoted
        # Sketches go by bytes: there are two zeros.
        bits = f"CAST({quoted} AS string)" if kind in ("float", "double") else quoted
        empty = f"coalesce(bool_or(length({quoted}) = 0), false)" if kind in ("string", "binary") else "false"
        parts += [
            f"min({numbers}) AS a{number}",
            f"max({numbers}) AS b{number}",
            f"count_if({quoted} IS NULL) AS c{number}",
            f"count(DISTINCT {bits}) AS d{number}",
            f"{empty} AS e{number}",
        ]
    (row,) = spark.sql(f"SELECT {', '.join(parts)} FROM {name} WHERE {where}").toArrow().to_pylist()
    return {
        column: Exact(*(row[f"{letter}{number}"] for letter in "abcde"))
        for number, column in enumerate(columns)
    }


def contradictions(report: StatsReport, exact: Mapping[str, Exact]) -> Iterator[str]:
    """Yield what a report says that is not so; what it leaves open contradicts nothing."""
    for column in report.columns:
        if column.name in exact:
            true = exact[column.name]
            for found in _of_column(column, true, report.rows):
                yield f"{column.name}: {found}; {column} of {true}"


def _of_column(column: ColumnStats, true: Exact, rows: int) -> Iterator[str]:
    if column.nulls is not None and column.nulls != true.nulls:
        yield "nulls"
    for which, said, is_exact, value, sign in (
        ("min", column.min, column.min_exact, true.least, -1),
        ("max", column.max, column.max_exact, true.greatest, 1),
    ):
        if said is None:
            if which not in column.unknown and value is not None:
                yield f"{which} is said to be none"
            continue
        if which in column.unknown:
            yield f"{which} is known and unknown"
        if is_exact is None:
            yield f"{which} does not tell whether it is exact"
        elif is_exact and comparable(said, value) != value:
            yield f"{which} is not exact"
        elif value is not None and _beyond(comparable(said, value), value, sign):
            yield f"{which} is no bound"
    counted = true.distinct - true.has_empty
    if column.ndv is None:
        return
    if column.ndv == 0 and counted:
        yield "no distinct values"
    if column.ndv > rows:
        yield "more distinct values than rows"
    if column.kind == "exact" and column.ndv != counted:
        yield "distinct values"
    elif counted < 4096 and not (
        (column.ndv_low or 0) <= counted <= (math.inf if column.ndv_high is None else column.ndv_high)
    ):
        yield "bounds of distinct values"


def _beyond(said: Any, value: Any, sign: int) -> bool:
    return bool(said > value if sign < 0 else said < value)


def comparable(said: Any, value: Any) -> Any:
    """A value of a report in the form of Spark's."""
    if isinstance(value, datetime):
        found = datetime.fromisoformat(said)
        return found if value.tzinfo is not None else found.replace(tzinfo=None)
    if isinstance(value, date):
        return date.fromisoformat(said)
    if isinstance(value, bytes):
        return bytes.fromhex(said)
    return Decimal(said) if isinstance(value, Decimal) else said


def registered_ndvs(name: str, lake: Lake) -> dict[int, int]:
    """What is registered for the current snapshot, by field id."""
    metadata = lake.load(name).metadata
    return {
        blob.fields[0]: int((blob.properties or {})["ndv"])
        for file in metadata.statistics
        if file.snapshot_id == metadata.current_snapshot_id
        for blob in file.blob_metadata
    }


def row_contradictions(
    spark: SparkSession, name: str, lake: Lake, histograms: Sequence[str], top: Sequence[str]
) -> Iterator[str]:
    """Yield where quantiles and frequent values of a table that was just analysed are not so."""
    columns = {column.name: column for column in rookery.table(name, lake).stats().columns}
    wanted = [*(f"`{column}`" for column in histograms), *(f"CAST(`{column}` AS string)" for column in top)]
    rows = spark.sql(f"SELECT {', '.join(wanted)} FROM {name}").collect()
    for place, column in enumerate(histograms):
        spread = columns[column].rows
        if spread is None or spread.rows != len(rows):
            yield f"{column}: {spread} is not of {len(rows)} rows"
            continue
        values = [row[place] for row in rows]
        yield from _quantile_contradictions(column, values, spread.quantiles, spread.rank_error or 0)
    for place, column in enumerate(top, len(histograms)):
        spread = columns[column].rows
        true = Counter(row[place] for row in rows if row[place] is not None)
        said = {item.value: item for item in spread.top} if spread is not None else {}
        for value, item in said.items():
            if not item.low <= true[value] <= item.high:
                yield f"{column}: {item} of {true[value]}"
        if true and max(true.values()) > max((item.high for item in said.values()), default=0):
            yield f"{column}: the most frequent value is missing in {said} of {true}"


def _quantile_contradictions(
    column: str, found: Sequence[Any], said: Mapping[str, Any], error: float
) -> Iterator[str]:
    values = sorted(each for each in found if each is not None and each == each)  # NaN is unlike itself
    if not values:
        if said:
            yield f"{column}: {said} of no values"
        return
    if comparable(said["0"], values[0]) != values[0] or comparable(said["1"], values[-1]) != values[-1]:
        yield f"{column}: the ends of {said} are not {values[0]} and {values[-1]}"
    for rank, told in said.items():
        value = comparable(told, values[0])
        below = sum(each < value for each in values) / len(values)
        upto = sum(each <= value for each in values) / len(values)
        if not below - 3 * error <= float(rank) <= upto + 3 * error:
            yield f"{column}: {value} at {rank} stands from {below} to {upto}"
