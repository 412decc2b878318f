"""How callers are told of files that are read for the statistics of tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from rookery.model import counted, in_bytes

# Called with the number of files that are read, the number to read, and the same of bytes.
Advance: TypeAlias = Callable[[int, int, int, int], None]
ProgressOf: TypeAlias = Callable[[str], AbstractContextManager[Advance | None]]  # of a table, by its name
_EVERY = 0.5  # seconds between two lines: a notebook keeps all that is printed


def in_notebook(table: str) -> Advance | None:
    """Return what shows the progress of a table in a notebook; None if this is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return None if getattr(shell, "kernel", None) is None else TextProgress(table)


def of_notebook(table: str) -> AbstractContextManager[Advance | None]:
    """Return the progress of a table for `maintain`: shown in a notebook alone."""
    return nullcontext(in_notebook(table))


class TextProgress:
    """One line of text that is overwritten, at most every half second."""

    def __init__(self, table: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._table = table
        self._clock = clock
        self._next = 0.0

    def __call__(self, files: int, all_files: int, size: int, all_bytes: int) -> None:
        """Show how many files are read, if that was not done just before; always at the end."""
        is_done = files == all_files
        if self._clock() < self._next and not is_done:
            return
        self._next = self._clock() + _EVERY
        of = f"{files:,} of {counted(all_files, 'file')}, {in_bytes(size)} of {in_bytes(all_bytes)}"
        sys.stdout.write(f"\r{self._table}: read {of}" + ("\n" if is_done else ""))
        sys.stdout.flush()
