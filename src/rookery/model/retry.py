"""Attempts with pauses between them: each pause twice the one before, up to a longest."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator


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


def attempts(
    most: int,
    first: float,
    longest: float,
    *,
    jitter: bool = True,
    wait: Callable[[float], object] | None = None,
) -> Iterator[int]:
    """Yield the numbers of attempts from 1, and pause before each further one; the caller stops on success.

    >>> list(attempts(3, 1.0, 60.0, wait=lambda seconds: None))
    [1, 2, 3]
    """
    waits = pauses(first, longest, jitter=jitter)
    for number in range(1, most + 1):
        if number > 1:
            (wait or time.sleep)(next(waits))
        yield number
