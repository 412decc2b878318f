"""`attach`: a running Spark session whose queries are planned with statistics and indexes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from rookery.model import MachineError, UsageError
from rookery.model.cache import Cache
from rookery.spark.attach.planner import LEAST_BYTES, LEAST_ROWS, Planner, Settings
from rookery.spark.live import check_session, check_type, has_jvm, is_connect
from rookery.spark.session_catalogs import STORAGE
from rookery.tables.java_code import call_compiled, joined_sources
from rookery.tables.java_errors import java_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_CLASS = "RookeryAttach"
_CBO: Mapping[str, str] = {
    "spark.sql.cbo.enabled": "true",
    "spark.sql.cbo.joinReorder.enabled": "true",
}
_DETACHED = "detached"  # by the user, and to stay so
_FAILED = "failed"  # cannot be attached, which is logged once
_ATTACHED: WeakValueDictionary[str, Planner] = (
    WeakValueDictionary()
)  # by session; the JVM's session holds them
_MARKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # by gateway: a map of sessions in the JVM


@dataclass(frozen=True, slots=True)
class Attachment:
    """An attached session; as a context manager it is detached at the end."""

    spark: SparkSession

    def __enter__(self) -> SparkSession:
        return self.spark

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        detach(self.spark)


def attach(
    spark: SparkSession,
    *,
    statistics: bool = True,
    pruning: bool = True,
    runtime: bool = True,
    cbo: bool = False,
    least_bytes: int = LEAST_BYTES,
    least_rows: int = LEAST_ROWS,
) -> Attachment:
    """Plan every query of a session with the statistics and indexes of its Iceberg tables.

    *statistics* gives the optimizer the statistics of the columns, *pruning* skips files that cannot
    match, *runtime* does so by the keys of joins too, and *cbo* turns on Spark's cost-based optimizer and
    join reordering until the session is detached. Scans of fewer bytes than *least_bytes* are not pruned at
    run time, and joins of tables with fewer rows than *least_rows* are not reordered.
    """
    _check(spark)
    _detach(spark)
    chosen = Settings(
        statistics=statistics,
        pruning=pruning,
        runtime=runtime,
        least_bytes=least_bytes,
        least_rows=least_rows,
    )
    changed = _CBO if cbo else {}
    planner = Planner(chosen, _shared_cache(), {key: spark.conf.get(key, None) for key in changed})
    with _explained("attached"):
        _call(spark, "attach", spark._jsparkSession, _in_list(spark, planner), json.dumps(asdict(chosen)))
    _marks(spark).remove(spark._jsparkSession)
    _ATTACHED[_identity(spark)] = planner
    for key, value in changed.items():
        spark.conf.set(key, value)
    return Attachment(spark)


def attach_unless_detached(spark: SparkSession) -> None:
    """Attach a session of Rookery's own, but not one that was detached."""
    if has_jvm(spark) and _marks(spark).get(spark._jsparkSession) != _DETACHED:
        attach_unless_attached(spark)


def attach_unless_attached(spark: SparkSession) -> None:
    """Attach a session; one that is attached keeps its options. An error is logged: Spark works without."""
    if _identity(spark) in _ATTACHED or _marks(spark).get(spark._jsparkSession) == _FAILED:
        return
    try:
        attach(spark)
    except MachineError as error:
        _marks(spark).put(spark._jsparkSession, _FAILED)
        log.warning("%s", error)


def detach(spark: SparkSession) -> None:
    """Detach a session; has no effect on one that is not attached, or has ended."""
    check_type(spark)
    try:
        _marks(spark).put(spark._jsparkSession, _DETACHED)
        _detach(spark)
    except MachineError:
        raise
    except Exception:  # noqa: BLE001  # py4j raises all kinds of errors if the JVM has ended
        return


def _detach(spark: SparkSession) -> None:
    planner = _ATTACHED.pop(_identity(spark), None)
    if planner is None:
        return
    if not _ATTACHED:
        planner.cache.clear()  # the JVM holds the planner until it collects its garbage
    with _explained("detached"):
        _call(spark, "detach", spark._jsparkSession)
    for key, value in planner.before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def attached_queries(spark: SparkSession) -> list[dict[str, Any]] | None:
    """Return the last queries of a session, oldest first; None if it is not attached."""
    _check(spark)
    text = _call(spark, "queries", spark._jsparkSession)
    return None if text is None else list(json.loads(text))


def plan_nodes(spark: SparkSession, text: str, *, run: bool) -> list[dict[str, Any]]:
    """Return the nodes of a query's plan, with the rows that Spark estimates for them, and counts in a run.

    `alone` is the estimate by Iceberg's statistics, `attached` the one by Rookery's.
    """
    try:
        nodes = _call(spark, "nodes", spark._jsparkSession, text, run)
    except Exception as error:  # py4j wraps all that Java throws
        raise UsageError(f"Spark cannot run the query: {java_reason(error)}") from error
    if nodes is None:
        raise UsageError("the statement is not a query", hint="give a SELECT; nothing was run")
    return list(json.loads(nodes))


def _check(spark: SparkSession) -> None:
    """Refuse what cannot be attached."""
    check_type(spark)
    if is_connect(spark):
        raise UsageError(
            "a Spark Connect session cannot be attached: its plans are made on the server",
            hint="attach in the server's process, or use rookery.table(...).scan(spark, ...)",
        )
    check_session(spark)


def _shared_cache() -> Cache:
    """One cache for all sessions: however many are attached, or were and are not collected, it is bounded."""
    return next((planner.cache for planner in _ATTACHED.values()), None) or Cache()


def _marks(spark: SparkSession) -> Any:
    """What is remembered of sessions that are not attached, until the JVM collects them."""
    gateway: Any = spark.sparkContext._gateway
    if gateway not in _MARKS:
        util = gateway.jvm.java.util
        _MARKS.setdefault(gateway, util.Collections.synchronizedMap(util.WeakHashMap()))
    return _MARKS[gateway]


def _identity(spark: SparkSession) -> str:
    """The session's own id: several objects of Python may represent it."""
    session: Any = spark._jsparkSession
    return str(session.sessionUUID())


def _in_list(spark: SparkSession, planner: Planner) -> Any:
    """The planner in a Java list: py4j cannot put an object of Python's into an array of arguments."""
    from pyspark.java_gateway import ensure_callback_server_started  # pyspark is an extra

    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    wrapped = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    wrapped.add(planner)
    return wrapped


def _call(spark: SparkSession, method: str, *arguments: Any) -> Any:
    return call_compiled(spark, _CLASS, _source(), method, *arguments)


@cache
def _source() -> str:
    folder = files("rookery.spark.attach").joinpath("java")
    return joined_sources([*(each for each in folder.iterdir() if each.name.endswith(".java")), STORAGE])


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # py4j wraps all that Java throws
        raise MachineError(
            f"the session cannot be {what}: {java_reason(error)}",
            hint="Rookery knows Spark 4.1 with Iceberg 1.12; `rookery doctor` shows what is there",
        ) from error
