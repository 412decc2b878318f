"""A table as every format shows it: its columns and its snapshots."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """A primitive leaf column. Nested ones are named `a.b`, `list.element`, `map.key`, `map.value`."""

    id: int
    name: str
    type: str
    required: bool = False
    repeated: bool = False  # inside a list or a map, where a row has any number of values
    filled: bool = False  # rows of files that lack the column have a value all the same
    path: tuple[str, ...] = ()  # the parts of the name, which may contain dots

    @property
    def parts(self) -> tuple[str, ...]:
        """The names to walk down from the top of the table."""
        return self.path or tuple(self.name.split("."))

    @property
    def nested(self) -> bool:
        """Whether it is in a struct, a list or a map: where that is null, it is null too."""
        return len(self.parts) > 1


REPLACE = "replace"  # the operation of a snapshot that has the rows of the one before in other files


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state of the table, by its id."""

    id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    schema_id: int | None
    operation: str | None  # append, delete, overwrite or REPLACE
    pinned: bool = False  # selected by its id: it is read with the columns that it had
