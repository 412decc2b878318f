"""Alerts reach a real HTTP server, are tried again within bounds, and never raise."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rookery.maintain.runs.alerts import REPEAT, Alert, Alerts, Webhook
from rookery.model import UsageError

ALERT = Alert("lake.db.orders", "failed", ("health 0.6 is below 0.8",), "disk full\n at s3://me:pw@host/x")


class Receiver(ThreadingHTTPServer):
    """Answers with the codes it is given, then with 204; keeps what was sent."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.taken: list[dict[str, object]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hooks/s3cret-path?token=s3cret"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = self.server.codes.pop(0) if self.server.codes else 204
        self.server.taken.append({"code": code, "path": self.path, "body": json.loads(body)})
        self.send_response(code)
        if code == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.server.taken.append({"code": 200, "path": self.path, "body": None})
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def waits() -> list[float]:
    return []


def test_taken_at_once(receiver: Receiver, waits: list[float]) -> None:
    assert Webhook(receiver.url, waits.append).send(ALERT)
    (taken,) = receiver.taken
    assert taken["path"] == "/hooks/s3cret-path?token=s3cret"
    assert taken["body"] == {
        "text": "lake.db.orders failed: disk full at s3://host/x; health 0.6 is below 0.8",
        "table": "lake.db.orders",
        "outcome": "failed",
        "breaches": ["health 0.6 is below 0.8"],
        "error": "disk full at s3://host/x",
    }
    assert waits == []


def test_tried_again_with_growing_waits(receiver: Receiver, waits: list[float]) -> None:
    receiver.codes = [500, 503, 429]
    assert Webhook(receiver.url, waits.append).send(ALERT)
    assert [taken["code"] for taken in receiver.taken] == [500, 503, 429, 204]
    assert waits == [1, 2, 4]


def test_given_up_in_the_end(
    receiver: Receiver, waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    receiver.codes = [500] * 9
    assert not Webhook(receiver.url, waits.append).send(ALERT)
    assert len(receiver.taken) == 4
    assert "127.0.0.1 did not accept an alert: HTTP 500" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("code", [400, 404, 302])
def test_refused_for_good(receiver: Receiver, waits: list[float], code: int) -> None:
    receiver.codes = [code]
    assert not Webhook(receiver.url, waits.append).send(ALERT)
    assert [taken["code"] for taken in receiver.taken] == [code]


def test_nobody_there(waits: list[float], caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert not Webhook(f"http://127.0.0.1:{port}/s3cret", waits.append).send(ALERT)
    assert waits == [1, 2, 4]
    assert "ConnectionRefusedError" in caplog.text
    assert "s3cret" not in caplog.text


def test_no_answer_in_time(waits: list[float], caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        webhook = Webhook(f"http://127.0.0.1:{silent.getsockname()[1]}/", waits.append, 2, timeout=0.05)
        assert not webhook.send(ALERT)
    assert waits == [1]
    assert "imeout" in caplog.text


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "s3cret", "http://", "http://[s3cret", "ftp://h/s3cret"]
)
def test_not_a_webhook(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Webhook(url)
    assert "s3cret" not in str(caught.value)


def test_shown_without_its_secret(receiver: Receiver) -> None:
    assert "s3cret" not in repr(Webhook(receiver.url))


class TestWhatIsTold:
    def test_only_what_is_new(self, receiver: Receiver) -> None:
        now = [0.0]
        alerts = Alerts(Webhook(receiver.url), clock=lambda: now[0])
        below = Alert(ALERT.table, "below policy")
        assert [alerts.trouble(each) for each in (ALERT, ALERT, below, below)] == [True, False, True, False]
        now[0] += REPEAT
        assert alerts.trouble(below)
        alerts.well(ALERT.table)
        assert alerts.trouble(below)
        assert len(receiver.taken) == 4

    def test_what_was_not_taken_is_told_again(self, receiver: Receiver) -> None:
        alerts = Alerts(Webhook(receiver.url))
        receiver.codes = [400]
        assert [alerts.trouble(ALERT), alerts.trouble(ALERT)] == [False, True]

    def test_nobody_to_tell(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            assert not Alerts(None).trouble(ALERT)
        assert caplog.text == ""
