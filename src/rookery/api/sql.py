"""`rookery.sql`: queries whose tables are pruned first, and the ANALYZE that Spark refuses for them."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rookery.api.lake import Lake, connect
from rookery.api.scan import MOST, left_frame, reads_aside, session_zone, spark_connect
from rookery.api.sql_plan import PlannedTable, SqlReport, plan, report
from rookery.api.statistics import analyze
from rookery.api.table import table
from rookery.model import RookeryError, TableName, quote_part
from rookery.store import Store
from rookery.tables import configured
from rookery.tables.iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

_NAME = r"(?:`(?:[^`]|``)+`|[\w$-]+)"
_DOTTED = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_ANALYZE = re.compile(
    rf"\s*ANALYZE\s+TABLE\s+(?P<table>{_DOTTED})\s+COMPUTE\s+STATISTICS\s+FOR\s+"
    rf"(?:ALL\s+COLUMNS|COLUMNS\s+(?P<columns>{_DOTTED}(?:\s*,\s*{_DOTTED})*))\s*;?\s*",
    re.I,
)
_SPARKS_OWN = "spark_catalog"


def sql(spark: SparkSession, text: str, lake: Lake | None = None) -> DataFrame:
    """Run a statement: a query with its tables pruned, `ANALYZE TABLE … FOR COLUMNS`, or any other by Spark.

    Each table of a query is pruned by its own predicates and by the join keys of its selective partners,
    which are read first; Spark then runs the same text over the files that are left. The answer to ANALYZE is
    a row a column: `column`, `ndv`, `ndv_low`, `ndv_high`, `kind`.
    """
    match = _ANALYZE.fullmatch(text)
    if match is None:
        return spark.sql(text) if spark_connect(spark) else _query(spark, text, lake)
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


def plan_of(spark: SparkSession, text: str, lake: Lake | None = None) -> SqlReport:
    """Return what `sql` would read of each table of a query."""
    return report(_plan(spark, text, lake or connect()))


def _query(spark: SparkSession, text: str, lake: Lake | None) -> DataFrame:
    """Run a query with the names of pruned tables exchanged for views of the files that are left."""
    exchanged: list[tuple[int, int, str]] = []
    try:
        for planned in _plan(spark, text, lake or connect()):
            if planned.pruning.share_left() <= MOST:
                start, end = planned.use.span()
                view = _view(spark, planned)
                alias = "" if planned.use.node.alias else f" AS {quote_part(planned.use.node.name)}"
                exchanged.append((start, end, view + alias))
        for start, end, name in sorted(exchanged, reverse=True):
            text = text[:start] + name + text[end:]
        return spark.sql(text)
    finally:  # a query that is analysed knows its tables, and not their names
        for _, _, name in exchanged:
            spark.catalog.dropTempView(name.split(" ")[0])


def _plan(spark: SparkSession, text: str, lake: Lake) -> list[PlannedTable]:
    if reads_aside(spark):
        return []
    known = (lake.name, *configured())

    def resolve(parts: Sequence[str]) -> tuple[IcebergTable, Store] | None:
        if len(parts) == 1 and _is_temporary(spark, parts[0]):
            return None
        name = _resolve(spark, parts)
        if name is None or name.catalog not in known:
            return None
        try:
            return lake.open(name)
        except RookeryError:  # a view, a metadata table, or nothing at all: Spark will know
            return None

    try:
        return plan(text, resolve, session_zone(spark))
    except Exception as error:  # noqa: BLE001  # whatever goes wrong here, Spark runs the query as it is
        log.warning("the query is not pruned: %s", error)
        return []


def _view(spark: SparkSession, planned: PlannedTable) -> str:
    """Make a view of the files of a table that are left, and return its name."""
    name = f"rookery_{uuid.uuid4().hex}"
    native = spark.read.table(str(planned.table.name))
    left_frame(spark, planned.pruning, native).createOrReplaceTempView(name)
    return name


def _is_temporary(spark: SparkSession, name: str) -> bool:
    return bool(spark._jsparkSession.sessionState().catalog().getTempView(name).isDefined())


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
