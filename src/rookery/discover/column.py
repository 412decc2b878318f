"""What is compared: the facts of a column, or of a declared column set, of one table."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.model.type_names import base_type, scale_of
from rookery.sketch import MAX_THETA, ThetaSketch
from rookery.values.canonical import is_float


@dataclass(frozen=True, slots=True, eq=False)
class ColumnFacts:
    """A column or a column set, and what its state and the bounds of its files prove."""

    table: str
    columns: tuple[str, ...]  # one, or those of a column set in the order of their ids
    types: tuple[str, ...]
    sketch: ThetaSketch  # of the values of live rows
    rows_high: int  # rows that are not null are at most this many
    rows_exact: bool = True  # false: deleted rows or unknown nulls may make them fewer
    deletes: bool = False  # whether rows of some file are deleted
    has_nulls: bool = False  # false: it is proved that no row is null
    may_be_empty: bool = False  # whether a value may be the empty text, which sketches do not contain
    has_empty: bool = False  # whether one surely is
    repeated: bool = False  # inside a list or a map
    low: int | None = None  # the least value as a whole number, of types that have one
    high: int | None = None
    tight: bool = False  # whether low and high are surely values
    in_two_files: bool = False  # whether a value was seen in two files
    column_prefix: str = ""  # that all columns of the table begin with

    @property
    def name(self) -> str:
        """Its name: of a column set, all columns in parentheses."""
        return self.columns[0] if len(self.columns) == 1 else f"({', '.join(self.columns)})"

    @property
    def comparable(self) -> tuple[str, ...]:
        """The key that columns have in common if equal values have equal hashes."""
        return tuple(comparable_type(name) for name in self.types)

    @property
    def is_sampled(self) -> bool:
        """Whether the sketch holds a sample of the hashes, and not all of them."""
        return self.sketch.theta < MAX_THETA

    @property
    def distinct(self) -> float:
        """The number of distinct values, estimated if the sketch is a sample."""
        return len(self.sketch.hashes) / self.sketch.share + self.has_empty

    @property
    def equals_by_bits(self) -> bool:
        """Whether values are equal only if their bytes are: of floats, 0.0 equals -0.0."""
        return not any(map(is_float, self.types))


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A table or a column that is not compared, and why."""

    table: str
    column: str | None  # none: the whole table
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class TableFacts:
    """The columns of a table that can be compared, and what cannot."""

    table: str
    columns: tuple[ColumnFacts, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()


def comparable_type(type_name: str) -> str:
    """Return the form of a type's hashed bytes: decimals of one scale have the same at any precision.

    >>> comparable_type("decimal(9, 2)") == comparable_type("decimal(18, 2)"), comparable_type("int")
    (True, 'int')
    """
    return f"decimal of scale {scale_of(type_name)}" if base_type(type_name) == "decimal" else type_name
