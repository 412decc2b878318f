"""Metrics of tables and runs for Prometheus: as text, and over HTTP."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rookery.maintain.facts.staleness import Freshness
from rookery.maintain.runs.history import RunRecord, Tally, tally
from rookery.model import MachineError, UsageError, split_name

if TYPE_CHECKING:
    from rookery.maintain.status import TableStatus

LOOPBACK = "127.0.0.1"
_TABLE = ("catalog", "namespace", "table")
_EDGES = (0.2, 0.4, 0.6, 0.8)  # of health; a bucket begins at its lower edge
_BUCKETS = ("0-0.2", "0.2-0.4", "0.4-0.6", "0.6-0.8", "0.8-1")
_REQUEST_TIMEOUT = 10.0  # seconds for a request to be received


def render(
    statuses: Iterable[TableStatus], runs: Iterable[RunRecord] | Tally = (), unreadable: Iterable[str] = ()
) -> str:
    """Return the metrics of tables and runs in Prometheus' text format; *unreadable* are names of tables."""
    registry = CollectorRegistry(auto_describe=False)
    counted = runs if isinstance(runs, Tally) else tally(runs)
    registry.register(_Tables(tuple(statuses), counted, tuple(unreadable)))
    return generate_latest(registry).decode()


class _Tables(Collector):
    """Gives each metric with all its samples; no label contains a snapshot's id."""

    def __init__(self, statuses: Sequence[TableStatus], runs: Tally, unreadable: Sequence[str]) -> None:
        self._statuses = statuses
        self._runs = runs
        self._unreadable = unreadable

    def describe(self) -> Iterable[Metric]:
        """Nothing: the names need not be compared with others."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from _one_number_each(self._statuses)
        yield from _labelled(self._statuses)
        yield _by_health(self._statuses)
        yield _unreadable(self._unreadable)
        yield from _runs(self._runs)


def _labels(table: str) -> list[str]:
    catalog, *namespace, name = split_name(table)
    return [catalog, ".".join(namespace), name]


def _unreadable(tables: Sequence[str]) -> Metric:
    family = GaugeMetricFamily(
        "rookery_table_unreadable", "1 for a table whose status cannot be read.", labels=_TABLE
    )
    for table in tables:
        family.add_metric(_labels(table), 1)
    return family


def _one_number_each(statuses: Sequence[TableStatus]) -> Iterator[Metric]:
    gauges: dict[str, tuple[str, Callable[[TableStatus], float | None]]] = {
        "rookery_table_health": (
            "The share of rows that have not changed since statistics were collected.",
            lambda status: status.statistics.health,
        ),
        "rookery_table_score": ("The score of a table, from 0 to 100.", lambda status: status.score.total),
        "rookery_table_breaches": (
            "Number of breaches of the policy.",
            lambda status: len(status.breaches),
        ),
        "rookery_statistics_snapshots_behind": (
            "Snapshots since the one that statistics describe.",
            lambda status: status.statistics.snapshots_behind,
        ),
        "rookery_ndv_drift_at_least": (
            "Lower bound of the drift of distinct values since they were counted, in the worst column.",
            lambda status: status.drift_low,
        ),
        "rookery_ndv_drift_at_most": (
            "Upper bound of the drift of distinct values, in the worst column; absent if unbounded.",
            lambda status: status.drift_high,
        ),
        "rookery_table_bytes": ("Bytes of live data files.", lambda status: status.layout.bytes),
        "rookery_table_rows": ("Rows of live data files.", lambda status: status.layout.rows),
    }
    for name, (help_text, value_of) in gauges.items():
        gauge = GaugeMetricFamily(name, help_text, labels=_TABLE)
        for status in statuses:
            if (value := value_of(status)) is not None:
                gauge.add_metric(_labels(status.table), float(value))
        yield gauge


def _labelled(statuses: Sequence[TableStatus]) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "rookery_statistics_state", "1 for the state of the statistics.", labels=[*_TABLE, "state"]
    )
    files = GaugeMetricFamily(
        "rookery_table_files", "Live data files, by size against the target.", labels=[*_TABLE, "size"]
    )
    deleted = GaugeMetricFamily(
        "rookery_table_delete_rows",
        "Deleted rows that delete files contain, by kind.",
        labels=[*_TABLE, "kind"],
    )
    for status in statuses:
        labels, layout = _labels(status.table), status.layout
        for state in Freshness:
            states.add_metric([*labels, state.value], float(status.statistics.freshness == state))
        sizes = {"small": layout.small_files, "right": layout.right_files, "large": layout.large_files}
        for size, count in sizes.items():
            files.add_metric([*labels, size], count)
        for kind in layout.deletes:
            deleted.add_metric([*labels, kind.kind], kind.rows)
    yield from (states, files, deleted)


def _by_health(statuses: Sequence[TableStatus]) -> Metric:
    counts = Counter(_bucket(status.statistics.health) for status in statuses)
    gauge = GaugeMetricFamily("rookery_tables_by_health", "Tables, by health.", labels=["bucket"])
    for bucket in _BUCKETS:
        gauge.add_metric([bucket], counts[bucket])
    return gauge


def _bucket(health: float) -> str:
    return _BUCKETS[sum(health >= edge for edge in _EDGES)]


def _runs(runs: Tally) -> Iterator[Metric]:
    counted = CounterMetricFamily(
        "rookery_runs", "Runs that have ended, by outcome.", labels=[*_TABLE, "outcome"]
    )
    for (table, outcome), count in sorted(runs.runs.items()):
        counted.add_metric([*_labels(table), outcome], count)
    yield counted
    seconds = CounterMetricFamily(
        "rookery_step_seconds", "Duration of steps, in seconds.", labels=[*_TABLE, "step"]
    )
    for (table, step), value in sorted(runs.seconds.items()):
        seconds.add_metric([*_labels(table), step], value)
    yield seconds
    sizes = CounterMetricFamily("rookery_step_bytes", "Bytes that steps processed.", labels=[*_TABLE, "step"])
    for (table, step), value in sorted(runs.bytes.items()):
        sizes.add_metric([*_labels(table), step], value)
    yield sizes


def parse_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT; without a host it is the loopback interface.

    >>> parse_address("9464"), parse_address("0.0.0.0:9464"), parse_address("[::1]:9464")
    (('127.0.0.1', 9464), ('0.0.0.0', 9464), ('::1', 9464))
    """
    try:
        parts = urlsplit("//" + (text if ":" in text else f":{text}"))
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if port is None or parts.path or parts.username is not None:
        raise UsageError(f"'{text}' is not a HOST:PORT", hint=f"use {LOOPBACK}:9464, or a port alone")
    return host or LOOPBACK, port


class MetricsServer:
    """Answers `/metrics` and `/healthz`, and nothing else, while it is entered."""

    def __init__(
        self, address: tuple[str, int], text: Callable[[], str], healthy: Callable[[], bool] = lambda: True
    ) -> None:
        try:
            self._server = _Server(address, text, healthy)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise MachineError(
                f"metrics cannot be served on {address[0]}:{address[1]}: {reason}",
                hint="choose another port",
            ) from error
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)

    def __enter__(self) -> MetricsServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], text: Callable[[], str], healthy: Callable[[], bool]
    ) -> None:
        self.text = text
        self.healthy = healthy
        if ":" in address[0]:
            self.address_family = AF_INET6
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "rookery"
    sys_version = ""
    timeout = _REQUEST_TIMEOUT

    def do_GET(self) -> None:
        """Respond to one of the two paths."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, CONTENT_TYPE_LATEST, self.server.text())
        elif path == "/healthz":
            well = self.server.healthy()
            self._answer(200 if well else 503, "text/plain; charset=utf-8", "ok\n" if well else "stuck\n")
        else:
            self._answer(404, "text/plain; charset=utf-8", "there is /metrics and /healthz\n")

    def _answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep each scrape out of the logs."""
