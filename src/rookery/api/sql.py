"""`rookery.sql`: the statements that Spark refuses for such tables, and all others unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rookery.api.lake import Lake, connect
from rookery.api.statistics import analyze, table
from rookery.model import TableName
from rookery.tables import configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAME = r"(?:`(?:[^`]|``)+`|[\w$-]+)"
_DOTTED = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_ANALYZE = re.compile(
    rf"\s*ANALYZE\s+TABLE\s+(?P<table>{_DOTTED})\s+COMPUTE\s+STATISTICS\s+FOR\s+"
    rf"(?:ALL\s+COLUMNS|COLUMNS\s+(?P<columns>{_DOTTED}(?:\s*,\s*{_DOTTED})*))\s*;?\s*",
    re.I,
)
_SPARKS_OWN = "spark_catalog"


def sql(spark: SparkSession, text: str, lake: Lake | None = None) -> DataFrame:
    """Run a statement. `ANALYZE TABLE … FOR COLUMNS` is ours; the rest goes to `spark.sql`.

    The answer to ANALYZE is a row a column: `column`, `ndv`, `ndv_low`, `ndv_high`, `kind`.
    """
    match = _ANALYZE.fullmatch(text)
    if match is None:
        return spark.sql(text)
    lake = lake or connect()
    name = _resolve(spark, _parts(match.group("table")))
    if name is None or name.catalog not in (lake.name, *configured()):
        return spark.sql(text)
    asked = [".".join(_parts(column)) for column in re.findall(_DOTTED, match.group("columns") or "")]
    report = analyze(spark, str(name), columns=_as_written(str(name), asked, lake), lake=lake)
    rows = [
        (column.name, *map(_double, (column.ndv, column.ndv_low, column.ndv_high)), column.kind)
        for column in report.columns
    ]
    return spark.createDataFrame(
        rows, "column string, ndv double, ndv_low double, ndv_high double, kind string"
    )


def _double(value: float | None) -> float | None:
    return None if value is None else float(value)  # Spark takes no whole number for a double


def _resolve(spark: SparkSession, parts: Sequence[str]) -> TableName | None:
    """Return the table that Spark would take the name for, or None if it is in Spark's own catalog."""
    first = parts[0]
    if len(parts) > 2 and (first == _SPARKS_OWN or spark.conf.get(f"spark.sql.catalog.{first}", None)):
        catalog, *parts = parts
    else:
        catalog = spark.catalog.currentCatalog()
        if len(parts) == 1:
            parts = [*_parts(spark.catalog.currentDatabase()), *parts]
    return None if catalog == _SPARKS_OWN else TableName(catalog, tuple(parts[:-1]), parts[-1])


def _as_written(name: str, asked: Sequence[str], lake: Lake) -> list[str]:
    """Return the columns as the table spells them: in SQL, case does not matter."""
    if not asked:
        return []
    known: dict[str, str] = {}
    for field in table(name, lake).load()[0].fields():
        for depth in range(1, len(field.parts) + 1):
            known.setdefault(".".join(field.parts[:depth]).lower(), ".".join(field.parts[:depth]))
    return [known.get(column.lower(), column) for column in asked]


def _parts(dotted: str) -> list[str]:
    """Split a dotted name and take the backquotes off its parts.

    >>> _parts("db . `a.``b`")
    ['db', 'a.`b']
    """
    return [
        part[1:-1].replace("``", "`") if part.startswith("`") else part for part in re.findall(_NAME, dotted)
    ]
