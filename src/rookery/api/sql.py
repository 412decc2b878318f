"""`rookery.sql`: statements of an attached session, and the ANALYZE that Spark refuses for Iceberg tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rookery.api.lake import Lake, connect
from rookery.api.statistics import analyze
from rookery.api.table import table
from rookery.model import TableName
from rookery.spark.live import check_session, has_jvm
from rookery.tables.config import configured
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
_SPARKS_OWN = "spark_catalog"


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
    lake = lake or connect()
    name = _resolve(spark, _parts(match.group("table")))
    if name is None or name.catalog not in (lake.name, *configured()):
        return spark.sql(text)
    requested = [".".join(_parts(column)) for column in re.findall(_DOTTED, match.group("columns") or "")]
    report = analyze(spark, str(name), columns=_as_written(str(name), requested, lake), lake=lake)
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


def _resolve(spark: SparkSession, parts: Sequence[str]) -> TableName | None:
    """Return the table that Spark would resolve the name to, or None if it is in Spark's own catalog."""
    jvm: Any = spark._jvm
    names = jvm.java.util.ArrayList()
    for part in parts:
        names.add(part)
    resolved = jvm.org.apache.iceberg.spark.Spark3Util.catalogAndIdentifier(spark._jsparkSession, names)
    catalog, identifier = str(resolved.catalog().name()), resolved.identifier()
    if catalog == _SPARKS_OWN:
        return None
    return TableName(catalog, tuple(identifier.namespace()), str(identifier.name()))


def _as_written(name: str, requested: Sequence[str], lake: Lake) -> list[str]:
    """Return the columns as the table writes them: SQL ignores case."""
    if not requested:
        return []
    known: dict[str, str] = {}
    for field in table(name, lake).load()[0].fields():
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
