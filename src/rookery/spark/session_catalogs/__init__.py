"""The catalogs of a Spark session, as it is configured: names, tables, and which of them Python knows too."""

from rookery.spark.session_catalogs.catalog import OtherFormatError, SessionCatalog
from rookery.spark.session_catalogs.java_calls import STORAGE
from rookery.spark.session_catalogs.names import (
    Resolved,
    SessionCatalogs,
    current_catalog,
    describe_catalogs,
    may_have_tables,
    resolve_name,
    session_catalogs,
)
from rookery.spark.session_catalogs.same import is_other_catalog, is_same_catalog

__all__ = [
    "STORAGE",
    "OtherFormatError",
    "Resolved",
    "SessionCatalog",
    "SessionCatalogs",
    "current_catalog",
    "describe_catalogs",
    "is_other_catalog",
    "is_same_catalog",
    "may_have_tables",
    "resolve_name",
    "session_catalogs",
]
