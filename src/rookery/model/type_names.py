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

_PARAMETRIC = re.compile(r"(decimal|fixed|joint)\b")


def base_type(type_name: str) -> str:
    """Return an Iceberg type's name without its parameters.

    >>> base_type("decimal(12, 2)"), base_type("fixed[16]"), base_type("long")
    ('decimal', 'fixed', 'long')
    """
    match = _PARAMETRIC.match(type_name)
    return match.group(1) if match else type_name
