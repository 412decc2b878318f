"""Pauses between attempts: each twice the one before, up to a longest."""

from __future__ import annotations

import random
from collections.abc import Iterator


def pauses(first: float, longest: float, *, jitter: bool = True) -> Iterator[float]:
    """Yield the seconds to wait before each further attempt, without end.

    With *jitter*, processes whose commits conflicted do not conflict again at the next attempt.

    >>> from itertools import islice
    >>> list(islice(pauses(1.0, 5.0, jitter=False), 5))
    [1.0, 2.0, 4.0, 5.0, 5.0]
    """
    pause = first
    while True:
        yield pause * random.uniform(0.5, 1) if jitter else pause  # noqa: S311
        pause = min(pause * 2, longest)
