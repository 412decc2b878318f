"""Tables and the catalogs that hold them."""

from rookery.tables.catalogs import (
    EMBEDDED_NAME,
    CatalogConfig,
    configured,
    embedded,
    home,
    is_view,
    open_catalog,
    reason_of,
    resolve,
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
    "is_view",
    "open_catalog",
    "reason_of",
    "redact",
    "resolve",
    "sqlite_path",
]
