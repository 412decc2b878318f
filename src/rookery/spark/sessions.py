"""The embedded default: a local Spark session with the catalog, its output in a log file."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from subprocess import Popen
from traceback import walk_tb
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import AnalysisException
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from rookery.collect.interpreters import own_python
from rookery.model import CatalogError, MachineError
from rookery.model.announce import announce
from rookery.model.interrupts import check_interrupted
from rookery.spark.attach.session import attach_unless_detached
from rookery.spark.catalogs import SparkCatalog, hidden_stores, spark_catalog
from rookery.spark.java import find_java
from rookery.spark.live import cancel_on_interrupt, check_session, has_jvm, quiet_py4j
from rookery.spark.puffin_source import PuffinDataSource
from rookery.spark.rookery_source import RookeryDataSource
from rookery.spark.session_catalogs import SessionCatalogs, is_other_catalog
from rookery.spark.settings import on_command_line, python_files, settings, spark_defaults
from rookery.tables.config import CatalogConfig, home, resolve
from rookery.tables.formats import create_catalog


def session(
    catalog: CatalogConfig | str | None = None,
    *,
    master: str | None = None,
    memory: str | None = None,
    conf: Mapping[str, str] | None = None,
    attach: bool = True,
) -> SparkSession:
    """Return a Spark session that has *catalog* (a name, or the default) under its name.

    An existing session is used, with the catalog added; else a local one is started. It is attached (see
    `rookery.attach`), unless it was detached before or *attach* is off.
    """
    config = catalog if isinstance(catalog, CatalogConfig) else resolve(catalog)
    known = spark_catalog(config)
    spark = SparkSession.getActiveSession()
    if spark is None:
        known = spark_catalog(config, hidden_stores(config))
        spark = _start(config, known, master, memory, conf or {})
    else:
        _introduce(spark, config, known)
    check_session(spark, known.packages)
    if attach:
        attach_unless_detached(spark)
    return register(spark)


def register(spark: SparkSession) -> SparkSession:
    """Register the data sources of Rookery in a session."""
    check_session(spark, iceberg=False)
    with own_python(spark) if has_jvm(spark) else nullcontext():
        for source in (PuffinDataSource, RookeryDataSource):
            try:
                spark.dataSource.register(source)
            except AnalysisException as error:
                # A session of the same context may have them from the one that was first.
                if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                    raise
    return spark


def _introduce(spark: SparkSession, config: CatalogConfig, known: SparkCatalog) -> None:
    """Add a catalog to a running session; settings that it has stay as they are."""
    if is_other_catalog(SessionCatalogs(spark.conf.getAll), config):
        raise CatalogError(
            f"the session has another catalog under the name '{config.name}', at another address",
            hint=f"rookery.connect('{config.name}', spark=spark) is the session's; or give one another name",
        )
    if spark.conf.get(f"spark.sql.catalog.{config.name}", None) is None:
        create_catalog(config)  # as in a session that is started: a new SQL catalog is created first
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
    announce("starting Spark")
    given = _given()
    create_catalog(config)  # creates the tables of a new SQL catalog, which Python and Java both expect
    chosen = settings(config.name, known, given, master=master, memory=memory, conf=conf)
    builder = SparkSession.builder.appName(chosen.pop("spark.app.name", "rookery"))
    changed = {key: value for key, value in chosen.items() if given.get(key) != value}
    for key, value in changed.items():
        builder = builder.config(key, value)
    # Spark's planner takes the Python to run from the environment, not from its configuration.
    os.environ.setdefault("PYSPARK_PYTHON", chosen.get("spark.pyspark.python", sys.executable))
    before = signal.getsignal(signal.SIGINT)
    with _quiet_start():
        # The JVM's first settings are on its command line, which every user of the machine can read.
        # The rest reaches it through its gateway, before the context is made: so all its sessions have it.
        SparkContext._ensure_initialized(conf=SparkConf(False).setAll(list(on_command_line(changed).items())))
        submitted = SparkConf().get("spark.submit.pyFiles", "") or ""
        builder = builder.config("spark.submit.pyFiles", python_files(submitted, known.packages))
        spark = builder.getOrCreate()
    cancel_on_interrupt(spark, before)
    quiet_py4j()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _given() -> Mapping[str, str]:
    """The existing configuration: under `spark-submit` that of the JVM, else the defaults file."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
        return dict(SparkConf().getAll())
    find_java()
    return spark_defaults(str(_find_spark_home()))  # type: ignore[no-untyped-call]


def discard_session() -> None:
    """Forget a session that has ended, and its JVM if that has: the next call starts another."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext
    if context._active_spark_context is not None:
        with suppress(Exception):  # even if the JVM has ended, the context clears itself
            context._active_spark_context.stop()
    with context._lock:
        gateway = context._gateway
        if gateway is not None and not _answers(gateway):
            with suppress(Exception):
                gateway.shutdown()
            context._gateway = context._jvm = None
        context._active_spark_context = None
    session: Any = SparkSession
    session._instantiatedSession = session._activeSession = None


def _answers(gateway: Any) -> bool:
    try:
        return bool(gateway.jvm.java.lang.System.currentTimeMillis())
    except Exception:  # noqa: BLE001  # py4j raises all that its socket raises
        return False


def log_path() -> Path:
    """The log file of the output of an embedded session's JVM."""
    return home() / "logs" / "spark.log"


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Send all output of the JVM, and Ivy's tables before that, to the log file.

    The JVM inherits the standard error that is in place when it starts, so that is replaced.
    """
    log = log_path()
    log.parent.mkdir(parents=True, exist_ok=True)
    saved = os.dup(2)
    sys.stderr.flush()
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.dup2(target, 2)
        yield
    except KeyboardInterrupt as error:
        _kill_jvm(error)
        raise
    except Exception as error:
        check_interrupted(error)
        raise MachineError(f"Spark did not start: {_last_words(log, error)}", hint=f"read {log}") from error
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)


def _kill_jvm(error: KeyboardInterrupt) -> None:
    """Kill a JVM that PySpark was starting: only its frame knows the process before it is connected."""
    for frame, _ in walk_tb(error.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, Popen):
            process.kill()


def _last_words(log: Path, error: Exception) -> str:
    """The most useful line of the log, else the error's own first line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if "unresolved dependency" in line or "Exception" in line]
    return (telling or str(error).splitlines() or [type(error).__name__])[0][:300]
