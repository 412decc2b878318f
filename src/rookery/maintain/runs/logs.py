"""Logs as JSON lines or plain ones: one line an event, with no secrets in it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

import msgspec

from rookery.io.redaction import one_line

ROOT = "rookery"
_FIELDS = ("table", "step", "run", "cause", "outcome", "seconds", "files", "bytes", "error", "breaches")


class LogFormat(StrEnum):
    """How logs are written."""

    TEXT = "text"
    JSON = "json"


class JsonLines(logging.Formatter):
    """Writes a record as one JSON object: time, level, message, and fields about table, step and run."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, object] = {
            "time": _time(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": one_line(record.getMessage()),
        }
        return msgspec.json.encode(fields | _extra_fields(record) | _trouble(record)).decode()


class TextLines(logging.Formatter):
    """Writes a record for people: time, level unless it is information, message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        line = f"{_time(record):%Y-%m-%d %H:%M:%S} {level}{one_line(record.getMessage())}"
        return line.translate(_VISIBLE)


_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _extra_fields(record: logging.LogRecord) -> dict[str, object]:
    given = {name: getattr(record, name) for name in _FIELDS if getattr(record, name, None) is not None}
    return {name: _plain(value) for name, value in given.items()}


def _plain(value: object) -> object:
    match value:
        case bool() | int() | float():
            return value
        case list() | tuple():
            return [_plain(each) for each in value]
    return one_line(str(value))


def _trouble(record: logging.LogRecord) -> dict[str, object]:
    if not record.exc_info or record.exc_info[1] is None or getattr(record, "error", None) is not None:
        return {}
    error = record.exc_info[1]
    return {"error": one_line(f"{type(error).__name__}: {error}")}


@contextmanager
def logging_to(stream: TextIO | None, form: LogFormat, level: int = logging.INFO) -> Iterator[None]:
    """Send the logs of Rookery to a stream, standard error by default, in place of earlier handlers."""
    log = logging.getLogger(ROOT)
    before = log.handlers[:], log.level, log.propagate
    with _own(stream or sys.stderr) as target:
        handler = logging.StreamHandler(target)
        handler.setFormatter(JsonLines() if form is LogFormat.JSON else TextLines())
        log.handlers, log.propagate = [handler], False
        log.setLevel(level)
        try:
            yield
        finally:
            log.handlers, log.propagate = before[0], before[2]
            log.setLevel(before[1])


@contextmanager
def _own(stream: TextIO) -> Iterator[TextIO]:
    """A second stream to the same file: Spark's start redirects standard error for some time."""
    try:
        number = os.dup(stream.fileno())
    except (OSError, ValueError):  # it is no file
        yield stream
        return
    with suppress(OSError):
        stream.flush()
    with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as own:
        yield own
