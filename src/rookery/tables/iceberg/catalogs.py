"""Catalogs of Iceberg tables, by PyIceberg."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table

from rookery.io import RenewableProperties
from rookery.io.redaction import reason_of
from rookery.model import (
    CatalogError,
    MissingCatalogError,
    MissingTableError,
    RookeryError,
    TableName,
    UsageError,
)
from rookery.tables.config import SQL, CatalogConfig
from rookery.tables.iceberg.any_blob_type import load_with_any_blob_type
from rookery.tables.iceberg.foreign_types import carrying
from rookery.tables.iceberg.opening import create_catalog, explained, failure, open_pyiceberg
from rookery.tables.iceberg.sqlite_catalog import sqlite_catalog
from rookery.tables.iceberg.table import IcebergTable

if TYPE_CHECKING:
    from rookery.model.cache import Cache
    from rookery.tables.iceberg.table_load import IcebergTableLoad

log = logging.getLogger(__name__)


class IcebergCatalog:
    """A catalog that PyIceberg has opened: `rookery.tables.formats.Catalog` for Iceberg."""

    def __init__(self, config: CatalogConfig, cache: Cache | None = None) -> None:
        self.config = config
        self._sqlite = sqlite_catalog(config, cache)

    @cached_property
    def client(self) -> Catalog:
        """The catalog as PyIceberg opens it; raise `MissingCatalogError` if there is none."""
        return open_pyiceberg(self.config)

    def create(self) -> Catalog:
        """Create what is missing of a catalog in a database, and open it."""
        try:
            return self.client
        except MissingCatalogError:
            create_catalog(self.config)
            return self.client

    @property
    def _is_to_come(self) -> bool:
        """Whether this is the embedded catalog, and nothing has created it yet."""
        if not self.config.is_embedded:
            return False
        try:
            return not self.client
        except MissingCatalogError:
            return True

    def open(self, name: TableName) -> IcebergTable:
        """Load a table as it is now."""
        located = self._located(name)
        return self._load(name) if located is None else IcebergTable(name, located)

    def _load(self, name: TableName) -> IcebergTable:
        """Load a table with PyIceberg's catalog."""
        if self._is_to_come:
            raise _no_table(name)
        return IcebergTable(name, load_table(self.client, name, self.config.properties))

    def _located(self, name: TableName) -> Table | None:
        """Load a table without PyIceberg's catalog, where that suffices."""
        sqlite = self._sqlite
        if sqlite is None:
            return None
        try:
            with carrying():
                table = load_with_any_blob_type(lambda: sqlite.load(name.identifier, lambda: self.client))
        except Exception as error:  # noqa: BLE001  # it is raised again where PyIceberg loads the table
            log.debug("%s is loaded by PyIceberg: %s", name, reason_of(error, self.config.properties))
            return None
        return None if table is None else _renewable(table, self.config)

    def start_load(self, name: TableName, *, append: bool) -> IcebergTableLoad:
        """Start adding rows to a table, or making one."""
        from rookery.tables.iceberg.table_load import IcebergTableLoad  # brings what only a writer needs

        properties = self.config.properties
        table: Table | None
        try:
            table = self._load(name).table
        except (MissingTableError, MissingCatalogError) as error:
            if append:
                raise MissingTableError(error.message, hint="omit --append to create it") from error
            table = None
        if table is not None and not append:
            raise UsageError(
                f"there is a table {name} already", hint="use --append to add rows to it, or another name"
            )
        return IcebergTableLoad(self.create, name, properties, table)

    def tables(self) -> Iterator[TableName]:
        """Yield the names of all tables."""
        if self._is_to_come:
            return
        with self._reaching():
            for namespace in self._namespaces(()):
                for identifier in self.client.list_tables(namespace):
                    yield TableName(self.config.name, tuple(identifier[:-1]), identifier[-1])

    def _namespaces(self, parent: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for namespace in self.client.list_namespaces(parent):
            yield tuple(namespace)
            yield from self._namespaces(tuple(namespace))

    def count_namespaces(self) -> int:
        """Return how many namespaces there are at the top."""
        if self._is_to_come:
            return 0
        with self._reaching():
            return len(self.client.list_namespaces())

    def other_names(self) -> list[str]:
        """Return the names of the catalogs in the same database, if this one has nothing in it."""
        if self._is_to_come or self.config.type != SQL:
            return []
        from rookery.tables.iceberg.sql_catalogs import other_names  # brings SQLAlchemy

        with self._reaching():
            return other_names(self.client)

    def _reaching(self) -> AbstractContextManager[None]:
        return explained(self.config, f"catalog '{self.config.name}' does not answer")


def load_table(catalog: Catalog, name: TableName, properties: Mapping[str, str]) -> Table:
    """Load a table; *properties* are the catalog's, whose secrets errors must not show."""
    try:
        config = CatalogConfig(catalog.name, dict(properties))
        return _renewable(_load(catalog, name.identifier), config)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        if is_view(catalog, name.identifier):
            raise UsageError(f"{name} is a view", hint="name the tables that it reads") from error
        raise _no_table(name) from error
    except Exception as error:  # every catalog client raises its own errors
        hint = "check that the catalog is reachable, and that its metadata can be read"
        raise failure(error, properties, f"{name} cannot be loaded", hint) from error


def _no_table(name: TableName) -> MissingTableError:
    return MissingTableError(f"there is no table {name}", hint="check the name, or use --catalog")


def _load(catalog: Catalog, identifier: tuple[str, ...]) -> Table:
    with carrying():
        return load_with_any_blob_type(lambda: catalog.load_table(identifier))


def table_locations(catalog: Catalog) -> Iterator[str]:
    """Yield where tables are, or would be, one of each namespace: enough to know a catalog's stores."""
    for namespace in catalog.list_namespaces():
        tables = catalog.list_tables(namespace)
        if tables:
            yield _load(catalog, tables[0]).location()
        elif location := catalog.load_namespace_properties(namespace).get("location"):
            yield str(location)


def _renewable(table: Table, config: CatalogConfig) -> Table:
    """Make a table's storage settings renewable: those of a REST server may expire."""
    fetch = _TableSettings(config, table.name())
    # PyIceberg reads them whenever it opens a file system, so they are renewed here.
    table.io.properties = RenewableProperties(table.io.properties, fetch)  # type: ignore[assignment]
    return table


@dataclass(frozen=True, slots=True)
class _TableSettings:
    """Fetches a table's storage settings from its catalog; in worker processes too, so it has only names."""

    config: CatalogConfig
    identifier: tuple[str, ...]

    def __call__(self) -> Mapping[str, str]:
        try:
            return dict(_load(open_pyiceberg(self.config), self.identifier).io.properties)
        except RookeryError:
            raise
        except Exception as error:  # every catalog client raises its own errors
            raise CatalogError(
                f"{'.'.join(self.identifier)} cannot be loaded: {reason_of(error, self.config.properties)}"
            ) from error


def is_view(catalog: Catalog, identifier: tuple[str, ...]) -> bool:
    """Whether a name that is no table's is that of a view."""
    try:
        if getattr(catalog, "engine", None) is not None:
            return _stands_in_sql(catalog, identifier)
        return catalog.view_exists(identifier)
    except Exception:  # noqa: BLE001  # not every catalog has views, and the error below does not need them
        return False


def _stands_in_sql(catalog: Catalog, identifier: tuple[str, ...]) -> bool:
    """PyIceberg's SQL catalog does not list views, but Java's stores them among the tables."""
    from pyiceberg.catalog.sql import IcebergTables, SqlCatalog  # brings SQLAlchemy
    from sqlalchemy import select

    assert isinstance(catalog, SqlCatalog)
    row = select(IcebergTables.table_name).where(
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == ".".join(identifier[:-1]),
        IcebergTables.table_name == identifier[-1],
    )
    with catalog.engine.connect() as connection:
        return connection.execute(row).first() is not None
