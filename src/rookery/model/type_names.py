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

# As a whole: a type of which only the beginning is known is another type.
_PARAMETRIC = re.compile(r"(decimal)\(\d+,\s*\d+\)|(fixed)\[\d+\]|(joint)\(.*\)", re.ASCII)


def base_type(type_name: str) -> str:
    """Return an Iceberg type's name without its parameters.

    >>> base_type("decimal(12, 2)"), base_type("fixed[16]"), base_type("long"), base_type("fixed-point(3)")
    ('decimal', 'fixed', 'long', 'fixed-point(3)')
    """
    match = _PARAMETRIC.fullmatch(type_name)
    return str(match[match.lastindex]) if match and match.lastindex else type_name
