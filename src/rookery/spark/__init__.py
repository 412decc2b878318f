"""Spark: the session, its catalogs, and the data sources."""

from typing import TYPE_CHECKING, Any

from rookery.spark.catalogs import SparkCatalog, hidden_stores, spark_catalog
from rookery.spark.extra import with_pyspark
from rookery.spark.java import Java, find_java

if TYPE_CHECKING:
    from rookery.spark.sessions import register, session

__all__ = ["Java", "SparkCatalog", "find_java", "hidden_stores", "register", "session", "spark_catalog"]


def __dir__() -> list[str]:
    """What there is to complete."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import pyspark only when a session is needed."""
    if name in ("register", "session"):
        return getattr(with_pyspark("rookery.spark.sessions"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
