"""Where a table is below its policy: the work that the plans of the pipeline's steps find."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from rookery.maintain.steps import compact, refresh, rewrite_deletes, rewrite_manifests
from rookery.maintain.steps.expire import expirable
from rookery.maintain.steps.step import Plan, PlanInput
from rookery.model import RookeryError
from rookery.model.report import counted

# Steps that plan from a survey alone. Orphans and left-over files follow every failure, and wait for
# the next run; to find them takes a listing of the whole folder.
_STEPS = (refresh.STEP, compact.STEP, rewrite_deletes.STEP, rewrite_manifests.STEP)


_SLACK = 0.1  # of the time that snapshots are kept, as with every commit one more exceeds it


def breaches(view: PlanInput) -> tuple[str, ...]:
    """Return each breach of the policy as one line."""
    return tuple(_found(view))


def _found(view: PlanInput) -> Iterator[str]:
    for step in _STEPS:
        if not step.takes(view.survey.table):
            continue
        try:
            planned = step.plan(view)
        except RookeryError as error:  # the table does not support what the policy sets
            yield str(error)
            continue
        if isinstance(planned, Plan):
            yield planned.why
    kept = view.policy.snapshots.keep_for
    if kept is not None and (overdue := expirable(view, late=max(kept * _SLACK, timedelta(0)))):
        yield f"{counted(overdue, 'snapshot')} overdue to expire"
