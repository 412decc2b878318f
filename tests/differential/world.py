"""What the random tables live in: the session under test, one that knows nothing of it, the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from tests.interop.java import IcebergJava

_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Many texts over few rows: compiling them would take longer than all else.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Iceberg keeps deletes by equality by their file's name, in the types of the first who read them: after
    # ALTER COLUMN … TYPE they match nothing. So its own answer would be wrong.
    "spark.sql.iceberg.executor-cache.enabled": "false",
    "spark.sql.iceberg.executor-cache.delete-files.enabled": "false",
}


class Find(AssertionError):
    """A difference, with all that is needed to see it again."""


@dataclass
class Finds:
    """The finds of a run, which ends at the first one unless it is to go on."""

    keep_going: bool = False
    found: list[Find] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note a find, and go on behind this."""
        try:
            yield
        except Find as find:
            if not self.keep_going:
                raise
            self.found.append(find)


@dataclass(frozen=True)
class World:
    """Two sessions of one JVM, each with a catalog client of its own.

    `other` caches no tables: it reads the truth, and it is another engine that commits unseen by `spark`.
    """

    spark: SparkSession
    other: SparkSession
    lake: Lake
    java: IcebergJava


@contextmanager
def world_of(spark: SparkSession, lake: Lake) -> Iterator[World]:
    """Settings for many small tables, and for answers that can be trusted; put back at the end."""
    other = spark.newSession()
    prefix = f"spark.sql.catalog.{lake.name}"
    for key, value in spark.conf.getAll.items():
        if key.startswith(prefix):
            other.conf.set(key, value)
    other.conf.set(f"{prefix}.cache-enabled", "false")
    other.sql(f"USE {lake.name}.db")
    with ExitStack() as stack:
        stack.enter_context(_using(spark, f"{lake.name}.db"))
        for session in (spark, other):
            stack.enter_context(configured(session, _SETTINGS))
        yield World(spark, other, lake, IcebergJava(spark))


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set some keys of a session, and put them back."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, was in before.items():
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)


@contextmanager
def _using(spark: SparkSession, namespace: str) -> Iterator[None]:
    """Make a namespace the current one for a time."""
    catalog, before = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
    spark.sql(f"USE {namespace}")
    try:
        yield
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")  # which forgets the namespace
        spark.catalog.setCurrentCatalog(catalog)
        if before:
            spark.sql(f"USE {catalog}.{before}")
