"""The one place where errors of Spark, py4j and Java become errors of Rookery: one line, and a hint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rookery.io.redaction import redact
from rookery.model import CatalogError, MachineError, RookeryError, StorageError, UsageError
from rookery.model.interrupts import check_interrupted

_MOST_CAUSES = 32
_CONFLICTS = ("CommitFailedException", "RetryableValidationException")
# A rewrite that conflicts with other commits is refused as invalid; planned again, it is valid.
_OVERTAKEN = (
    "conflicting",
    "Missing required files to delete",
    "found new delete for replaced data file",
    "found new position delete for replaced data file",
    "Cannot commit, found new",
    "Cannot determine history",
    "could not be found in the latest snapshot",
    "Still referenced by refs",
)
_STORAGE = ("IOException", "FileSystemException", "AccessDeniedException", "FileNotFoundException")
_CANCELLED = ("SPARK_JOB_CANCELLED", "stopped SparkContext", "SparkContext was shut down")
_UNSUPPORTED = (
    "Spark does not support",
    "Cannot convert unsupported type to Spark",
    "Cannot parse type string",
    "Cannot parse type from json",
    "ST_INVALID_CRS_VALUE",  # of a geometry
)
_GONE = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError")
_FOREIGN = ("pyspark", "py4j")
_NO_CLASSES = re.compile(r"No FileSystem for scheme|ClassNotFound|NoClassDefFound|Cannot find constructor")
_NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"
_NO_FILE = re.compile(
    r"^(?!NoSuchBucket).*(no such file|not exist|NotFound|NoSuch|Cannot find snapshot)", re.I
)


class ConflictError(RookeryError):
    """Others have committed at the same time; a retry with a new plan may succeed."""


class CancelledError(RookeryError):
    """Spark's jobs were cancelled, or its session was stopped, while they ran."""


class NotLoadableError(UsageError):
    """Spark cannot read a table; it would find out after a minute of retries."""

    def __init__(self, name: object, reason: str) -> None:
        super().__init__(
            f"Spark cannot read {name}: {reason}", hint="table.read and `rookery read` need no Spark"
        )


class OtherTableError(CatalogError):
    """Spark has another table of the same name; nothing must be done to one by what is known of the other."""

    def __init__(self, name: object) -> None:
        super().__init__(
            f"{name} is another table in Spark than in Rookery: their catalogs share only the name",
            hint="configure the catalog in the same way in both, or use connect(spark=...)",
        )


def is_foreign(error: BaseException) -> bool:
    """Whether an error comes from PySpark or py4j."""
    return type(error).__module__.partition(".")[0] in _FOREIGN


@contextmanager
def translated(action: str) -> Iterator[None]:
    """Raise errors of PySpark and py4j as errors of Rookery; all others are unchanged."""
    try:
        yield
    except Exception as error:
        if not is_foreign(error):
            raise
        raise translate_java_error(error, action) from error


@contextmanager
def refused_types(name: object) -> Iterator[None]:
    """Raise a clear error if Spark has no type for a column; other errors are unchanged."""
    try:
        yield
    except Exception as error:
        if not is_foreign(error) or not any(words in str(error) for words in _UNSUPPORTED):
            raise
        reason = java_reason(error).partition(": ")[2]
        raise NotLoadableError(name, reason) from error


def as_rookery(error: Exception, action: str) -> RookeryError:
    """Convert any error to one of Rookery, for a run that continues with its next table."""
    if isinstance(error, RookeryError) or is_foreign(error):
        return translate_java_error(error, action)
    text = " ".join(str(error).split())
    return RookeryError(
        redact(f"{type(error).__name__}: {text}"),
        hint="this is a bug in Rookery; --debug shows where, please report it",
    )


def translate_java_error(error: Exception, action: str) -> RookeryError:
    """Return the error to raise for one of Java's; a signal that caused it is raised instead."""
    check_interrupted(error)
    if isinstance(error, RookeryError):
        return error
    if any(kind.__name__ in _GONE for kind in type(error).__mro__):
        return MachineError(f"{action} failed: Spark has ended", hint="start another session")
    names, messages = _causes(error)
    reason = java_reason(error)
    text = " ".join((*messages, str(error)))
    if any(words in text for words in _CANCELLED):
        return CancelledError(f"{action} was cancelled", hint="nothing is half done; run it again")
    if any(name in _CONFLICTS for name in names) or _is_overtaken(names, messages):
        return ConflictError(
            f"{action} met a conflicting commit: {reason}", hint="others write at the same time; run it again"
        )
    if any(name in _STORAGE for name in names):
        return StorageError(
            f"{action} failed: {reason}", hint="check disk space and permissions; then run it again"
        )
    return CatalogError(
        f"{action} failed: {reason}", hint="nothing is half done; fix the cause and run it again"
    )


def java_reason(error: BaseException) -> str:
    """Return Java's error as one line: the innermost cause, which is the most useful."""
    check_interrupted(error)
    thrown = _thrown(error)
    if thrown is None:
        return redact((str(error).splitlines() or [type(error).__name__])[0])
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    message = str(thrown.getMessage() or "").strip().splitlines() or [""]
    return redact(f"{thrown.getClass().getSimpleName()}: {message[0]}".removesuffix(": "))


def failure_hint(reason: str) -> str:
    """Return what to check, by the error of Java or of a Python worker."""
    if _NO_CLASSES.search(reason):
        return "the session lacks Iceberg's bundle for that store: `rookery doctor` names it, for --packages"
    if _NO_TABLE in reason:
        return "check that the session knows the catalog by that name; has the table been dropped?"
    if _NO_FILE.search(reason):
        return "has the table been dropped, the snapshot expired, or a file deleted, during the run?"
    return "check that the session knows the catalog by that name, and that catalog and store are reachable"


def _thrown(error: BaseException) -> Any:
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def _causes(error: Exception) -> tuple[list[str], list[str]]:
    """The class names and messages of the exceptions that caused an error."""
    thrown = _thrown(error)
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
