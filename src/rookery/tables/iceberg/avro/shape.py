"""The fields to read of a record, by Iceberg's field ids: one column for each leaf and each list.

Columns are numbered in the order of the shape; those of a list's items follow it directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """An int, long or boolean, that must fit so many bits."""

    name: str
    bits: int = 64
    required: bool = False


@dataclass(frozen=True, slots=True)
class Chars:
    """A string, bytes or fixed."""

    name: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """A record of plain values as its bytes, to be decoded once for each distinct one."""

    name: str


@dataclass(frozen=True, slots=True)
class Items:
    """An array, or a map that Iceberg writes as an array of keys and values."""

    name: str
    item: Shape
    required: bool = False


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of a record by their ids; others are skipped."""

    fields: tuple[tuple[int, Shape], ...]


Shape: TypeAlias = Number | Chars | Raw | Items | Fields


def pairs(name: str, key_id: int, value_id: int, value: type[Number] | type[Chars]) -> Items:
    """Return the shape of a map by column id; its columns are `name.key` and `name.value`."""
    key = Number(f"{name}.key", 32, required=True)
    return Items(name, Fields(((key_id, key), (value_id, value(f"{name}.value", required=True)))))


def columns_of(shape: Shape) -> tuple[str, ...]:
    """Return the names of a shape's columns in their order.

    >>> columns_of(Fields(((1, Number("a")), (2, pairs("m", 3, 4, Chars)))))
    ('a', 'm', 'm.key', 'm.value')
    """
    match shape:
        case Fields(fields):
            return tuple(name for _, part in fields for name in columns_of(part))
        case Items(name, item):
            return (name, *columns_of(item))
    return (shape.name,)
