"""Opening catalogs and tables of any format: the one place that names the formats that there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from rookery.model import TableName
from rookery.model.cache import Cache
from rookery.tables.config import CatalogConfig, resolve_table
from rookery.tables.iceberg.catalogs import IcebergCatalog
from rookery.tables.iceberg.static import open_metadata
from rookery.tables.load import TableLoad
from rookery.tables.table import Table

__all__ = ["Catalog", "create_catalog", "open_catalog", "open_metadata", "open_table"]


class Catalog(Protocol):
    """A catalog that is open; it may have tables of several formats."""

    def open(self, name: TableName) -> Table:
        """Load a table as it is now; raise `MissingTableError` if there is none."""

    def tables(self) -> Iterator[TableName]:
        """Yield the names of all tables."""

    def start_load(self, name: TableName, *, append: bool) -> TableLoad:
        """Start adding rows to a table; without *append*, start making it, which must not exist."""

    def count_namespaces(self) -> int:
        """Return how many namespaces there are at the top; raise `CatalogError` if it does not answer."""

    def other_names(self) -> Sequence[str]:
        """Return the names of other catalogs in the same database, if this one has nothing in it."""


def open_catalog(config: CatalogConfig, cache: Cache | None = None) -> Catalog:
    """Open a catalog, which creates nothing. All types hold tables of Iceberg so far.

    *cache* is for what does not change of its tables; by default the catalog has one of its own.
    """
    return IcebergCatalog(config, cache)


def create_catalog(config: CatalogConfig) -> None:
    """Create the file and the tables of a catalog in a database, where they are missing."""
    IcebergCatalog(config).create()


def open_table(text: str, catalog: str | None = None) -> Table:
    """Open a table by its name, of *catalog* or of the one that the name begins with."""
    config, name = resolve_table(text, catalog)
    return open_catalog(config).open(name)
