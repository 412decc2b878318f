"""`rookery.sql`: queries whose tables are pruned first, and the ANALYZE that Spark refuses for them."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rookery.api.lake import Lake, connect
from rookery.api.scan import MOST, left_frame, open_in_both
from rookery.api.session import prunes, session_zone
from rookery.api.sql_plan import OpenTable, PlannedTable, SqlReport, plan, report
from rookery.api.sql_tables import query_tables
from rookery.api.statistics import analyze
from rookery.api.table import table
from rookery.model import CatalogError, RookeryError, TableName, quote_part
from rookery.spark.live import check_session, has_jvm
from rookery.tables import configured
from rookery.tables.java_errors import java_reason, refused_types

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
    if not has_jvm(spark):
        return spark.sql(text)
    match = _ANALYZE.fullmatch(text)
    check_session(spark, iceberg=match is not None)
    if match is None:
        return _query(spark, text, lake)
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


def plan_of(spark: SparkSession, text: str, lake: Lake | None = None) -> SqlReport:
    """Return what `sql` would read of each table of a query."""
    return report(_plan(spark, text, lake or connect()))


def _query(spark: SparkSession, text: str, lake: Lake | None) -> DataFrame:
    """Run a query with the names of pruned tables replaced by views of the files that are left."""
    tables = _exchanged(_plan(spark, text, lake or connect()))
    exchanged: list[tuple[int, int, str, str]] = []
    try:
        for planned in tables:
            view = f"rookery_{uuid.uuid4().hex}"
            alias = "" if planned.use.node.alias else f" AS {quote_part(planned.use.node.name)}"
            frame = (
                left_frame(planned.pruning, planned.pinned) if _is_cut(planned) else planned.pinned.frame()
            )
            frame.createOrReplaceTempView(view)
            exchanged.append((*planned.use.span(), view, alias))
        pruned = text
        for start, end, view, alias in sorted(exchanged, reverse=True):
            pruned = pruned[:start] + view + alias + pruned[end:]
        return _by_spark(spark, pruned)
    except Exception as error:
        if not tables:
            raise
        log.warning("the query is not pruned: %s", java_reason(error))
        # This may fail too, with an error about the given text.
        return _by_spark(spark, text)
    finally:  # a query that is analysed knows its tables, and not their names
        for _, _, view, _ in exchanged:
            spark.catalog.dropTempView(view)


def _by_spark(spark: SparkSession, text: str) -> DataFrame:
    with refused_types("the tables of the query"):
        return spark.sql(text)


def _is_cut(planned: PlannedTable) -> bool:
    return planned.pruning.share_left() <= MOST


def _exchanged(planned: Sequence[PlannedTable]) -> list[PlannedTable]:
    """All uses of the tables that are pruned in any use: the others must read the same snapshot."""
    cut = {id(each.table) for each in planned if _is_cut(each)}
    return [each for each in planned if id(each.table) in cut]


def _plan(spark: SparkSession, text: str, lake: Lake) -> list[PlannedTable]:
    """Return the tables of a query, pruned; pruned or not, Spark reads them as they are now."""
    tables = _Tables(spark, lake)
    try:
        query = query_tables(text)
    except Exception:  # noqa: BLE001  # sqlglot raises all kinds of errors on unknown syntax
        log.warning("the query is not pruned: its text could not be parsed")
        return []
    if query is None:
        return []
    try:
        if prunes(spark, text):
            return plan(query, tables.resolve, session_zone(spark))
        for parts in (*query.elsewhere, *(use.parts for select in query.selects for use in select.uses)):
            tables.resolve(parts)
    except Exception as error:  # noqa: BLE001  # on any error here, Spark runs the query as it is
        log.warning("the query is not pruned: %s", java_reason(error))
    return []


class _Tables:
    """The tables of one query, each opened once, under any of its names."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._by_name: dict[TableName, OpenTable | None] = {}
        self._by_case: dict[tuple[str, str], OpenTable] = {}  # some catalogs ignore the case of names

    def resolve(self, parts: Sequence[str]) -> OpenTable | None:
        """Return the table that Spark resolves a name to, if it is in the lake."""
        if _is_temporary(self._spark, parts):
            return None
        name = _resolve(self._spark, parts)
        if name is None or name.catalog not in (self._lake.name, *configured()):
            return None
        if name not in self._by_name:
            opened = self._open(name)
            if opened is not None:
                key = (str(name).lower(), opened.table.uuid)
                opened = self._by_case.setdefault(key, opened)
            self._by_name[name] = opened
        return self._by_name[name]

    def _open(self, name: TableName) -> OpenTable | None:
        try:
            return OpenTable(*open_in_both(self._spark, self._lake, name))
        except CatalogError as error:
            log.warning("%s is left to Spark: %s", name, error)
        except RookeryError:  # a view, a metadata table, or no table: left to Spark
            pass
        return None


def _is_temporary(spark: SparkSession, parts: Sequence[str]) -> bool:
    jvm: Any = spark._jvm
    return bool(spark._jsparkSession.sessionState().catalog().isTempView(jvm.PythonUtils.toSeq(list(parts))))


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
