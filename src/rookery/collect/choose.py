"""Which columns are collected, by the names that a user gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.collect.column_sets import column_set_field
from rookery.model import Field, UsageError, no_column
from rookery.model.type_names import SKETCHED, base_type


@dataclass(frozen=True, slots=True)
class Choice:
    """What to collect of a table from now on; a name selects its column and all leaves below it."""

    columns: tuple[str, ...] = ()  # none: all
    exclude: tuple[str, ...] = ()
    column_sets: tuple[tuple[str, ...], ...] = ()
    histogram: tuple[str, ...] = ()
    top_k: tuple[str, ...] = ()
    sample: int | None = None  # row groups a file; 0 for all, None for as many as are declared
    drop_column_sets: tuple[tuple[str, ...], ...] = ()
    drop_histogram: tuple[str, ...] = ()
    drop_top_k: tuple[str, ...] = ()


def choose(fields: Sequence[Field], choice: Choice) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """Return the columns and column sets whose distinct values are counted, and columns that cannot be."""
    named = columns_named(fields, choice.columns) if choice.columns else list(fields)
    excluded = columns_named(fields, choice.exclude)
    wanted = [field for field in named if field not in excluded]
    if not wanted:
        raise UsageError("no column is left", hint="exclude fewer columns")
    able = [field for field in wanted if base_type(field.type) in SKETCHED]
    column_sets = [column_set_field(names, fields) for names in choice.column_sets]
    return (*able, *column_sets), tuple(field for field in wanted if field not in able)


def columns_named(fields: Sequence[Field], names: Sequence[str]) -> list[Field]:
    """Return the columns of these names, in the order of the table."""
    for name in names:
        if not any(selects(name, field) for field in fields):
            raise no_column(fields, name)
    return [field for field in fields if any(selects(name, field) for name in names)]


def selects(name: str, field: Field) -> bool:
    """Whether a name selects a leaf column: it is its own, or that of a column around it."""
    return field.name == name or field.name.startswith(f"{name}.")
