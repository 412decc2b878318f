"""Tables, and the catalogs that hold them: what every format provides, and a package for each format."""

from rookery.tables.files import FILE_SCHEMA, IDENTITY, FileList, identities
from rookery.tables.iceberg.catalogs import (
    EMBEDDED_NAME,
    CatalogConfig,
    configured,
    embedded,
    home,
    load_table,
    open_catalog,
    open_table,
    resolve,
    resolve_table,
    sqlite_path,
)
from rookery.tables.table import StatisticsFile, Table

__all__ = [
    "EMBEDDED_NAME",
    "FILE_SCHEMA",
    "IDENTITY",
    "CatalogConfig",
    "FileList",
    "StatisticsFile",
    "Table",
    "configured",
    "embedded",
    "home",
    "identities",
    "load_table",
    "open_catalog",
    "open_table",
    "resolve",
    "resolve_table",
    "sqlite_path",
]
