"""`watch`: keeps tables of a lake within their policies, once or until stopped."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rookery.api.lake import ALL, Lake, is_pattern
from rookery.api.maintenance import SharedSession, check_catalog, engine_of, leases_of
from rookery.maintain.policies.choosing import PolicySet
from rookery.maintain.policies.policy_file import find_policies
from rookery.maintain.runs.alerts import Alerts, Webhook
from rookery.maintain.runs.catalog_retry import CatalogRetry
from rookery.maintain.runs.database import DatabaseError
from rookery.maintain.runs.history import History, Tally
from rookery.maintain.runs.lake_tables import LakeTables, RunOptions
from rookery.maintain.runs.logs import LogFormat, logging_to
from rookery.maintain.runs.metrics import MetricsServer, parse_address, render
from rookery.maintain.runs.recording import Record
from rookery.maintain.runs.table_runner import Stop, Wanted
from rookery.maintain.runs.watch import Observed, Pace, TableResult, Verdict, Watcher
from rookery.maintain.status import table_status
from rookery.maintain.steps.step import TableRun
from rookery.model import CatalogError, Report, RookeryError, Sheet, TableName, UsageError, counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "LogFormat",
    "Pace",
    "WatchReport",
    "logging_to",
    "parse_address",
    "watch",
]

log = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class WatchReport(Report):
    """The results of one check of the tables."""

    tables: tuple[TableResult, ...]
    error: str | None = None  # the catalog could not be reached
    signal: int | None = None  # that stopped it

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether a table failed, or stays below its policy."""
        trouble = (Verdict.FAILED, Verdict.BELOW)
        return self.error is not None or any(
            table.verdict in trouble or (table.verdict is Verdict.STOPPED and table.breaches)
            for table in self.tables
        )

    def sheets(self) -> Sequence[Sheet]:
        """One line per table; tables within their policies are only counted."""
        if self.error is not None:
            return [Sheet("no table was checked", notes=(self.error,))]
        counts = Counter(table.verdict for table in self.tables)
        summary = ", ".join(f"{counts[verdict]:,} {verdict.value}" for verdict in Verdict if counts[verdict])
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
                f"{counted(len(self.tables), 'table')}: {summary or 'none'}",
                header,
                rows,
                right=frozenset({2}),
            )
        ]


class LakeSite:
    """A lake for a watcher. Spark is started when the first table is due, and shared by all."""

    def __init__(
        self,
        lake: Lake,
        patterns: Sequence[str] = (),
        policy: str | os.PathLike[str] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        spark: Callable[[], SparkSession] | None = None,
        retry: CatalogRetry | None = None,
    ) -> None:
        self._lake = lake
        self._patterns = tuple(patterns)
        self._policy = policy
        self._policies = find_policies(policy)
        self._last_error: str | None = None  # of a policy file that turned bad
        self._spark = SharedSession(spark or lake.spark)
        self._tables = LakeTables(
            lake=lake,
            spark=self._spark,
            other_tables=lake.other_tables().reloaded,  # loaded again for each run, as runs may be days apart
            retry=retry or CatalogRetry(lake.answers),
            clock=clock,
            options=RunOptions(engine=engine_of(lake)),
        )

    @property
    def policies(self) -> PolicySet:
        """The policies in force."""
        return self._policies

    def prepare(self) -> None:
        """Read the policies again; while the file is invalid, the last valid ones apply."""
        try:
            policies = find_policies(self._policy)
        except RookeryError as error:
            if str(error) != self._last_error:
                log.error("%s; the earlier policies still apply", error)
            self._last_error = str(error)
            return
        if policies != self._policies:
            log.info("policies were read again")
        self._last_error, self._policies = None, policies

    def check(self) -> None:
        """Refuse a pattern that matches nothing now, and names of other catalogs."""
        for pattern in self._patterns:
            names = self._lake.find(pattern)
            check_catalog(self._lake, names)
            for name in names:
                if not is_pattern(pattern):
                    self._lake.open(name)

    def find(self) -> Sequence[TableName]:
        """Return the tables that the patterns name, each once."""
        names: dict[TableName, None] = {}
        for pattern in self._patterns or (ALL,):
            try:
                names |= dict.fromkeys(self._lake.find(pattern))
            except UsageError as error:  # the tables were dropped, or there is none yet
                log.info("%s", error)
        return list(names)

    def answers(self) -> bool:
        """Whether the catalog answers."""
        return self._lake.answers()

    def look(self, name: TableName) -> Observed:
        """Return a table with its policy and its status."""
        opened = self._tables.open(name, self._policies)
        try:
            status = table_status(opened.table, opened.store, opened.policy, now=self._tables.clock())
        except Exception:
            self._tables.open(name, self._policies)  # raises if the table was dropped meanwhile
            raise
        return Observed(name, opened.key, opened.policy, status)

    def maintain(self, name: TableName, wanted: Wanted, stop: Stop, record: Record) -> TableRun:
        """Run the pipeline on a table."""
        return self._tables.maintain(name, wanted, stop, record)

    @property
    def has_spark(self) -> bool:
        """Whether Spark answers; false only if it was started and has ended since."""
        return self._spark.answers


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
    """Keep tables within their policies: once, or until stopped by a signal."""
    pace = pace or Pace()
    start = partial(lake.spark, master=master, conf=conf)
    stopped = threading.Event()
    retry = CatalogRetry(lake.answers, pace.catalog_timeout, wait=stopped.wait, stopping=stopped.is_set)
    site = LakeSite(lake, patterns, policy, spark=start, retry=retry)
    alerts = Alerts(Webhook(webhook, stopped.wait) if webhook else None)
    with ExitStack() as stack:
        kept = stack.enter_context(closing(History(history)))
        kept.close_interrupted()
        leases = stack.enter_context(closing(leases_of(lake, kept)))
        watcher = Watcher(site, kept, leases, pace, alerts, retry=retry)
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
    """The response to a scrape; while the history cannot be read, counts stay as they were."""
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
    """Let the first signal stop the watcher, and restore handlers for a second; yield those received.

    A signal is answered at once, from a thread: its handler may have interrupted a log's own lock.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread may set handlers; in other threads, call `stop`
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

    def answer() -> None:
        stopped.wait()
        if received:
            log.info("stopping after the current step; a second signal stops at once")

    answering = threading.Thread(target=answer, name="rookery-signals", daemon=True)
    answering.start()
    for number in _SIGNALS:
        signal.signal(number, stop)
    try:
        yield received
    finally:
        restore()
        stopped.set()
        answering.join()
