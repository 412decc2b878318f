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
from rookery.tables.secrets import is_secret, redact

__all__ = [
    "EMBEDDED_NAME",
    "CatalogConfig",
    "configured",
    "embedded",
    "home",
    "is_secret",
    "load_table",
    "open_catalog",
    "redact",
    "resolve",
    "resolve_table",
    "sqlite_path",
]
