"""What of a table is below its policy: what the pipeline would find to do, by the plans of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rookery.maintain.steps import compact, refresh, rewrite_deletes, rewrite_manifests
from rookery.maintain.steps.step import Idle, Look, Plan
from rookery.model import RookeryError

# Those that plan from what a survey has at hand. Orphans and left-overs come of every failure, and wait for
# the next run; to find them takes a listing of the whole folder.
_PLANS: tuple[Callable[[Look], Plan | Idle], ...] = (
    refresh.plan,
    compact.plan,
    rewrite_deletes.plan,
    rewrite_manifests.plan,
)


def breaches(look: Look, expirable: int) -> tuple[str, ...]:
    """Return what is below the policy, a line each."""
    return tuple(_found(look, expirable))


def _found(look: Look, expirable: int) -> Iterator[str]:
    for plan in _PLANS:
        try:
            planned = plan(look)
        except RookeryError as error:  # the policy asks for what the table cannot give
            yield str(error)
            continue
        if isinstance(planned, Plan):
            yield planned.why
    if expirable:
        yield f"{expirable:,} snapshots are past their time"
