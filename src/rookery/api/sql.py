"""`rookery.sql`: statements of an attached session, and the ANALYZE that Spark refuses for Iceberg tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rookery.api.analyze import analyze
from rookery.api.lake import Lake
from rookery.api.session_lake import lake_of_session
from rookery.model import quote_part
from rookery.spark.live import check_session, has_jvm
from rookery.spark.session_catalogs import OtherFormatError, resolve_name
from rookery.tables import Table
from rookery.tables.java_errors import refused_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["sql"]

_NAME = r"(?:`(?:[^`]|``)+`|[\w$-]+)"
_DOTTED = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_ANALYZE = re.compile(
    rf"\s*ANALYZE\s+TABLE\s+(?P<table>{_DOTTED})\s+COMPUTE\s+STATISTICS\s+FOR\s+"
    rf"(?:ALL\s+COLUMNS|COLUMNS\s+(?P<columns>{_DOTTED}(?:\s*,\s*{_DOTTED})*))\s*;?\s*",
    re.I,
)


def sql(spark: SparkSession, text: str, lake: Lake | None = None) -> DataFrame:
    """Run a statement in the session, which is attached: see `rookery.attach`.

    `ANALYZE TABLE … COMPUTE STATISTICS FOR COLUMNS`, which Spark refuses for Iceberg's tables, is run by
    Rookery. It returns one row per column: `column`, `ndv`, `ndv_low`, `ndv_high`, `kind`.
    """
    if not has_jvm(spark):
        return spark.sql(text)
    match = _ANALYZE.fullmatch(text)
    check_session(spark, iceberg=match is not None)
    if match is None:
        return _query(spark, text)
    resolved = resolve_name(spark, ".".join(map(quote_part, _parts(match.group("table")))))
    if not resolved.may_have_tables:
        return spark.sql(text)
    name = resolved.name
    if lake is None or lake.name != name.catalog:
        lake = lake_of_session(spark, name.catalog)
    requested = [".".join(_parts(column)) for column in re.findall(_DOTTED, match.group("columns") or "")]
    try:
        columns = _as_written(lake.open(name)[0], requested)
    except OtherFormatError:
        return spark.sql(text)
    report = analyze(spark, str(name), columns=columns, lake=lake)
    rows = [
        (column.name, *map(_double, (column.ndv, column.ndv_low, column.ndv_high)), column.kind)
        for column in report.columns
    ]
    return spark.createDataFrame(
        rows, "column string, ndv double, ndv_low double, ndv_high double, kind string"
    )


def _query(spark: SparkSession, text: str) -> DataFrame:
    from rookery.spark.attach import attach_unless_attached  # pyspark is an extra

    attach_unless_attached(spark)
    with refused_types("the tables of the query"):
        return spark.sql(text)


def _double(value: float | None) -> float | None:
    return None if value is None else float(value)  # Spark does not accept a whole number as a double


def _as_written(table: Table, requested: Sequence[str]) -> list[str]:
    """Return the columns as the table writes them: SQL ignores case."""
    known: dict[str, str] = {}
    for field in table.fields():
        for depth in range(1, len(field.parts) + 1):
            known.setdefault(".".join(field.parts[:depth]).lower(), ".".join(field.parts[:depth]))
    return [known.get(column.lower(), column) for column in requested]


def _parts(dotted: str) -> list[str]:
    """Split a dotted name and remove the backquotes of its parts.

    >>> _parts("db . `a.``b`")
    ['db', 'a.`b']
    """
    return [
        part[1:-1].replace("``", "`") if part.startswith("`") else part for part in re.findall(_NAME, dotted)
    ]
