"""Iceberg's Spark procedures: how a CALL is written and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rookery.model import TableName
from rookery.model.names import quote_part
from rookery.spark.live import cancelled_if_interrupted
from rookery.tables import Table
from rookery.tables.iceberg.jvm import load_java_table
from rookery.tables.java_errors import translate_java_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, in milliseconds since 1970."""

    ms: int


Argument = str | int | bool | Moment | Mapping[str, str] | Sequence[int]


def call(spark: SparkSession, table: Table, procedure: str, **arguments: Argument) -> list[dict[str, Any]]:
    """Call a procedure on a table as it is now, and return its rows."""
    table.check_loadable(spark)  # refreshes it, as the session may have cached the table as it was
    name = table.name
    statement = call_text(name, procedure, **arguments)
    try:
        with cancelled_if_interrupted(spark):
            return [row.asDict() for row in spark.sql(statement).collect()]
    except Exception as error:  # Spark and py4j wrap all that Java throws
        raise translate_java_error(error, f"{procedure} of {name}") from error


def row_session(spark: SparkSession, types: Set[str]) -> SparkSession:
    """Return a session that reads rows of a table with these types of columns, to run procedures in.

    Iceberg's vectorized reader fails on files with a variant; a session of its own reads them by row.
    """
    if "variant" not in types:
        return spark
    session: Any = spark
    cloned = type(spark)(spark.sparkContext, session._jsparkSession.cloneSession())
    cloned.conf.set("spark.sql.iceberg.vectorization.enabled", "false")
    return cloned


_EXPIRED = {
    "deleted_data_files_count": "deletedDataFilesCount",
    "deleted_position_delete_files_count": "deletedPositionDeleteFilesCount",
    "deleted_equality_delete_files_count": "deletedEqualityDeleteFilesCount",
    "deleted_manifest_files_count": "deletedManifestsCount",
    "deleted_manifest_lists_count": "deletedManifestListsCount",
    "deleted_statistics_files_count": "deletedStatisticsFilesCount",
}


def expire_by_action(
    spark: SparkSession, table: Table, snapshots: Sequence[int], older_than: Moment, retain_last: int
) -> dict[str, Any]:
    """Expire snapshots of a table that Spark cannot read; return what the procedure would return.

    The procedure does its work and then fails, as it makes Spark load the table again.
    """
    table.check_loadable(spark)
    name = table.name
    java_table = load_java_table(spark, name)
    jvm: Any = spark._jvm
    try:
        with cancelled_if_interrupted(spark):
            action = jvm.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)
            action = action.expireSnapshots(java_table).expireOlderThan(older_than.ms).retainLast(retain_last)
            for snapshot in snapshots:
                action = action.expireSnapshotId(snapshot)
            done = action.option("stream-results", "true").execute()
            return {column: getattr(done, method)() for column, method in _EXPIRED.items()}
    except Exception as error:  # py4j wraps all that Java throws
        raise translate_java_error(error, f"expire_snapshots of {name}") from error


def call_text(name: TableName, procedure: str, **arguments: Argument) -> str:
    """Write a CALL.

    >>> call_text(TableName("lake", ("db",), "it's"), "rewrite_data_files", options={"rewrite-all": "true"})
    "CALL lake.system.rewrite_data_files(table => 'db.`it\\\\'s`', options => map('rewrite-all', 'true'))"
    """
    table = ".".join(map(quote_part, name.identifier))
    stated = {"table": table, **arguments}
    argument_list = ", ".join(f"{key} => {literal(value)}" for key, value in stated.items())
    return f"CALL {quote_part(name.catalog)}.system.{procedure}({argument_list})"


def literal(value: Argument) -> str:
    """Format a value as a Spark literal, for any session time zone.

    >>> literal("a'b"), literal(True), literal((7, 8)), literal(Moment(1500))
    ("'a\\\\'b'", 'true', 'array(7, 8)', "TIMESTAMP '1970-01-01 00:00:01.500000+00:00'")
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Moment):
        at = datetime.fromtimestamp(value.ms // 1000, UTC).replace(microsecond=value.ms % 1000 * 1000)
        return f"TIMESTAMP '{at.isoformat(' ', 'microseconds')}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, Sequence):
        return f"array({', '.join(map(str, value))})"
    return "map(" + ", ".join(literal(part) for pair in value.items() for part in pair) + ")"
