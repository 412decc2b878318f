"""Alerts to a webhook about tables that failed; errors in sending never reach the run."""

from __future__ import annotations

import http.client
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from rookery.io.redaction import one_line
from rookery.model import UsageError
from rookery.model.retry import attempts

log = logging.getLogger(__name__)

VARIABLE = "ROOKERY_WEBHOOK"
ATTEMPTS = 4
_TIMEOUT = 10.0
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0  # seconds
REPEAT = 6 * 3600.0  # seconds until an unchanged alert is repeated
_TRY_AGAIN = (408, 425, 429)  # and all of 500


@dataclass(frozen=True, slots=True)
class Alert:
    """A table that failed, or stays below its policy."""

    table: str
    outcome: str
    breaches: tuple[str, ...] = ()
    error: str | None = None

    @property
    def text(self) -> str:
        """The alert in one line."""
        reasons = [*([self.error] if self.error else []), *self.breaches]
        return f"{self.table} {self.outcome}" + (f": {'; '.join(reasons)}" if reasons else "")


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that receives alerts as JSON. It is a secret: only its host is shown.

    The key `text` of the JSON is the message that Slack, Mattermost and Teams show.
    """

    url: str = field(repr=False)
    wait: Callable[[float], object] = time.sleep
    attempts: int = ATTEMPTS
    timeout: float = _TIMEOUT

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good:
            raise UsageError("the webhook is not an http or https URL", hint=f"set {VARIABLE} to its URL")

    @property
    def host(self) -> str:
        """The one part of the address that may be shown."""
        return urlsplit(self.url).hostname or ""

    def send(self, alert: Alert) -> bool:
        """Send an alert, with retries; return whether it was accepted."""
        alert = _clean(alert)
        body = msgspec.json.encode({"text": alert.text} | asdict(alert))
        trouble: str | None = None
        for _ in attempts(self.attempts, _FIRST_WAIT, _LONGEST_WAIT, jitter=False, wait=self.wait):
            trouble, again = self._post(body)
            if trouble is None:
                return True
            if not again:
                break
        log.warning("the webhook at %s did not accept an alert: %s", self.host, trouble)
        return False

    def _post(self, body: bytes) -> tuple[str | None, bool]:
        """What went wrong, if anything, and whether a retry may help."""
        headers = {"Content-Type": "application/json", "User-Agent": "rookery"}
        try:
            request = urllib.request.Request(self.url, body, headers, method="POST")  # noqa: S310
            with _OPENER.open(request, timeout=self.timeout):
                return None, False
        except urllib.error.HTTPError as error:
            error.close()
            return f"HTTP {error.code}", error.code >= 500 or error.code in _TRY_AGAIN
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            return type(reason).__name__, True
        except Exception as error:  # noqa: BLE001  # an alert must not end the run that it reports
            return type(error).__name__, False


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects are refused: the alert would be sent on as a GET, without its body."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _clean(alert: Alert) -> Alert:
    error = None if alert.error is None else one_line(alert.error)
    return Alert(alert.table, alert.outcome, tuple(map(one_line, alert.breaches)), error)


class Alerts:
    """Decides what is sent: alerts that are new, have another outcome, or were last sent long ago."""

    def __init__(self, webhook: Webhook | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._webhook = webhook
        self._clock = clock
        self._sent: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def trouble(self, alert: Alert) -> bool:
        """Send an alert, unless the same was sent lately; return whether it was sent."""
        if self._webhook is None:
            return False
        now = self._clock()
        with self._lock:
            outcome, when = self._sent.get(alert.table, ("", -REPEAT))
            if outcome == alert.outcome and now - when < REPEAT:
                return False
        if not self._webhook.send(alert):
            return False  # and tried again with the next evaluation
        with self._lock:
            self._sent[alert.table] = (alert.outcome, now)
        return True

    def well(self, table: str) -> None:
        """Forget the alerts of a table: its next one is new."""
        with self._lock:
            self._sent.pop(table, None)
