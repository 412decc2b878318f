"""Names of tables as a session resolves them, and the catalogs that it has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rookery.io.redaction import redact
from rookery.model import CatalogError, TableName, split_name
from rookery.spark.session_catalogs.java_calls import ask
from rookery.tables.java_errors import failure_hint, java_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX = "spark.sql.catalog."
_CATALOG = re.compile(r"spark\.sql\.catalog\.([^.]+)")
_SPARKS_OWN = "spark_catalog"


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a session means by a name; its catalog may have tables of Iceberg, or has none."""

    name: TableName
    may_have_tables: bool


@dataclass(frozen=True, slots=True)
class SessionCatalogs:
    """The catalogs that a session is configured with, by their settings, which may contain secrets."""

    settings: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """The names of the catalogs."""
        named = {match[1] for key in self.settings if (match := _CATALOG.fullmatch(key))}
        return sorted(named | {_SPARKS_OWN})

    def __contains__(self, name: str) -> bool:
        return name == _SPARKS_OWN or f"{PREFIX}{name}" in self.settings

    def properties(self, name: str) -> Mapping[str, str]:
        """The properties of a catalog."""
        prefix = f"{PREFIX}{name}."
        found = self.settings.items()
        return {key.removeprefix(prefix): value for key, value in found if key.startswith(prefix)}


def session_catalogs(spark: SparkSession) -> SessionCatalogs:
    """Return the catalogs of a session; whether Spark can load them is another question."""
    return SessionCatalogs(ask(spark, "settings"))


def resolve_name(spark: SparkSession, text: str, home: str | None = None) -> Resolved:
    """Return the table that Spark means by a name.

    One that does not begin with a catalog is of the catalog *home*, else of the session's current catalog. Of
    the current catalog, a name alone is in the current namespace.
    """
    parts = split_name(text)
    with _loading(spark, home or "of the session"):
        found = ask(spark, "resolve", home, parts)
    if len(parts) > 1 and found["catalog"] != parts[0] and parts[0] in session_catalogs(spark):
        may_have_tables(spark, parts[0])  # Spark takes one that it cannot load for a namespace
    name = TableName(found["catalog"], tuple(found["namespace"]), found["table"])
    return Resolved(name, found["may_have_tables"])


def may_have_tables(spark: SparkSession, catalog: str) -> bool:
    """Whether a catalog may have tables of Iceberg; raise `CatalogError` if Spark cannot load it."""
    with _loading(spark, catalog):
        return bool(ask(spark, "may have tables", catalog))


def current_catalog(spark: SparkSession) -> str:
    """Return the session's current catalog."""
    with _loading(spark, "of the session"):
        return str(ask(spark, "current"))


@contextmanager
def _loading(spark: SparkSession, catalog: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # py4j wraps all that Java throws
        reason = redact(java_reason(error), session_catalogs(spark).properties(catalog))
        raise CatalogError(
            f"Spark cannot load the catalog {catalog}: {reason}", hint=failure_hint(reason)
        ) from error


def describe_catalogs(spark: SparkSession) -> str:
    """Name the session's catalogs, for a hint."""
    names = ", ".join(session_catalogs(spark).names)
    return f"the session has the catalogs {names}; its current one is {current_catalog(spark)}"
