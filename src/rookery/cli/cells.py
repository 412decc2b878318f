"""Arrow columns as values to print: times as text in all years, numbers that JSON lacks as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice

import pyarrow as pa

from rookery.model.calendar import NANOS_A_MICRO, day_text, time_text, timestamp_text
from rookery.model.report import number_text
from rookery.model.text import decodable

_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": NANOS_A_MICRO, "ns": 1}


def values_of(array: pa.Array, *, json: bool) -> list[object]:
    """Return the printed form of an array: for JSON, or for people. Maps are lists of pairs.

    >>> values_of(pa.array([2_932_897, None], pa.date32()), json=True)
    ['+10000-01-01', None]
    >>> values_of(pa.array([[float("nan"), 1.5]]), json=True)
    [['NaN', 1.5]]
    """
    kind = array.type
    if pa.types.is_struct(kind):
        return _structs(array, json)
    if pa.types.is_map(kind):
        pairs = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        members = pairs.flatten()
        keys, items = (values_of(part, json=json) for part in members.flatten())
        return _grouped(pairs, zip(keys, items, strict=True))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _grouped(array, values_of(array.flatten(), json=json))
    if pa.types.is_temporal(kind):
        text = _text_of(kind, json)
        return [None if value is None else text(value) for value in _numbers(array)]
    if pa.types.is_floating(kind) and json:
        return [
            value if value is None or math.isfinite(value) else number_text(value)
            for value in array.to_pylist()
        ]
    return decodable(array).to_pylist()  # type: ignore[no-any-return]


def _structs(array: pa.StructArray, json: bool) -> list[object]:
    names = [field.name for field in array.type]
    parts = [values_of(part, json=json) for part in array.flatten()]  # which respects slices
    rows = zip(*parts, strict=True) if parts else (() for _ in range(len(array)))
    return [
        dict(zip(names, row, strict=True)) if valid else None
        for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)
    ]


def _grouped(lists: pa.ListArray, members: Iterable[object]) -> list[object]:
    rest = iter(members)
    return [None if size is None else list(islice(rest, size)) for size in lists.value_lengths().to_pylist()]


def _numbers(array: pa.Array) -> list[int | None]:
    narrow = array.type.bit_width == 32
    return array.view(pa.int32() if narrow else pa.int64()).to_pylist()  # type: ignore[no-any-return]


def _text_of(kind: pa.DataType, json: bool) -> Callable[[int], str]:
    """Return how the numbers of a type of days or times are printed."""
    if pa.types.is_date32(kind):
        return day_text
    nanos = _NANOS[getattr(kind, "unit", "ms")]
    if pa.types.is_time(kind):
        return lambda value: time_text(value * nanos // NANOS_A_MICRO)
    if pa.types.is_duration(kind):
        return lambda value: f"{value} {kind.unit}"
    zone = "" if getattr(kind, "tz", None) is None else "Z" if json else "+00:00"
    return lambda value: timestamp_text(value * nanos, "T" if json else " ") + zone
