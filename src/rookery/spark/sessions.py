"""The embedded default: a local Spark session that knows the catalog, and keeps its talk to itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from rookery.model import MachineError
from rookery.spark.catalogs import SparkCatalog, spark_catalog
from rookery.spark.java import find_java
from rookery.spark.puffin_source import PuffinDataSource
from rookery.tables import CatalogConfig, home, open_catalog, resolve

_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_GIB = 1 << 30


def session(
    catalog: CatalogConfig | str | None = None,
    *,
    master: str | None = None,
    memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a Spark session that knows *catalog* (a name, or the default) under its name.

    A session that is already there is taken and told of the catalog; else a local one is started.
    """
    config = catalog if isinstance(catalog, CatalogConfig) else resolve(catalog)
    known = spark_catalog(config)
    spark = SparkSession.getActiveSession()
    if spark is None:
        spark = _start(config, known, master, memory, conf or {})
    else:
        _introduce(spark, config, known)
    return register(spark)


def register(spark: SparkSession) -> SparkSession:
    """Teach a session of your own the data sources of Rookery."""
    spark.dataSource.register(PuffinDataSource)
    return spark


def _introduce(spark: SparkSession, config: CatalogConfig, known: SparkCatalog) -> None:
    """Tell a running session of a catalog; what it knows already stays as it is."""
    if spark.conf.get(f"spark.sql.catalog.{config.name}", None) is None:
        open_catalog(config)  # as in a session that is started: a new SQL catalog is made first
    for key, value in known.conf.items():
        if spark.conf.get(key, None) is None:
            spark.conf.set(key, value)


def _start(
    config: CatalogConfig,
    known: SparkCatalog,
    master: str | None,
    memory: str | None,
    conf: Mapping[str, str],
) -> SparkSession:
    find_java()
    open_catalog(config)  # makes the tables of a new SQL catalog, as Python and Java both expect them
    builder = SparkSession.builder.appName("rookery").master(
        master or os.environ.get("SPARK_MASTER", "local[*]")
    )
    for key, value in {**_defaults(config, known, memory), **known.conf, **conf}.items():
        builder = builder.config(key, value)
    # Spark's planner asks the environment which Python to run, whatever its configuration says.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with _quiet_start():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _defaults(config: CatalogConfig, known: SparkCatalog, memory: str | None) -> dict[str, str]:
    return {
        "spark.jars.packages": ",".join(known.packages),
        "spark.sql.extensions": _EXTENSIONS,
        "spark.sql.defaultCatalog": config.name,
        "spark.driver.memory": memory or default_memory(),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.warehouse.dir": str(home() / "spark-warehouse"),
    }


def default_memory() -> str:
    """A quarter of the machine's memory, but between 1 and 4 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(max(total // 4 // _GIB, 1), 4)}g"


def log_path() -> Path:
    """Where the JVM of an embedded session writes what it would print."""
    return home() / "logs" / "spark.log"


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Send what the JVM prints for all its life, and Ivy's tables before that, to the log file.

    The JVM inherits the standard error that is in place when it starts, so that is what is exchanged.
    """
    log = log_path()
    log.parent.mkdir(parents=True, exist_ok=True)
    saved = os.dup(2)
    sys.stderr.flush()
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.dup2(target, 2)
        yield
    except Exception as error:
        raise MachineError(f"Spark did not start: {_last_words(log, error)}", hint=f"read {log}") from error
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)


def _last_words(log: Path, error: Exception) -> str:
    """The line of the log that tells most, else the error's own first line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if "unresolved dependency" in line or "Exception" in line]
    return (telling or str(error).splitlines() or [type(error).__name__])[0][:300]
