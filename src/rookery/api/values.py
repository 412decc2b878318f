"""Values as people write them, from values as Iceberg stores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyiceberg.utils.datetime import (
    to_human_day,
    to_human_time,
    to_human_timestamp,
    to_human_timestamptz,
)

_THOUSAND = 1000


def _nanos(text: Callable[[int], str]) -> Callable[[int], str]:
    """Say nanoseconds with the words for microseconds, and the rest behind them."""

    def say(value: int) -> str:
        whole, rest = divmod(value, _THOUSAND)
        head, plus, zone = text(whole).partition("+")
        return f"{head if '.' in head else head + '.000000'}{rest:03d}{plus}{zone}" if rest else text(whole)

    return say


_HUMAN: Mapping[str, Callable[[int], str]] = {
    "date": to_human_day,
    "time": to_human_time,
    "timestamp": to_human_timestamp,
    "timestamptz": to_human_timestamptz,
    "timestamp_ns": _nanos(to_human_timestamp),
    "timestamptz_ns": _nanos(to_human_timestamptz),
}


def plain(kind: str, value: Any) -> Any:
    """Return a value of the type *kind* as JSON can hold it and people read it: times in ISO form.

    >>> plain("date", 19844), plain("timestamp", 1714557600123456), plain("long", 7)
    ('2024-05-01', '2024-05-01T10:00:00.123456', 7)
    >>> plain("timestamptz_ns", 1714557600000000001)
    '2024-05-01T10:00:00.000000001+00:00'
    """
    if isinstance(value, bytes):
        return value.hex()
    if kind in _HUMAN and isinstance(value, int):
        try:
            return _HUMAN[kind](value)
        except (OverflowError, ValueError):  # Iceberg's years go further than Python's
            return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
