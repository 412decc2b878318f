"""Warnings that are not to be repeated with every query of a session."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

MOST_CAUSES = 10  # texts may differ in a name each time


class Warned:
    """The causes of which a session has warned."""

    def __init__(self) -> None:
        self._causes: set[str] = set()
        self._lock = Lock()

    def level(self, cause: str) -> int:
        """Return the level for a cause: a warning the first time, later for debugging only."""
        with self._lock:
            if cause in self._causes or len(self._causes) >= MOST_CAUSES:
                return logging.DEBUG
            self._causes.add(cause)
            return logging.WARNING


_CURRENT: ContextVar[Warned | None] = ContextVar("warned", default=None)


@contextmanager
def warned_once(warned: Warned) -> Iterator[None]:
    """Within the block, `warn` logs each cause once as a warning.

    >>> session = Warned()
    >>> with warned_once(session):
    ...     [session.level("no such file") == logging.WARNING for _ in range(2)]
    [True, False]
    """
    token = _CURRENT.set(warned)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def warn(log: logging.Logger, text: str) -> None:
    """Log a warning, or a message for debugging if the session has had the same one."""
    warned = _CURRENT.get()
    log.log(logging.WARNING if warned is None else warned.level(text), "%s", text)
