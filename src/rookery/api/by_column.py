"""Reports with a line per column, which are looked up by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Generic, Protocol, TypeVar

from rookery.model import MissingColumnError

__all__: list[str] = []


class Named(Protocol):
    """A line of a report."""

    @property
    def name(self) -> str: ...


Line = TypeVar("Line", bound=Named)


class ByColumn(Generic[Line]):
    """What gives a report its line of a column as `report["column"]`."""

    __slots__ = ()
    columns: tuple[Line, ...]

    def __getitem__(self, name: str) -> Line:
        """Return the line of a column: by its name, or by one that differs only in case."""
        for line in self.columns:
            if line.name == name:
                return line
        alike = [line for line in self.columns if line.name.lower() == str(name).lower()]
        if len(alike) == 1:
            return alike[0]
        raise MissingColumnError(f"there is no column '{name}'", hint=_hint(str(name), list(self)))

    def __contains__(self, name: object) -> bool:
        """Whether there is a line of that column."""
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the columns."""
        return (line.name for line in self.columns)


def _hint(name: str, names: Sequence[str]) -> str:
    """Return which names are like one, or else all of them."""
    close = get_close_matches(name, names)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"the columns are {', '.join(names[:8])}{' …' if len(names) > 8 else ''}"
