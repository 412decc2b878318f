"""Finding a column by the name that a person gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from rookery.model.errors import UsageError


class Named(Protocol):
    """What has a name: a leaf column, or a column of Iceberg's schema."""

    @property
    def name(self) -> str: ...  # noqa: D102


_Named = TypeVar("_Named", bound=Named)


def column_named(columns: Sequence[_Named], name: str) -> _Named:
    """Return the column of that name: as it is written, else the one that differs in case alone.

    >>> from rookery.model.table import Field
    >>> column_named([Field(1, "Id", "long"), Field(2, "day", "date")], "id").id
    1
    """
    found = [column for column in columns if column.name == name]
    found = found or [column for column in columns if column.name.lower() == name.lower()]
    if len(found) != 1:
        raise no_column(columns, name, "there are several columns" if found else "there is no column")
    return found[0]


def no_column(columns: Sequence[Named], name: str, what: str = "there is no column") -> UsageError:
    """Say that a name stands for no column, or for several, and what the columns are."""
    known = ", ".join(column.name for column in columns[:8]) + (" …" if len(columns) > 8 else "")
    return UsageError(f"{what} '{name}'", hint=f"the columns are {known}")
