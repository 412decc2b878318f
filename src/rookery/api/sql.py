"""`rookery.sql`: the statements that Spark refuses for such tables, and all others unchanged."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rookery.api.lake import Lake
from rookery.api.statistics import analyze

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAME = r"(?:`(?:[^`]|``)+`|[\w$-]+)"
_ANALYZE = re.compile(
    rf"\s*ANALYZE\s+TABLE\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})*)\s+COMPUTE\s+STATISTICS\s+FOR\s+"
    rf"(?:ALL\s+COLUMNS|COLUMNS\s+(?P<columns>{_NAME}(?:\s*[.,]\s*{_NAME})*))\s*;?\s*",
    re.I,
)


def sql(spark: SparkSession, text: str, lake: Lake | None = None) -> DataFrame:
    """Run a statement. `ANALYZE TABLE … FOR COLUMNS` is ours; the rest goes to `spark.sql`.

    The answer to ANALYZE is a row a column: `column`, `ndv`, `ndv_low`, `ndv_high`, `kind`.
    """
    match = _ANALYZE.fullmatch(text)
    if match is None:
        return spark.sql(text)
    columns = [_unquote(name) for name in (match.group("columns") or "").split(",") if name.strip()]
    report = analyze(spark, re.sub(r"\s*\.\s*", ".", match.group("table")), columns=columns, lake=lake)
    rows = [
        (column.name, column.ndv, column.ndv_low, column.ndv_high, column.kind) for column in report.columns
    ]
    return spark.createDataFrame(
        rows, "column string, ndv double, ndv_low double, ndv_high double, kind string"
    )


def _unquote(name: str) -> str:
    """Take the backquotes off a column's name.

    >>> _unquote(" `a b` ")
    'a b'
    """
    return re.sub(r"`((?:[^`]|``)+)`", lambda match: match.group(1).replace("``", "`"), name.strip())
