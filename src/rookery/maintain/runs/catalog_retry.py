"""Retries while a catalog does not answer, with growing pauses, up to a limit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from rookery.model import CatalogError
from rookery.model.retry import pauses

log = logging.getLogger(__name__)
T = TypeVar("T")

CATALOG_TIMEOUT = 60.0  # seconds
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 15.0  # seconds between attempts


class CatalogRetry:
    """Retries calls while the catalog does not answer; all that share it stop at the same time."""

    def __init__(
        self,
        answers: Callable[[], bool],
        seconds: float = CATALOG_TIMEOUT,
        *,
        timer: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._answers, self._seconds = answers, seconds
        self._timer, self._wait, self._stopping = timer, wait, stopping
        self._lock = threading.Lock()
        self._outage: float | None = None  # when it is given up

    def __call__(self, call: Callable[[], T]) -> T:
        """Return what a call returns, once the catalog answers."""
        waits, again = pauses(_FIRST_WAIT, _LONGEST_WAIT, jitter=False), True
        while True:
            try:
                result = call()
            except CatalogError as error:
                if self._stopping():
                    raise
                if self._answers():  # it is well again, or this is about one table
                    if not again:
                        raise
                    again = False
                    continue
                if (left := self._left()) <= 0:
                    raise
                log.warning("the catalog does not answer, trying again: %s", error)
                self._wait(min(next(waits), left))
                again = True
            else:
                self.renew()
                return result

    def renew(self) -> None:
        """Begin with the whole time again at the next outage."""
        with self._lock:
            self._outage = None

    def _left(self) -> float:
        """How long the catalog is still waited for; the first call starts the time."""
        now = self._timer()
        with self._lock:
            if self._outage is None:
                self._outage = now + self._seconds
            return self._outage - now
