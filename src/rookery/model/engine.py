"""The engines of an analysis."""

from __future__ import annotations

from enum import StrEnum

from rookery.model.errors import UsageError


class Engine(StrEnum):
    """Where the data files of an analysis are read, and statistics registered."""

    AUTO = "auto"
    LOCAL = "local"  # in this process, without Java
    SPARK = "spark"

    @classmethod
    def named(cls, name: str) -> Engine:
        """Return the engine of a name that a user gives.

        >>> Engine.named("local").value
        'local'
        """
        if name not in tuple(cls):
            raise UsageError(f"there is no engine '{name}'", hint=f"use {', '.join(cls)}")
        return cls(name)
