"""Metrics parse as Prometheus parses them, tell what statuses and runs tell, and are served."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rookery.maintain.facts.layout import DeleteStatus
from rookery.maintain.facts.staleness import Freshness
from rookery.maintain.runs.history import History, Tally
from rookery.maintain.runs.metrics import MetricsServer, parse_address, render
from rookery.maintain.status import TableStatus
from rookery.maintain.steps.step import Outcome, StepReport
from rookery.model import MachineError, UsageError
from tests.maintain.runs.small_site import ROWS, small_lake, status_of

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> TableStatus:
    return status_of(small_lake(tmp_path_factory.mktemp("lake"), "orders"), "db.orders")


def parsed(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, table: str = "orders", **labels: str) -> float | None:
    wanted = {"catalog": "lake", "namespace": "db", "table": table, **labels}
    return samples.get((name, frozenset(wanted.items())))


def test_a_real_table(orders: TableStatus) -> None:
    samples = parsed(render([orders]))
    assert of(samples, "rookery_table_health") == orders.statistics.health
    assert of(samples, "rookery_table_score") == orders.score.total
    assert of(samples, "rookery_table_breaches") == 1
    assert of(samples, "rookery_table_rows") == ROWS.num_rows
    assert of(samples, "rookery_table_bytes") == orders.layout.bytes > 0
    states = {state.value: of(samples, "rookery_statistics_state", state=state.value) for state in Freshness}
    assert states == {"never": 1, "current": 0, "stale": 0}
    sizes = {size: of(samples, "rookery_table_files", size=size) for size in ("small", "right", "large")}
    assert sizes == {"small": 1, "right": 0, "large": 0}


def test_what_is_not_known_is_not_said(orders: TableStatus) -> None:
    stale = replace(orders.statistics, freshness=Freshness.STALE, health=0.5, snapshots_behind=3)
    known = replace(orders, statistics=stale, drift_low=0.25, drift_high=2.0)
    samples = parsed(render([known]))
    assert of(samples, "rookery_statistics_snapshots_behind") == 3
    assert (of(samples, "rookery_ndv_drift_at_least"), of(samples, "rookery_ndv_drift_at_most")) == (0.25, 2)
    unknown = replace(known, statistics=replace(stale, snapshots_behind=None), drift_high=None)
    samples = parsed(render([unknown]))
    assert of(samples, "rookery_statistics_snapshots_behind") is None
    assert (of(samples, "rookery_ndv_drift_at_least"), of(samples, "rookery_ndv_drift_at_most")) == (
        0.25,
        None,
    )


def test_deletes_by_kind(orders: TableStatus) -> None:
    kinds = (DeleteStatus("position", 2, 100, 7, 0.7), DeleteStatus("equality", 1, 10, 3, 0.3))
    samples = parsed(render([replace(orders, layout=replace(orders.layout, deletes=kinds))]))
    assert of(samples, "rookery_table_delete_rows", kind="position") == 7
    assert of(samples, "rookery_table_delete_rows", kind="equality") == 3


def test_tables_by_health(orders: TableStatus) -> None:
    healths = (0.0, 0.1999, 0.2, 0.5, 0.79, 0.8, 1.0)
    tables = [
        replace(orders, table=f"lake.db.t{number}", statistics=replace(orders.statistics, health=health))
        for number, health in enumerate(healths)
    ]
    found = re.findall(r'rookery_tables_by_health\{bucket="(.*)"\} (.*)', render(tables))
    assert found == [
        ("0-0.2", "2.0"),
        ("0.2-0.4", "1.0"),
        ("0.4-0.6", "1.0"),
        ("0.6-0.8", "1.0"),
        ("0.8-1", "2.0"),
    ]


def test_odd_names(orders: TableStatus) -> None:
    table = 'lake.a.b.`odd "name".\\`'
    samples = parsed(render([replace(orders, table=table)]))
    labels = {"catalog": "lake", "namespace": "a.b", "table": 'odd "name".\\'}
    assert samples["rookery_table_rows", frozenset(labels.items())] == ROWS.num_rows


def test_runs(tmp_path: Path) -> None:
    history = History(f"sqlite:///{tmp_path / 'h.db'}")
    for outcome in (Outcome.DONE, Outcome.DONE, Outcome.FAILED):
        run = history.begin("lake.db.orders", "")
        history.step(run, StepReport("rewrite data files", outcome, "", bytes=100, seconds=0.5))
        history.end(run, outcome)
    text = render([], history.runs())
    assert text == render([], history.tally())
    samples = parsed(text)
    assert of(samples, "rookery_runs_total", outcome="done") == 2
    assert of(samples, "rookery_runs_total", outcome="failed") == 1
    assert of(samples, "rookery_step_seconds_total", step="rewrite data files") == 1.5
    assert of(samples, "rookery_step_bytes_total", step="rewrite data files") == 300


def test_no_snapshot_is_named(orders: TableStatus) -> None:
    assert orders.snapshot_id is not None
    assert str(orders.snapshot_id) not in render([orders])


def test_nothing_is_known() -> None:
    assert {name for name, _ in parsed(render([]))} == {"rookery_tables_by_health"}


def test_kinds_of_metrics(orders: TableStatus) -> None:
    counted = Tally({("lake.db.o", "done"): 1}, {("lake.db.o", "s"): 1.0}, {("lake.db.o", "s"): 1})
    families = list(text_string_to_metric_families(render([orders], counted)))
    assert {family.type for family in families} == {"gauge", "counter"}
    assert all(family.documentation and family.name.startswith("rookery_") for family in families)
    counters = sorted(family.name for family in families if family.type == "counter")
    assert counters == ["rookery_runs", "rookery_step_bytes", "rookery_step_seconds"]


class TestServer:
    @pytest.fixture
    def well(self) -> list[bool]:
        return [True]

    @pytest.fixture
    def server(self, orders: TableStatus, well: list[bool]) -> Iterator[MetricsServer]:
        with MetricsServer(("127.0.0.1", 0), lambda: render([orders]), lambda: well[0]) as server:
            yield server

    def get(self, server: MetricsServer, path: str, method: str = "GET") -> tuple[int, str, str]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request(method, path)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, answer.headers["Content-Type"], text

    def test_scraped(self, server: MetricsServer, orders: TableStatus) -> None:
        code, kind, text = self.get(server, "/metrics")
        assert (code, text) == (200, render([orders]))
        assert kind.startswith("text/plain; version=")
        assert of(parsed(text), "rookery_table_rows") == ROWS.num_rows

    def test_health(self, server: MetricsServer, well: list[bool]) -> None:
        assert self.get(server, "/healthz")[::2] == (200, "ok\n")
        well[0] = False
        assert self.get(server, "/healthz")[0] == 503

    @pytest.mark.parametrize("path", ["/", "/metrics/x", "/etc/passwd", "/../metrics"])
    def test_nothing_else(self, server: MetricsServer, path: str) -> None:
        assert self.get(server, path)[0] == 404

    def test_nothing_is_taken(self, server: MetricsServer) -> None:
        assert self.get(server, "/metrics", "POST")[0] == 501

    def test_gone_when_left(self, orders: TableStatus) -> None:
        with MetricsServer(("127.0.0.1", 0), lambda: "") as server:
            port = server.port
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=30)

    def test_a_port_that_is_taken(self, server: MetricsServer) -> None:
        with pytest.raises(MachineError, match=f"127.0.0.1:{server.port}") as caught:
            MetricsServer(("127.0.0.1", server.port), lambda: "")
        assert caught.value.hint


@pytest.mark.parametrize(
    "text", ["", "host", "host:", "host:x", "1.2.3.4:99999", "a:1/b", "me@h:1", "[::1", "::"]
)
def test_not_an_address(text: str) -> None:
    with pytest.raises(UsageError):
        parse_address(text)
