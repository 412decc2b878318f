"""Which types Iceberg's Java library knows: it loads no table that has another in any schema."""

from __future__ import annotations

import re

from rookery.model.type_names import SKETCHED, base_type

_SPATIAL = re.compile(r"(geometry|geography)\s*(\(.*\))?", re.ASCII)


def java_knows(kind: str) -> bool:
    """Whether Iceberg's Java library knows a type.

    >>> [java_knows(kind) for kind in ("fixed[16]", "variant", "geometry(srid:0)", "quaternion(3)")]
    [True, True, True, False]
    """
    return base_type(kind) in SKETCHED | {"variant", "unknown"} or _SPATIAL.fullmatch(kind) is not None
