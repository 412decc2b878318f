"""How a Spark session affects the meaning of a predicate, and whether files may be skipped in it.

`rookery.where` gives SQL the meaning that it has under Spark's defaults. Under other settings a literal, a
name or a cast may mean something else, which only Spark knows. So nothing is pruned in a session with
settings that are not known to leave the meaning unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rookery.model import UsageError
from rookery.spark.live import has_jvm
from rookery.where.parsing import called_names
from rookery.where.timestamps import is_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SQL = "spark.sql."
_ZONE = "spark.sql.session.timeZone"
_ANSI = "spark.sql.ansi.enabled"  # whose default depends on the environment
_EXTENSIONS = "spark.sql.extensions"
_KNOWN_EXTENSIONS = {"org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"}
# Settings below spark.sql that set where tables are and how queries run, and not what they mean.
_HARMLESS = (
    "adaptive.", "artifact.", "autoBroadcastJoinThreshold", "broadcastTimeout", "catalog.",
    "catalogImplementation", "cbo.", "codegen.", "debug.", "defaultCatalog", "event.", "execution.",
    "files.", "hive.", "iceberg.", "inMemoryColumnarStorage.", "join.", "maxMetadataStringLength",
    "maxPlanStringLength", "optimizer.", "orc.", "parquet.", "planChangeLog.", "pyspark.", "python.",
    "queryExecutionListeners", "redaction.", "repl.", "shuffle.", "sources.", "statistics.",
    "storeAssignmentPolicy", "streaming.", "thriftServer.", "ui.", "warehouse.dir",
)  # fmt: skip


def prunes(spark: SparkSession, text: str = "") -> bool:
    """Whether predicates, in *text* or bound already, have in a session the meaning that Rookery assumes."""
    return not (
        _reads_aside(spark) or "${" in text or any(unknown_settings(spark)) or any(_replaced(spark, text))
    )


def unknown_settings(spark: SparkSession) -> Iterator[str]:
    """Yield the settings of a session under which a predicate may mean something else."""
    configured = spark.conf.getAll
    if str(spark.conf.get(_ANSI)).lower() != "true":
        yield _ANSI
    if not is_zone(session_zone(spark)):
        yield _ZONE
    extensions = {name.strip() for name in configured.get(_EXTENSIONS, "").split(",") if name.strip()}
    if not extensions <= _KNOWN_EXTENSIONS:
        yield _EXTENSIONS
    for key, value in configured.items():
        name = key.removeprefix(_SQL)
        checked = name == key or key in (_ZONE, _ANSI, _EXTENSIONS) or name.startswith(_HARMLESS)
        if not checked and not _is_default(spark, key, value):
            yield key


def _is_default(spark: SparkSession, key: str, value: str) -> bool:
    entries = getattr(getattr(_jvm(spark).org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
    entry = entries.getConfigEntry(key)
    return entry is not None and str(entry.defaultValueString()).lower() == value.lower()


def _replaced(spark: SparkSession, text: str) -> Iterator[str]:
    """Yield the functions of a text that are not Spark's own, or that the session has replaced."""
    try:
        called = {name.lower(): is_plain for name, is_plain in called_names(text)}
    except UsageError:  # a comment of which Spark alone knows where it ends
        yield text
        return
    if not called:
        return
    catalyst = _jvm(spark).org.apache.spark.sql.catalyst
    session: Any = spark._jsparkSession
    registry, builtin = (
        session.sessionState().functionRegistry(),
        catalyst.analysis.FunctionRegistry.builtin(),
    )
    for name, is_plain in called.items():
        identifier = catalyst.FunctionIdentifier(name)
        current, original = registry.lookupFunction(identifier), builtin.lookupFunction(identifier)
        if current.isEmpty():  # a keyword such as IN, or a function of some catalog
            is_replaced = is_plain
        else:
            is_replaced = original.isEmpty() or current.get().getClassName() != original.get().getClassName()
        if is_replaced:
            yield name


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def session_zone(spark: SparkSession) -> str:
    """Return the zone in which a session reads local times; Java's short names are replaced by long ones."""
    name = str(spark.conf.get(_ZONE))
    if not has_jvm(spark):
        return name
    zones = _jvm(spark).java.time.ZoneId
    return str(zones.SHORT_IDS.getOrDefault(name, name))


def _reads_aside(spark: SparkSession) -> bool:
    """Whether a session reads its own unpublished writes, which are not a snapshot of main."""
    return any(spark.conf.get(key, None) for key in ("spark.wap.branch", "spark.wap.id"))
