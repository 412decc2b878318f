"""The columns of a table, nested ones too, in the types that every format is brought into.

Types have Iceberg's names: `long`, `decimal(9, 2)`, `timestamptz`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from rookery.model.table import Field


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type that has no parts, by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Struct:
    """Columns within a column."""

    columns: tuple[Column, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{column.name}: {column.type}' for column in self.columns)}>"


@dataclass(frozen=True, slots=True)
class ListOf:
    """Any number of values of one type."""

    element: Column

    def __str__(self) -> str:
        return f"list<{self.element.type}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """Any number of keys, each with a value."""

    key: Column
    value: Column

    def __str__(self) -> str:
        return f"map<{self.key.type}, {self.value.type}>"


Type: TypeAlias = Primitive | Struct | ListOf | MapOf


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a part of a nested one, identified by its id, not by its name."""

    id: int
    name: str
    type: Type
    required: bool = False
    initial_default: Any = None  # the value in files that lack the column
    doc: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Schema:
    """The columns of a table in their order."""

    columns: tuple[Column, ...]
    id: int | None = field(default=None, compare=False)

    @cached_property
    def by_id(self) -> Mapping[int, Column]:
        """Every column by its id, and every part of a nested one."""
        return {column.id: column for column in walk(self.columns)}

    @cached_property
    def leaves(self) -> tuple[Field, ...]:
        """The primitive columns, nested ones too, in their order."""
        return tuple(found for column in self.columns for found in _leaves(column, (column.name,), False))


def walk(columns: tuple[Column, ...]) -> Iterator[Column]:
    """Yield columns and all their parts."""
    for column in columns:
        yield column
        yield from walk(parts_of(column.type))


def parts_of(kind: Type) -> tuple[Column, ...]:
    """Return the columns that a type consists of; a primitive one has none."""
    match kind:
        case Struct():
            return kind.columns
        case ListOf():
            return (kind.element,)
        case MapOf():
            return (kind.key, kind.value)
    return ()


def _leaves(column: Column, path: tuple[str, ...], repeated: bool) -> Iterator[Field]:
    if isinstance(column.type, Primitive):
        filled = column.initial_default is not None
        yield Field(
            id=column.id,
            name=".".join(path),
            type=column.type.name,
            required=column.required,
            repeated=repeated,
            filled=filled,
            path=path,
        )
        return
    repeated = repeated or not isinstance(column.type, Struct)
    for part in parts_of(column.type):
        yield from _leaves(part, (*path, part.name), repeated)
