"""Finding a column by the name that a user gives."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Protocol, TypeVar

from rookery.model.errors import UsageError

_LISTED = 8  # names in a hint


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
    return UsageError(f"{what} '{name}'", hint=columns_hint(name, [column.name for column in columns]))


def columns_hint(name: str, names: Sequence[str]) -> str:
    """Return which names are like one, or else the first of all.

    >>> columns_hint("amout", ["id", "amount"]), columns_hint("x", ["id", "amount"])
    ('did you mean amount?', 'the columns are id, amount')
    """
    close = get_close_matches(name, names)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"the columns are {', '.join(names[:_LISTED])}{' …' if len(names) > _LISTED else ''}"
