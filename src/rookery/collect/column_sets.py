"""Column groups, collected as if each were a column: `--together a,b`.

A group is a field of its own, with a negative id and a type that lists its members; so all that applies
to columns (incremental refresh, removal of files, change of a member's type) applies to groups.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from rookery.model import Field, UsageError
from rookery.model.type_names import SKETCHED, base_type

_PREFIX = "joint("


def group_field(names: Sequence[str], fields: Sequence[Field]) -> Field:
    """Return the field that represents several columns together."""
    by_name = {field.name: field for field in fields}
    members = []
    for name in names:
        member = by_name.get(name)
        if member is None or member.repeated or len(member.parts) > 1:
            raise UsageError(
                f"'{name}' cannot be counted together with others",
                hint="name columns at the top of the table",
            )
        if base_type(member.type) not in SKETCHED:
            raise UsageError(
                f"'{name}', a {member.type}, cannot be counted together with others",
                hint="name columns of other types",
            )
        members.append(member)
    if len(members) < 2 or len({member.id for member in members}) < len(members):
        raise UsageError("a column group needs two different columns or more", hint="use --together a,b")
    members.sort(key=lambda member: member.id)
    inside = ", ".join(f"{member.id}:{member.type}" for member in members)
    number = -2 - zlib.crc32(inside.encode()) % (1 << 30)
    path = tuple(member.name for member in members)
    filled = any(member.filled for member in members)
    return Field(number, " + ".join(path), f"{_PREFIX}{inside})", filled=filled, path=path)


def is_group(field: Field) -> bool:
    """Whether a field represents a column group."""
    return field.id < 0 and field.type.startswith(_PREFIX)
