"""Watching tables: which are due, several at once, each by one run at a time, until stopped."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from rookery.io.redaction import one_line
from rookery.maintain.facts.staleness import Freshness
from rookery.maintain.policies.policy import Policy
from rookery.maintain.policies.times import is_due, show_duration, show_schedule
from rookery.maintain.runs.alerts import Alert, Alerts
from rookery.maintain.runs.catalog_retry import CATALOG_TIMEOUT, CatalogRetry
from rookery.maintain.runs.history import History
from rookery.maintain.runs.leases import Leases, LeaseTakenError
from rookery.maintain.runs.table_runner import TableRunner, Tables, Wanted
from rookery.maintain.status import TableStatus
from rookery.maintain.steps.orphans import NAME as ORPHANS
from rookery.maintain.steps.refresh import NAME as REFRESH
from rookery.maintain.steps.step import Outcome, TableRun
from rookery.model import MissingTableError, RookeryError, TableName
from rookery.tables.java_errors import as_rookery

log = logging.getLogger(__name__)

INTERVAL = 300.0  # seconds
JOBS = 2
_LONGEST_REST = 6 * 3600.0  # seconds without runs for a table that runs did not improve


class Verdict(StrEnum):
    """The result of evaluating a table."""

    WITHIN = "within policy"
    DONE = "maintained"
    BELOW = "below policy"  # after its run
    FAILED = "failed"
    QUIET = "quiet hours"
    RESTING = "resting"  # recent runs did not improve it
    TAKEN = "taken"  # by another watcher
    STOPPED = "stopped"
    GONE = "gone"


_TROUBLE = (Verdict.FAILED, Verdict.BELOW)


@dataclass(frozen=True, slots=True)
class Observed:
    """A table as it was loaded: the key of its lease, its policy and its status."""

    name: TableName
    key: str
    policy: Policy
    status: TableStatus


@dataclass(frozen=True, slots=True)
class TableResult:
    """The result for one table."""

    table: str
    verdict: Verdict
    cause: str | None = None
    breaches: tuple[str, ...] = ()
    error: str | None = None
    seconds: float = 0.0


class Site(Tables, Protocol):
    """What a watcher calls on a lake, from threads; calls raise `MissingTableError` and `CatalogError`."""

    def prepare(self) -> None:
        """Reload what may have changed since the last evaluation, such as policies."""

    def find(self) -> Sequence[TableName]:
        """Return the tables to watch."""

    def answers(self) -> bool:
        """Whether the catalog can be reached."""

    def look(self, name: TableName) -> Observed:
        """Return a table as it is now."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The interval, the number of tables at once, and the timeout of the catalog; times in seconds."""

    interval: float = INTERVAL
    jobs: int = JOBS
    catalog_timeout: float = CATALOG_TIMEOUT


@dataclass(frozen=True, slots=True)
class Due:
    """Why a table is due, and whether that is the schedule of its statistics."""

    cause: str
    scheduled: bool = False


def due(
    seen: Observed,
    last_refresh: Callable[[], float | None],
    last_orphans: Callable[[], float | None],
    now: float,
) -> Due | None:
    """Return why a table is due; nothing if it is not.

    Orphan files appear in no metadata: they are searched for once in every `older-than`.
    """
    if seen.status.breaches:
        return Due("; ".join(seen.status.breaches))
    every = seen.policy.statistics.every
    stale = seen.status.statistics.freshness is Freshness.STALE
    if every is not None and stale and is_due(every, last_refresh(), now):
        return Due(f"every {show_schedule(every)}", scheduled=True)
    age = seen.policy.orphans.older_than
    if age is not None and is_due(age, last_orphans(), now):
        return Due(f"orphan search every {show_duration(age)}")
    return None


def stale_on_any_change(policy: Policy) -> Policy:
    """The policy by which any change makes statistics stale: as a schedule requires."""
    return replace(policy, statistics=replace(policy.statistics, health=1.0, snapshots=1))


class Watcher:
    """Evaluates tables again and again. `stop` may be called from a signal handler or another thread."""

    def __init__(
        self,
        site: Site,
        history: History,
        leases: Leases,
        pace: Pace = Pace(),  # noqa: B008  # frozen
        alerts: Alerts | None = None,
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] | None = None,
        retry: CatalogRetry | None = None,
    ) -> None:
        self._site, self._history = site, history
        self._runner = TableRunner(site, history, leases)
        self._pace = pace
        self._alerts = alerts or Alerts(None)
        self._clock, self._timer = clock, timer
        self._stopping = threading.Event()
        self._wait = wait or self._stopping.wait
        self._lock = threading.Lock()
        self._statuses: dict[str, TableStatus] = {}
        self._unreadable: set[str] = set()
        self._rests: dict[str, tuple[int, float]] = {}  # runs without improvement, and until when to rest
        self.retrying = retry or CatalogRetry(
            site.answers, pace.catalog_timeout, timer=timer, wait=self._wait, stopping=self._stopping.is_set
        )
        self._alive = timer()

    def stop(self) -> None:
        """Begin no table any more; those under way end after their step."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether it was stopped."""
        return self._stopping.is_set()

    @property
    def healthy(self) -> bool:
        """Whether evaluations run as often as they should."""
        return self._timer() - self._alive < 2 * self._pace.interval + self._pace.catalog_timeout + 60

    def statuses(self) -> list[TableStatus]:
        """Return the last status of each table."""
        with self._lock:
            return [self._statuses[name] for name in sorted(self._statuses)]

    def unreadable(self) -> list[str]:
        """Return the tables whose status could not be read at the last evaluation."""
        with self._lock:
            return sorted(self._unreadable)

    def once(self) -> list[TableResult]:
        """Evaluate all tables once; raise if the catalog cannot be reached."""
        names = self._begin()
        pool = ThreadPoolExecutor(self._pace.jobs, "rookery-watch")
        try:
            return list(pool.map(self._table, names))
        finally:  # all are done, or a second signal does not wait for those under way
            pool.shutdown(wait=False, cancel_futures=True)

    def run(self) -> None:
        """Evaluate all tables at every interval, until stopped.

        A table whose run has not ended by the next evaluation is not started again.
        """
        working: dict[str, Future[TableResult]] = {}
        pool = ThreadPoolExecutor(self._pace.jobs, "rookery-watch")
        try:
            while not self.stopping:
                working = {name: future for name, future in working.items() if not future.done()}
                for name in self._begin_or_say():
                    if str(name) not in working:
                        working[str(name)] = pool.submit(self._table, name, True)
                self._wait(self._pace.interval)
        finally:
            self._stopping.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _begin(self) -> Sequence[TableName]:
        self._alive = self._timer()
        self.retrying.renew()
        self._site.prepare()
        names = self.retrying(self._site.find)
        known = set(map(str, names))
        with self._lock:
            self._statuses = {name: seen for name, seen in self._statuses.items() if name in known}
            self._rests = {name: rest for name, rest in self._rests.items() if name in known}
            self._unreadable &= known
        return names

    def _begin_or_say(self) -> Sequence[TableName]:
        try:
            return self._begin()
        except RookeryError as error:
            log.error("%s", error, extra={"error": one_line(str(error))})
            return ()

    def _table(self, name: TableName, looping: bool = False) -> TableResult:
        """Evaluate a table, run what is due, and send alerts; never raises."""
        started = self._timer()
        try:
            result = self._evaluated(name, looping)
        except MissingTableError:
            log.warning("%s no longer exists", name, extra={"table": str(name)})
            result = TableResult(str(name), Verdict.GONE)
        except LeaseTakenError as error:
            log.info("%s: %s", name, error, extra={"table": str(name)})
            result = TableResult(str(name), Verdict.TAKEN)
        except RookeryError as error:
            result = TableResult(str(name), Verdict.FAILED, error=one_line(str(error)))
        except Exception as error:  # other tables must continue
            log.debug("%s failed", name, exc_info=True)
            wrapped = as_rookery(error, f"maintenance of {name}")
            result = TableResult(str(name), Verdict.FAILED, error=one_line(str(wrapped)))
        result = replace(result, seconds=self._timer() - started)
        self._tell(result)
        return result

    def _evaluated(self, name: TableName, looping: bool) -> TableResult:
        table = str(name)
        if self.stopping:
            return TableResult(table, Verdict.STOPPED)
        seen = self._look(name)
        now = self._clock()
        reason = self._due(seen, now)
        if reason is None:
            return TableResult(table, Verdict.WITHIN)
        if any(hours.covers(now) for hours in seen.policy.quiet_hours):
            return TableResult(table, Verdict.QUIET, reason.cause, seen.status.breaches)
        if looping and self._timer() < self._rests.get(table, (0, 0.0))[1]:
            return TableResult(table, Verdict.RESTING, reason.cause, seen.status.breaches)
        with self._runner.leased(name, seen.key, lambda: self.stopping) as run_leased:
            seen = self._look(name)  # another may have maintained it since
            reason = self._due(seen, now)
            if reason is None:
                return TableResult(table, Verdict.WITHIN)
            return self._maintained(seen, reason, run_leased)

    def _look(self, name: TableName) -> Observed:
        try:
            seen = self.retrying(lambda: self._site.look(name))
        except Exception:
            with self._lock:  # the earlier status is no longer valid
                self._statuses.pop(str(name), None)
                self._unreadable.add(str(name))
            raise
        with self._lock:
            self._statuses[str(name)] = seen.status
            self._unreadable.discard(str(name))
        return seen

    def _due(self, seen: Observed, now: float) -> Due | None:
        name = str(seen.name)
        return due(
            seen,
            lambda: self._history.last_done(name, REFRESH),
            lambda: self._history.last_looked(name, ORPHANS),
            now,
        )

    def _maintained(
        self, seen: Observed, reason: Due, run_leased: Callable[[Wanted], TableRun]
    ) -> TableResult:
        table, cause = str(seen.name), reason.cause
        policy = stale_on_any_change(seen.policy) if reason.scheduled else seen.policy
        log.info("%s is due: %s", table, cause, extra={"table": table, "cause": cause})
        try:
            run = run_leased(Wanted(policy, cause))
        except Exception:
            self._rest(table, helped=False)
            raise
        if run.note is not None:  # quiet hours have begun since
            return TableResult(table, Verdict.QUIET, cause, seen.status.breaches)
        after = self._look(seen.name)  # a table dropped meanwhile is not a failure
        done = any(step.outcome is Outcome.DONE for step in run.steps)
        self._rest(table, helped=done and after.status.breaches != seen.status.breaches)
        error = next((step.error for step in run.steps if step.error), None)
        if run.outcome is Outcome.FAILED:
            return TableResult(
                table=table,
                verdict=Verdict.FAILED,
                cause=cause,
                breaches=after.status.breaches,
                error=error or "a step failed",
            )
        if run.outcome is Outcome.STOPPED:
            return TableResult(table, Verdict.STOPPED, cause, after.status.breaches)
        idle = run.outcome is Outcome.NOT_NEEDED
        verdict = Verdict.BELOW if after.status.breaches else Verdict.WITHIN if idle else Verdict.DONE
        return TableResult(table, verdict, cause, after.status.breaches)

    def _rest(self, table: str, helped: bool) -> None:
        """Wait longer and longer before the next run while runs do not improve a table."""
        with self._lock:
            if helped:
                self._rests.pop(table, None)
                return
            times = self._rests.get(table, (0, 0.0))[0] + 1
            length = min(self._pace.interval * 2 ** min(times, 20), _LONGEST_REST)
            self._rests[table] = times, self._timer() + length

    def _tell(self, result: TableResult) -> None:
        facts: Mapping[str, object] = {
            "table": result.table,
            "outcome": result.verdict.value,
            "cause": result.cause,
            "seconds": round(result.seconds, 3),
            "breaches": result.breaches or None,
            "error": result.error,
        }
        if result.verdict in _TROUBLE:
            message = result.error or "; ".join(result.breaches)
            log.error("%s %s: %s", result.table, result.verdict.value, message, extra=facts)
            with suppress(Exception):  # a failed alert was logged; the run continues
                self._alerts.trouble(Alert(result.table, result.verdict.value, result.breaches, result.error))
            return
        if result.verdict in (Verdict.DONE, Verdict.WITHIN):
            self._alerts.well(result.table)
        level = logging.INFO if result.verdict in (Verdict.DONE, Verdict.STOPPED) else logging.DEBUG
        log.log(level, "%s %s", result.table, result.verdict.value, extra=facts)
