"""Warnings that are given once, where the same would be found again with every call."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_given: ContextVar[set[str] | None] = ContextVar("given", default=None)


@contextmanager
def warned_once(given: set[str]) -> Iterator[None]:
    """Within this, a warning that is among *given* is logged for debugging only; others are added to it."""
    token = _given.set(given)
    try:
        yield
    finally:
        _given.reset(token)


def warn(log: logging.Logger, text: str) -> None:
    """Log a warning; within `warned_once`, once."""
    given = _given.get()
    level = logging.WARNING if given is None or text not in given else logging.DEBUG
    if given is not None:
        given.add(text)
    log.log(level, "%s", text)
