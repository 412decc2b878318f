"""`watch`: tables of a lake kept within their policies, once or for as long as it is let."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rookery.api.lake import ALL, Lake, is_pattern
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.policies.choosing import PolicySet
from rookery.maintain.policies.policy_file import find_policies
from rookery.maintain.runs.alerts import Alerts, Webhook
from rookery.maintain.runs.catalog_retry import CATALOG_TIMEOUT, CatalogRetry
from rookery.maintain.runs.database import DatabaseError, open_engine
from rookery.maintain.runs.history import History, Tally
from rookery.maintain.runs.leases import Leases
from rookery.maintain.runs.logs import LogFormat, logging_to
from rookery.maintain.runs.metrics import MetricsServer, parse_address, render
from rookery.maintain.runs.recording import Record
from rookery.maintain.runs.watch import Observed, Pace, TableGoneError, TableResult, Verdict, Watcher
from rookery.maintain.status import table_status
from rookery.maintain.steps.step import Subject, TableRun
from rookery.model import (
    CatalogError,
    MachineError,
    MissingTableError,
    Report,
    RookeryError,
    Sheet,
    TableName,
    UsageError,
)
from rookery.model.report import counted
from rookery.sidecar import Store
from rookery.tables import Table
from rookery.tables.iceberg.catalogs import SQL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "LakeSite",
    "LogFormat",
    "Pace",
    "WatchReport",
    "leases_of",
    "logging_to",
    "parse_address",
    "watch",
]

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class WatchReport(Report):
    """What became of the tables that were looked at once."""

    tables: tuple[TableResult, ...]
    error: str | None = None  # the catalog could not be reached
    signal: int | None = None  # that told it to stop

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether a table failed, or stays below its policy."""
        trouble = (Verdict.FAILED, Verdict.BELOW)
        return self.error is not None or any(
            table.verdict in trouble or (table.verdict is Verdict.STOPPED and table.breaches)
            for table in self.tables
        )

    def sheets(self) -> Sequence[Sheet]:
        """One sheet; a table that is within its policy is only counted."""
        if self.error is not None:
            return [Sheet("no table was checked", notes=(self.error,))]
        counts = Counter(table.verdict for table in self.tables)
        said = ", ".join(f"{counts[verdict]:,} {verdict.value}" for verdict in Verdict if counts[verdict])
        rows = tuple(
            (
                table.table,
                table.verdict.value,
                f"{table.seconds:,.1f} s",
                table.cause or "",
                table.error or "; ".join(table.breaches),
            )
            for table in self.tables
            if table.verdict is not Verdict.WITHIN
        )
        header = ("table", "result", "took", "why", "left") if rows else ()
        return [
            Sheet(
                f"{counted(len(self.tables), 'table')}: {said or 'none'}", header, rows, right=frozenset({2})
            )
        ]


class LakeSite:
    """A lake as a watcher sees it. Spark is started when the first table is due, and shared by all."""

    def __init__(
        self,
        lake: Lake,
        patterns: Sequence[str] = (),
        policy: str | os.PathLike[str] | None = None,
        *,
        catalog_timeout: float = CATALOG_TIMEOUT,
        clock: Callable[[], float] = time.time,
        spark: Callable[[], SparkSession] | None = None,
    ) -> None:
        self._lake = lake
        self._patterns = tuple(patterns)
        self._policy = policy
        self._policies = find_policies(policy)
        self._said: str | None = None  # of a policy file that turned bad
        self._catalog_timeout = catalog_timeout
        self._clock = clock
        self._start = spark or lake.spark
        self._neighbours = lake.neighbours()
        self._session: SparkSession | None = None
        self._starting = threading.Lock()

    @property
    def policies(self) -> PolicySet:
        """The policies in force."""
        return self._policies

    def prepare(self) -> None:
        """Read the policies again; while the file is bad, the last good ones hold."""
        try:
            found = find_policies(self._policy)
        except RookeryError as error:
            if str(error) != self._said:
                log.error("%s; the policies from before hold", error)
            self._said = str(error)
            return
        if found != self._policies:
            log.info("policies were read again")
        self._said, self._policies = None, found

    def check(self) -> None:
        """Refuse a pattern that means nothing now, and names of other catalogs."""
        for pattern in self._patterns:
            names = self._lake.find(pattern)
            check_catalog(self._lake, names)
            for name in names:
                if not is_pattern(pattern):
                    self._lake.load(name)

    def find(self) -> Sequence[TableName]:
        """Return the tables that the patterns name, each once."""
        found: dict[TableName, None] = {}
        for pattern in self._patterns or (ALL,):
            try:
                found |= dict.fromkeys(self._lake.find(pattern))
            except UsageError as error:  # they were there before, or there is no table yet
                log.info("%s", error)
        return list(found)

    def answers(self) -> bool:
        """Whether the catalog can be asked."""
        return self._lake.answers()

    def look(self, name: TableName) -> Observed:
        """Return a table with its policy and its status."""
        table, store = self._open(name)
        policy = self._policies.policy_of(name, table.properties).policy
        try:
            status = table_status(table, store, policy, now=self._clock())
        except Exception:
            self._open(name)  # says so if the table went while it was looked at
            raise
        return Observed(name, table.uuid, policy, status)

    def _open(self, name: TableName) -> tuple[Table, Store]:
        try:
            return self._lake.open(name)
        except MissingTableError as error:
            raise TableGoneError(str(error)) from error

    def maintain(self, seen: Observed, cause: str, stop: Callable[[], bool], record: Record) -> TableRun:
        """Run the pipeline on a table."""
        retrying = CatalogRetry(self._lake.answers, self._catalog_timeout)
        load = partial(retrying, partial(self._lake.open, seen.name))
        subject = Subject(
            seen.name, load, self._spark, seen.policy, self._clock, neighbours=self._neighbours.anew()
        )
        return maintain_table(subject, cause=cause, stop=stop, record=record)

    def _spark(self) -> SparkSession:
        with self._starting:
            if self._session is None:
                self._session = self._start()
            elif not self.has_spark:
                from rookery.spark.sessions import discard_session  # pyspark is imported by now

                log.warning("the Spark session has ended; starting another")
                discard_session()
                self._session = self._start()
            return self._session

    @property
    def has_spark(self) -> bool:
        """Whether Spark answers; false only if it has been started, and died or was stopped since."""
        if self._session is None:
            return True
        from rookery.spark.live import check_session  # where a session is, pyspark is

        try:
            check_session(self._session, iceberg=False)
        except MachineError:
            return False
        return True


def check_catalog(lake: Lake, names: Iterable[TableName]) -> None:
    """Refuse tables of another catalog: neither Spark nor the leases would be theirs."""
    for name in names:
        if name.catalog != lake.name:
            raise UsageError(
                f"{name} is of another catalog than {lake.name}", hint=f"use --catalog {name.catalog}"
            )


def leases_of(lake: Lake, history: History) -> Leases:
    """The leases of a lake: in the catalog's own database if it has one, else beside the history."""
    if lake.config.type == SQL:
        return Leases(open_engine(lake.properties["uri"], own=False))
    return Leases(history.engine)


def watch(
    lake: Lake,
    patterns: Sequence[str] = (),
    *,
    once: bool = False,
    policy: str | os.PathLike[str] | None = None,
    history: str | None = None,
    pace: Pace | None = None,
    metrics: tuple[str, int] | None = None,
    webhook: str | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> WatchReport:
    """Keep tables within their policies: once, or until a signal says to stop."""
    pace = pace or Pace()
    start = partial(lake.spark, master=master, conf=conf)
    site = LakeSite(lake, patterns, policy, catalog_timeout=pace.catalog_timeout, spark=start)
    stopped = threading.Event()
    alerts = Alerts(Webhook(webhook, stopped.wait) if webhook else None)
    kept = History(history)
    kept.close_interrupted()
    leases = leases_of(lake, kept)
    watcher = Watcher(site, kept, leases, pace, alerts)
    with ExitStack() as stack:
        stack.callback(kept.close)
        stack.callback(leases.close)
        received = stack.enter_context(_signals(watcher, stopped))
        if metrics is not None:
            server = MetricsServer(
                metrics, _scraped(watcher, kept), lambda: watcher.healthy and site.has_spark
            )
            stack.enter_context(server)
            log.info("metrics are at http://%s:%d/metrics", metrics[0], server.port)
        return replace(_watched(watcher, site, once), signal=received[0] if received else None)


def _watched(watcher: Watcher, site: LakeSite, once: bool) -> WatchReport:
    try:
        watcher.retrying(site.check)
        if once:
            return WatchReport(tuple(watcher.once()))
    except CatalogError as error:
        log.error("%s", error)
        if once:
            return WatchReport((), str(error))
    watcher.run()
    return WatchReport(())


def _scraped(watcher: Watcher, history: History) -> Callable[[], str]:
    """What a scrape is answered with; while the history cannot be read, counts stay as they were."""
    last = Tally()

    def text() -> str:
        nonlocal last
        try:
            last = history.tally()
        except DatabaseError as error:
            log.warning("history could not be read: %s", error)
        return render(watcher.statuses(), last, watcher.unreadable())

    return text


@contextmanager
def _signals(watcher: Watcher, stopped: threading.Event) -> Iterator[list[int]]:
    """Let the first signal stop the watcher, and a second one do what it did before; give what came."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread may; whoever runs us in another calls for a stop in another way
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(number: int, _: object) -> None:
        restore()
        received.append(number)
        watcher.stop()
        stopped.set()

    for number in _SIGNALS:
        signal.signal(number, stop)
    try:
        yield received
    finally:
        restore()
        stopped.set()
