"""Lakes of a Spark session: its catalogs as it is configured, also those that Python does not know.

A catalog that is configured for Python in the same way is opened by Python. The others are opened through
the session, and so is one that Python has under the same name, but with other tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rookery.api.lake import Lake
from rookery.api.table import TableHandle
from rookery.model import MissingTableError, TableName, UsageError, split_name
from rookery.spark.live import check_jvm
from rookery.spark.session_catalogs import (
    SessionCatalog,
    SessionCatalogs,
    current_catalog,
    describe_catalogs,
    is_same_catalog,
    may_have_tables,
    resolve_name,
    session_catalogs,
)
from rookery.tables.config import EMBEDDED_NAME, CatalogConfig, configured, resolve
from rookery.tables.formats import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SessionLake(Lake):
    """A catalog of a Spark session: opened through it, unless Python has the same configuration."""

    def __init__(self, spark: SparkSession, config: CatalogConfig, *, is_known_to_python: bool) -> None:
        super().__init__(config)
        self._spark = spark
        self.is_known_to_python = is_known_to_python

    def _open_catalog(self) -> Catalog:
        if self.is_known_to_python:
            return super()._open_catalog()
        return SessionCatalog(self._spark, self.name)

    @property
    def database(self) -> str | None:
        """The address of the database in which the catalog is, if Python can open it."""
        return super().database if self.is_known_to_python else None

    def table_name(self, text: str) -> TableName:
        """Read a name as Spark does while this is the current catalog."""
        check_jvm(self._spark)
        return resolve_name(self._spark, text, self.name).name

    def _catalog_of(self, name: TableName) -> Catalog:
        return self._catalog if name.catalog == self.name else _lake(self._spark, name.catalog)._catalog

    def _missing_hint(self, name: TableName) -> str:
        return describe_catalogs(self._spark)

    @property
    def session(self) -> SparkSession | None:
        """The session."""
        return self._spark

    def spark(
        self, *, master: str | None = None, conf: Mapping[str, str] | None = None, attach: bool = True
    ) -> SparkSession:
        """Return the session, attached unless that is declined."""
        from rookery.spark.attach.session import attach_unless_detached  # pyspark is an extra
        from rookery.spark.sessions import register

        if master or conf:
            raise UsageError(
                f"{self.name} is a catalog of a session that runs already",
                hint="leave out its master and configuration",
            )
        check_jvm(self._spark)
        if attach:
            attach_unless_detached(self._spark)
        return register(self._spark)

    def __repr__(self) -> str:
        return f"<Lake {self.name} of a Spark session>"


def lake_of_session(spark: SparkSession, catalog: str | None = None) -> Lake:
    """Return the lake of a session's catalog: of the current one, or of that name."""
    check_jvm(spark)
    name = catalog or current_catalog(spark)
    if name not in session_catalogs(spark):
        raise UsageError(f"the session has no catalog '{name}'", hint=describe_catalogs(spark))
    lake = _lake(spark, name)
    if not may_have_tables(spark, name):
        raise UsageError(f"the catalog '{name}' has no Iceberg tables", hint=describe_catalogs(spark))
    return lake


def locate(spark: SparkSession, text: str) -> TableHandle:
    """Return the table that a session means by a name.

    A name that begins with a catalog that only Python knows is of that one; one that would be in Spark's own
    catalog, which has no tables of Iceberg, is of Python's default catalog.
    """
    check_jvm(spark)
    first, *others = split_name(text)
    known = session_catalogs(spark)
    if len(others) > 1 and first not in known and (config := _configured(first)):
        return TableHandle(Lake(config), TableName(first, tuple(others[:-1]), others[-1]))
    resolved = resolve_name(spark, text)
    if resolved.may_have_tables:
        return TableHandle(_lake(spark, resolved.name.catalog, known), resolved.name)
    if resolved.name.catalog == first or not others:
        raise MissingTableError(f"there is no Iceberg table {resolved.name}", hint=describe_catalogs(spark))
    default = resolve()
    lake = _lake(spark, default.name, known) if default.name in known else Lake(default)
    return TableHandle(lake, TableName(default.name, (first, *others[:-1]), others[-1]))


def _lake(spark: SparkSession, catalog: str, known: SessionCatalogs | None = None) -> SessionLake:
    known = known or session_catalogs(spark)
    config = _configured(catalog)
    if config is not None and is_same_catalog(known, config):
        return SessionLake(spark, config, is_known_to_python=True)
    config = CatalogConfig(catalog, known.properties(catalog))
    return SessionLake(spark, config, is_known_to_python=False)


def _configured(catalog: str) -> CatalogConfig | None:
    """Python's catalog of that name, if it has one."""
    return resolve(catalog) if catalog == EMBEDDED_NAME or catalog.lower() in configured() else None
