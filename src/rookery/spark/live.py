"""Whether a session is usable, checked before work begins; and how Ctrl-C cancels work of Spark."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rookery.model import MachineError
from rookery.spark.catalogs import ICEBERG_RUNTIME
from rookery.spark.versions import JARS, check_runtime, check_version
from rookery.tables.java_errors import is_foreign

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ANOTHER = "start another, as `rookery.connect().spark()` does"
_PYSPARKS_HANDLER = ("pyspark.core.context", "signal_handler")
_CANCEL_EVERY, _CANCEL_TIMES = 0.2, 300  # for a minute


def has_jvm(spark: SparkSession) -> bool:
    """Whether a session has a JVM in reach; one of Spark Connect has not."""
    return hasattr(spark, "_jvm")


def check_session(
    spark: SparkSession, packages: Sequence[str] = (ICEBERG_RUNTIME,), *, iceberg: bool = True
) -> None:
    """Refuse a session that has been stopped, is of another Spark or has no Iceberg; make Ctrl-C safe."""
    if not has_jvm(spark):
        return
    context: Any = spark.sparkContext
    if context is None or context._jsc is None:
        raise MachineError("the Spark session has been stopped", hint=_ANOTHER)
    try:
        stopped = bool(context._jsc.sc().isStopped())
    except Exception as error:
        if not (is_foreign(error) or isinstance(error, OSError)):
            raise
        raise MachineError("the Spark session has ended with its JVM", hint=_ANOTHER) from error
    if stopped:
        raise MachineError("the Spark session has been stopped", hint=_ANOTHER)
    check_version(str(context.version), "this session is of Spark")
    if iceberg:
        check_runtime({key: context._conf.get(key, "") for key in JARS})
        _check_iceberg(spark, packages)
    cancel_on_interrupt(spark)


def cloned_session(spark: SparkSession) -> SparkSession:
    """Return another session with the settings, views and current namespace of one."""
    check_jvm(spark)
    original: Any = spark._jsparkSession
    copy = original.cloneSession()
    names = original.sessionState().catalogManager()
    copied_names = copy.sessionState().catalogManager()
    copied_names.setCurrentCatalog(names.currentCatalog().name())
    if list(names.currentNamespace()) != list(copied_names.currentNamespace()):  # the first need not exist
        copied_names.setCurrentNamespace(names.currentNamespace())
    return type(spark)(spark.sparkContext, copy)


def check_jvm(spark: SparkSession) -> None:
    """Refuse a session of Spark Connect too, for work that needs Iceberg's Java side."""
    if not has_jvm(spark):
        raise MachineError(
            "a session of Spark Connect has no JVM in reach, which this needs", hint="use a classic session"
        )
    check_session(spark)


def cancel_on_interrupt(spark: SparkSession, previous: Any = None) -> None:
    """Replace PySpark's handler of SIGINT, if it is set; *previous* is the one before it.

    PySpark's asks the JVM to cancel over the connection on which the interrupted call waits for its answer.
    py4j treats that as a fault of the connection, and the call raises an error of Spark, not
    KeyboardInterrupt. Here another thread cancels, over a connection of its own.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if _is_pysparks(signal.getsignal(signal.SIGINT)):
        before = None if _is_pysparks(previous) else previous
        signal.signal(signal.SIGINT, _handler(spark.sparkContext, before))


def _is_pysparks(handler: Any) -> bool:
    names = getattr(handler, "__module__", ""), getattr(handler, "__name__", "")
    return names == _PYSPARKS_HANDLER


def _handler(context: Any, previous: Any) -> Any:
    if previous is signal.SIG_IGN:  # of a process in the background of a shell
        return previous

    def interrupted(number: int, frame: Any) -> None:
        _aside(context.cancelAllJobs)
        if callable(previous):
            previous(number, frame)
        raise KeyboardInterrupt

    return interrupted


def _aside(work: Callable[[], object]) -> None:
    def run() -> None:
        with suppress(Exception):  # the JVM may have ended, or nothing may run
            work()

    threading.Thread(target=run, daemon=True).start()


def quiet_py4j() -> None:
    """Drop the tracebacks that py4j logs, also on the root logger, of errors that it raises as well."""
    for name in ("py4j", "SQLQueryContextLogger"):  # the latter is PySpark's
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return not (record.module == "java_gateway" and "py4j" in record.pathname)


@contextmanager
def cancelled_if_interrupted(spark: SparkSession) -> Iterator[None]:
    """Cancel all jobs that the body starts, also later ones, if it is interrupted.

    A procedure of Iceberg continues in the JVM when Python no longer waits for it, and starts a job for each
    group of files. It gives the jobs groups of its own, but they all inherit the tag.
    """
    context: Any = spark.sparkContext
    tag = f"rookery-{uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception):
            _aside(lambda: _cancel_repeatedly(context, tag))
        raise
    finally:
        with suppress(Exception):  # the session may have ended
            context.removeJobTag(tag)


def _cancel_repeatedly(context: Any, tag: str) -> None:
    pause = threading.Event()
    for _ in range(_CANCEL_TIMES):
        context.cancelJobsWithTag(tag)
        pause.wait(_CANCEL_EVERY)


def _check_iceberg(spark: SparkSession, packages: Sequence[str]) -> None:
    """Refuse a session without Iceberg; to py4j, a class that is missing is a package."""
    if type(spark._jvm.org.apache.iceberg.spark.Spark3Util).__name__ == "JavaPackage":  # type: ignore[union-attr]
        raise MachineError(
            "the Spark session has no Iceberg on its class path",
            hint=f"start it with --packages {','.join(packages)}",
        )
