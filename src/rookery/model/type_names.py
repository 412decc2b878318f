"""Names of Iceberg's types."""

from __future__ import annotations

import re

SKETCHED = frozenset(
    {
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "decimal",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "timestamp_ns",
        "timestamptz_ns",
        "string",
        "binary",
        "fixed",
        "uuid",
    }
)
"""The types whose distinct values can be counted."""

_MEMBER = re.compile(r"(-?\d+):(\w+(?:\([^)]*\)|\[\d+\])?)")
# As a whole: a type of which only the beginning is known is another type.
_PARAMETRIC = re.compile(r"(decimal)\(\d+,\s*\d+\)|(fixed)\[\d+\]|(joint)\(.*\)", re.ASCII)
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)", re.ASCII)
_FIXED = re.compile(r"fixed\[(\d+)\]", re.ASCII)


def base_type(type_name: str) -> str:
    """Return an Iceberg type's name without its parameters.

    >>> base_type("decimal(12, 2)"), base_type("fixed[16]"), base_type("long"), base_type("fixed-point(3)")
    ('decimal', 'fixed', 'long', 'fixed-point(3)')
    """
    match = _PARAMETRIC.fullmatch(type_name)
    return str(match[match.lastindex]) if match and match.lastindex else type_name


def precision_and_scale(type_name: str) -> tuple[int, int] | None:
    """Return how many digits a decimal has, and how many of them after the point; None of other types.

    >>> precision_and_scale("decimal(12, 2)"), precision_and_scale("long")
    ((12, 2), None)
    """
    match = _DECIMAL.fullmatch(type_name)
    return (int(match[1]), int(match[2])) if match else None


def precision_of(type_name: str) -> int:
    """Return how many digits a decimal has.

    >>> precision_of("decimal(12, 2)")
    12
    """
    return _digits(type_name)[0]


def scale_of(type_name: str) -> int:
    """Return how many digits of a decimal are after the point.

    >>> scale_of("decimal(12, 2)")
    2
    """
    return _digits(type_name)[1]


def _digits(type_name: str) -> tuple[int, int]:
    digits = precision_and_scale(type_name)
    if digits is None:
        raise ValueError(f"not a decimal type: {type_name}")
    return digits


def fixed_length(type_name: str) -> int | None:
    """Return how many bytes values of a fixed length have; None of other types.

    >>> fixed_length("fixed[16]"), fixed_length("binary")
    (16, None)
    """
    match = _FIXED.fullmatch(type_name)
    return int(match[1]) if match else None


def member_ids(type_name: str) -> tuple[int, ...]:
    """Return the ids of the members of a column set, by its type.

    >>> member_ids("joint(1:long, 3:decimal(9, 2))"), member_ids("long")
    ((1, 3), ())
    """
    return tuple(member_types(type_name))


def member_types(type_name: str) -> dict[int, str]:
    """Return the types of the members of a column set, by id.

    >>> member_types("joint(1:long, 3:decimal(9, 2), 4:fixed[3])")
    {1: 'long', 3: 'decimal(9, 2)', 4: 'fixed[3]'}
    """
    return {int(number): kind for number, kind in _MEMBER.findall(type_name)}


def type_text(type_name: str) -> str:
    """Return a type as people read it: that of a column set without the ids of its members.

    >>> type_text("joint(1:long, 3:decimal(9, 2))"), type_text("decimal(9, 2)")
    ('(long, decimal(9, 2))', 'decimal(9, 2)')
    """
    members = member_types(type_name)
    return f"({', '.join(members.values())})" if members else type_name
