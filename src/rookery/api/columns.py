"""Checks of arguments that name columns: a text would be taken for a list of its letters."""

from __future__ import annotations

from collections.abc import Sequence

from rookery.model import UsageError

_NOT_A_LIST = "columns are given as a list of names"


def check_column_lists(**options: Sequence[str] | None) -> None:
    """Refuse an option that is one name, and not a list of names."""
    for option, names in options.items():
        if isinstance(names, str):
            raise UsageError(_NOT_A_LIST, hint=f'use {option}=["a", "b"]')


def check_column_sets(**options: Sequence[Sequence[str]]) -> None:
    """Refuse an option that is not a list of lists of names."""
    for option, sets in options.items():
        if isinstance(sets, str) or any(isinstance(names, str) for names in sets):
            raise UsageError(_NOT_A_LIST, hint=f'use {option}=[["a", "b"]]')
