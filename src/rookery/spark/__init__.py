"""Spark: the session, its catalogs, and the data sources."""

from typing import TYPE_CHECKING, Any

from rookery.model import MachineError
from rookery.spark.catalogs import SparkCatalog, hidden_stores, spark_catalog
from rookery.spark.java import Java, find_java

if TYPE_CHECKING:
    from rookery.spark.sessions import register, session

__all__ = ["Java", "SparkCatalog", "find_java", "hidden_stores", "register", "session", "spark_catalog"]


def __getattr__(name: str) -> Any:
    """Import pyspark, which is slow and may be missing, only when a session is needed."""
    if name in ("register", "session"):
        try:
            from rookery.spark import sessions
        except ModuleNotFoundError as error:
            raise MachineError(
                f"the package {error.name} is not installed", hint="pip install 'rookery[spark]'"
            ) from error
        return getattr(sessions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
