"""Column sets, collected as if each were a column: `--column-set a,b`.

A column set is a field of its own, with a negative id and a type that lists its members; so all that applies
to columns (incremental refresh, removal of files, change of a member's type) applies to column sets.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

from rookery.model import Field, UsageError, column_named
from rookery.model.type_names import SKETCHED, base_type

_PREFIX = "joint("


def column_set_field(names: Sequence[str], fields: Sequence[Field]) -> Field:
    """Return the field that represents several columns together."""
    members = []
    for name in names:
        member = column_named(fields, name)
        if member.repeated or len(member.parts) > 1:
            raise UsageError(
                f"'{member.name}' cannot be counted together with others",
                hint="name columns at the top of the table",
            )
        if base_type(member.type) not in SKETCHED:
            raise UsageError(
                f"'{member.name}', a {member.type}, cannot be counted together with others",
                hint="name columns of other types",
            )
        members.append(member)
    if len(members) < 2 or len({member.id for member in members}) < len(members):
        raise UsageError("a column set needs two different columns or more", hint="use --column-set a,b")
    members.sort(key=lambda member: member.id)
    inside = ", ".join(f"{member.id}:{member.type}" for member in members)
    number = -2 - zlib.crc32(inside.encode()) % (1 << 30)
    path = tuple(member.name for member in members)
    filled = any(member.filled for member in members)
    return Field(number, " + ".join(path), f"{_PREFIX}{inside})", filled=filled, path=path)


def column_set_fields(id_sets: Iterable[Sequence[int]], fields: Sequence[Field]) -> list[Field]:
    """Return column sets by the ids of their members, with current types, each once.

    One of which a member does not exist, or can no longer be counted, is skipped.
    """
    by_id = {field.id: field for field in fields}
    sets: dict[Field, None] = {}
    for ids in id_sets:
        members = [by_id[number] for number in ids if number in by_id]
        able = all(base_type(member.type) in SKETCHED and len(member.parts) == 1 for member in members)
        if able and 1 < len(members) == len(ids):
            sets[column_set_field([member.name for member in members], fields)] = None
    return list(sets)


def is_column_set(field: Field) -> bool:
    """Whether a field represents a column set."""
    return field.id < 0 and field.type.startswith(_PREFIX)
