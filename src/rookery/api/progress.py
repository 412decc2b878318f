"""How callers are told of files that are read for the statistics of tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeAlias

# Called with the number of files that are read, the number to read, and the same of bytes.
Advance: TypeAlias = Callable[[int, int, int, int], None]
ProgressOf: TypeAlias = Callable[[str], AbstractContextManager[Advance | None]]  # of a table, by its name
