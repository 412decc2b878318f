"""Tables and the catalogs that hold them."""

from rookery.tables.catalogs import (
    EMBEDDED_NAME,
    CatalogConfig,
    configured,
    embedded,
    home,
    load_table,
    open_catalog,
    resolve,
    resolve_table,
    sqlite_path,
)

__all__ = [
    "EMBEDDED_NAME",
    "CatalogConfig",
    "configured",
    "embedded",
    "home",
    "load_table",
    "open_catalog",
    "resolve",
    "resolve_table",
    "sqlite_path",
]
