"""Values as people write them, from values as Iceberg stores them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rookery.model.calendar import NANOS_A_MICRO, day_text, time_text, timestamp_text


def _timestamp(unit: int, zone: str) -> Callable[[int], str]:
    return lambda value: timestamp_text(value * unit, "T") + zone


_TEXTS: Mapping[str, Callable[[int], str]] = {
    "date": day_text,
    "time": time_text,
    "timestamp": _timestamp(NANOS_A_MICRO, ""),
    "timestamptz": _timestamp(NANOS_A_MICRO, "+00:00"),
    "timestamp_ns": _timestamp(1, ""),
    "timestamptz_ns": _timestamp(1, "+00:00"),
}


def plain(kind: str, value: Any) -> Any:
    """Return a value of the type *kind* for JSON and for people: times in ISO form.

    >>> plain("date", 19844), plain("timestamp", 1714557600123456), plain("long", 7)
    ('2024-05-01', '2024-05-01T10:00:00.123456', 7)
    >>> plain("timestamptz_ns", 1714557600000000001)
    '2024-05-01T10:00:00.000000001+00:00'
    """
    if isinstance(value, bytes):
        return value.hex()
    if kind in _TEXTS and isinstance(value, int):
        return _TEXTS[kind](value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def shortened(value: object, mark: str = "", most: int = 32) -> str:
    """Return a value as a cell of a table, with a mark before it; a long one is cut.

    >>> shortened(None), shortened(5, "≥ "), shortened("abcdef", most=4)
    ('–', '≥ 5', 'abc…')
    """
    text = "–" if value is None else mark + str(value)
    return text if len(text) <= most else text[: most - 1] + "…"
