"""The one error root. Every error states in one line what is wrong, with a hint at what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class RookeryError(Exception):
    """The base class of the errors that Rookery raises."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # which tracebacks show

    def __str__(self) -> str:
        return self.message


class UsageError(RookeryError, ValueError):
    """An invalid request: an unknown name, a wrong option, bad input."""


class GroupedUsageError(UsageError):
    """Several invalid parts of one input, each with its hint."""

    def __init__(self, errors: Sequence[UsageError]) -> None:
        super().__init__("; ".join(error.message for error in errors), hint=errors[0].hint)
        self.errors = tuple(errors)

    @classmethod
    def of(cls, errors: Sequence[UsageError]) -> UsageError:
        """Return the errors as one; a single one is returned as it is."""
        return errors[0] if len(errors) == 1 else cls(errors)


class MachineError(RookeryError):
    """The machine lacks something: Java, a package, a jar, write access."""


class CatalogError(RookeryError):
    """A catalog is not configured, cannot be reached, or refuses."""


class MissingCatalogError(CatalogError):
    """There is no catalog at an address, and looking for it has created none."""


class StorageError(RookeryError, OSError):
    """A file cannot be found, read or written."""


class MissingTableError(UsageError):
    """There is no table of that name."""


class MissingColumnError(UsageError, KeyError):
    """There is no column of that name."""


class EmptyCatalogError(UsageError):
    """The catalog has no tables at all."""


class MissingFileError(StorageError, FileNotFoundError):
    """The store answers that there is no such file."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file: the address that a format error points at."""

    file: str
    offset: int = 0

    def at(self, delta: int) -> Place:
        """Return the place *delta* bytes further on."""
        return Place(self.file, self.offset + delta)

    def __str__(self) -> str:
        return f"{self.file}, byte {self.offset}"


IN_MEMORY = Place("<bytes>")


class FormatError(RookeryError, ValueError):
    """Bytes are not valid in their format: with the file, the offset, the expected and the found."""

    def __init__(self, place: Place, expected: str, found: str, *, hint: str | None = None) -> None:
        super().__init__(f"{place}: expected {expected}, found {found}", hint=hint)
        self.place = place
        self.expected = expected
        self.found = found

    def __reduce__(self) -> tuple[object, ...]:  # so that it can be pickled
        return _rebuild, (type(self), self.place, self.expected, self.found, self.hint)


# A file that is damaged or missing can be skipped and written again. Any other failure (access denied, store
# unreachable) shows nothing about the file, and is never taken for its absence.
UNUSABLE_FILE = (FormatError, MissingFileError)


def _rebuild(
    cls: type[FormatError], place: Place, expected: str, found: str, hint: str | None
) -> FormatError:
    return cls(place, expected, found, hint=hint)
