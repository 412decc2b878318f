"""Iceberg's Spark procedures: how a CALL is written, and what Java's complaints about it mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rookery.model import CatalogError, RookeryError, StorageError, TableName
from rookery.model.names import quote_part
from rookery.tables.iceberg.jvm import java_reason, load_java_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_CAUSES = 32
_CONFLICTS = ("CommitFailedException", "RetryableValidationException")
# A rewrite that is overtaken by other commits is refused as invalid; planned anew, it is valid again.
_OVERTAKEN = (
    "conflicting",
    "Missing required files to delete",
    "found new delete for replaced data file",
    "found new position delete for replaced data file",
    "Cannot commit, found new",
    "Cannot determine history",
    "could not be found in the latest snapshot",
)
_STORAGE = ("IOException", "FileSystemException", "AccessDeniedException", "FileNotFoundException")


class ConflictError(RookeryError):
    """Others have committed at the same time; what is planned anew may succeed."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, in milliseconds since 1970."""

    ms: int


Argument = str | int | bool | Moment | Mapping[str, str]


def call(spark: SparkSession, name: TableName, procedure: str, **arguments: Argument) -> list[dict[str, Any]]:
    """Call a procedure on a table as it is now, and return the rows that it answers with."""
    load_java_table(spark, name)  # the session may remember the table as it was
    statement = call_text(name, procedure, **arguments)
    try:
        return [row.asDict() for row in spark.sql(statement).collect()]
    except Exception as error:  # Spark and py4j wrap whatever Java throws
        raise what_java_means(error, f"{procedure} of {name}") from error


def call_text(name: TableName, procedure: str, **arguments: Argument) -> str:
    """Write a CALL.

    >>> call_text(TableName("lake", ("db",), "it's"), "rewrite_data_files", options={"rewrite-all": "true"})
    "CALL lake.system.rewrite_data_files(table => 'db.`it\\\\'s`', options => map('rewrite-all', 'true'))"
    """
    table = ".".join(map(quote_part, name.identifier))
    stated = {"table": table, **arguments}
    said = ", ".join(f"{key} => {literal(value)}" for key, value in stated.items())
    return f"CALL {quote_part(name.catalog)}.system.{procedure}({said})"


def literal(value: Argument) -> str:
    """Write a value as Spark reads it, whatever the session's time zone.

    >>> literal("a'b"), literal(True), literal(7), literal(Moment(1500))
    ("'a\\\\'b'", 'true', '7', "TIMESTAMP '1970-01-01 00:00:01.500000+00:00'")
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
    return "map(" + ", ".join(literal(part) for pair in value.items() for part in pair) + ")"


def what_java_means(error: Exception, deed: str) -> RookeryError:
    """Return the error to raise for one of Java's: a conflict, a fault of the storage, or another."""
    if isinstance(error, RookeryError):
        return error
    names, messages = _causes(error)
    reason = java_reason(error)
    if any(name in _CONFLICTS for name in names) or _is_overtaken(names, messages):
        return ConflictError(
            f"{deed} met a conflicting commit: {reason}", hint="others write at the same time; run it again"
        )
    if any(name in _STORAGE for name in names):
        return StorageError(
            f"{deed} failed: {reason}", hint="check the disk's space and who may write; then run it again"
        )
    return CatalogError(
        f"{deed} failed: {reason}", hint="nothing is half done; mend the cause and run it again"
    )


def _causes(error: Exception) -> tuple[list[str], list[str]]:
    """The names of the exceptions behind an error, and what they say."""
    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    names: list[str] = []
    messages: list[str] = []
    while thrown is not None and len(names) < _MOST_CAUSES:
        names.append(str(thrown.getClass().getSimpleName()))
        messages.append(str(thrown.getMessage() or ""))
        thrown = thrown.getCause()
    return names, messages


def _is_overtaken(names: list[str], messages: list[str]) -> bool:
    return any(
        name == "ValidationException" and any(words in message for words in _OVERTAKEN)
        for name, message in zip(names, messages, strict=True)
    )
