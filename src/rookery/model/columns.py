"""Finding a column by the name that a user gives."""

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
    """Return the column of that name: as it is written, else the one that differs only in case.

    >>> from rookery.model.table import Field
    >>> column_named([Field(1, "Id", "long"), Field(2, "day", "date")], "id").id
    1
    """
    matching = [column for column in columns if column.name == name]
    matching = matching or [column for column in columns if column.name.lower() == name.lower()]
    if len(matching) != 1:
        raise no_column(columns, name, "there are several columns" if matching else "there is no column")
    return matching[0]


def no_column(columns: Sequence[Named], name: str, what: str = "there is no column") -> UsageError:
    """Return the error that a name matches no column, or several, with the known columns."""
    known = ", ".join(column.name for column in columns[:8]) + (" …" if len(columns) > 8 else "")
    return UsageError(f"{what} '{name}'", hint=f"the columns are {known}")
