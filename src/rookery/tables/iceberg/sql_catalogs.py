"""Catalogs in databases: whether there is one, and making one. PyIceberg would make one to look at it."""

from __future__ import annotations

import logging
from pathlib import Path

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergNamespaceProperties, IcebergTables, SqlCatalog
from sqlalchemy import inspect, select, union

from rookery.io.redaction import redact
from rookery.model import CatalogError, MissingCatalogError
from rookery.tables.config import CatalogConfig, sqlite_path

CREATES = "init_catalog_tables"  # PyIceberg's property: whether opening makes the tables that are missing
# It is said at each opening of a catalog that Spark's JdbcCatalog has made, and nothing needs to be done.
_OLDER = "detected a v0 schema"
logging.getLogger("pyiceberg.catalog.sql").addFilter(lambda record: _OLDER not in record.msg)
_LOAD = "`rookery load FILE… db.t` makes one with its first table"


def is_in_memory(config: CatalogConfig) -> bool:
    """Whether a catalog ends with its process: nobody sees what opening it makes.

    >>> is_in_memory(CatalogConfig("c", {"uri": "sqlite://"}))
    True
    """
    uri = config.properties.get("uri", "")
    return uri.startswith("sqlite") and (uri.endswith("://") or ":memory:" in uri or "mode=memory" in uri)


def check_file(config: CatalogConfig) -> None:
    """Raise `MissingCatalogError` if a SQLite file does not exist: connecting to it would create it."""
    path = sqlite_path(config.properties.get("uri", ""))
    if path is not None and not path.startswith("file:") and not Path(path).exists():
        raise MissingCatalogError(
            f"there is no catalog '{config.name}': no file {path}", hint=f"check its uri; {_LOAD}"
        )


def check_tables(config: CatalogConfig, client: Catalog) -> None:
    """Raise `MissingCatalogError` if a database has no tables of a catalog."""
    if isinstance(client, SqlCatalog) and not inspect(client.engine).has_table(IcebergTables.__tablename__):
        raise MissingCatalogError(
            f"there is no catalog '{config.name}': {redact(config.properties.get('uri', ''))} has no tables "
            "of one",
            hint=f"check its uri; {_LOAD}",
        )


def make_folder(config: CatalogConfig) -> None:
    """Create the folder of a SQLite file."""
    path = sqlite_path(config.properties.get("uri", ""))
    if path and not path.startswith("file:"):
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CatalogError(
                f"{path}: {error.strerror}", hint="choose another place for the catalog"
            ) from error


def other_names(client: Catalog) -> list[str]:
    """Return the names under which a database has catalogs, if this one has nothing under its own."""
    if not isinstance(client, SqlCatalog):
        return []
    found = union(select(IcebergTables.catalog_name), select(IcebergNamespaceProperties.catalog_name))
    with client.engine.connect() as connection:
        names = sorted(str(name) for (name,) in connection.execute(found))
    return [] if client.name in names else names
