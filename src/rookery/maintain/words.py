"""How numbers of things are said."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """Say how many there are.

    >>> counted(1, "file"), counted(1234, "file"), counted(2, "index", "indexes")
    ('1 file', '1,234 files', '2 indexes')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
