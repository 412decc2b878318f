"""Which columns are collected, by the names that a user gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rookery.collect.column_sets import group_field
from rookery.model import Field, UsageError, no_column
from rookery.model.type_names import SKETCHED, base_type, member_ids
from rookery.sidecar import State


@dataclass(frozen=True, slots=True)
class Choice:
    """What to collect of a table from now on; a name selects its column and all leaves below it."""

    columns: tuple[str, ...] = ()  # none: all
    exclude: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()
    histogram: tuple[str, ...] = ()
    top_k: tuple[str, ...] = ()
    sample: int | None = None  # row groups a file; 0 for all, None for as many as are declared
    drop_together: tuple[tuple[str, ...], ...] = ()
    drop_histogram: tuple[str, ...] = ()
    drop_top_k: tuple[str, ...] = ()


def choose(fields: Sequence[Field], choice: Choice) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """Return the columns and groups whose distinct values are counted, and columns that cannot be."""
    named = columns_named(fields, choice.columns) if choice.columns else list(fields)
    excluded = columns_named(fields, choice.exclude)
    wanted = [field for field in named if field not in excluded]
    if not wanted:
        raise UsageError("no column is left", hint="exclude fewer columns")
    able = [field for field in wanted if base_type(field.type) in SKETCHED]
    groups = [group_field(names, fields) for names in choice.together]
    return (*able, *groups), tuple(field for field in wanted if field not in able)


def collected_groups(state: State, fields: Sequence[Field]) -> list[Field]:
    """Return the column groups that a state has collected, as far as their members are still there.

    A group whose member has changed its type is returned once, even if collected by both types.
    """
    by_id = {field.id: field for field in fields}
    groups: dict[Field, None] = {}
    for kind in state.header.types.values():
        members = [by_id.get(number) for number in member_ids(kind)] if kind.startswith("joint(") else []
        if members and all(member and base_type(member.type) in SKETCHED for member in members):
            groups[group_field([member.name for member in members if member], fields)] = None
    return list(groups)


def columns_named(fields: Sequence[Field], names: Sequence[str]) -> list[Field]:
    """Return the columns of these names, in the order of the table."""
    for name in names:
        if not any(_stands_for(name, field) for field in fields):
            raise no_column(fields, name)
    return [field for field in fields if any(_stands_for(name, field) for name in names)]


def _stands_for(name: str, field: Field) -> bool:
    return field.name == name or field.name.startswith(f"{name}.")
