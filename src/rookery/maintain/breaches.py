"""Where a table is below its policy: the work that the plans of the pipeline's steps find."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from rookery.maintain.policies.policy import Policy
from rookery.maintain.steps import compact, refresh, rewrite_deletes, rewrite_manifests
from rookery.maintain.steps.expire import expirable
from rookery.maintain.steps.step import Plan, PlanInput
from rookery.model import RookeryError, counted
from rookery.tables import Table

# Steps that plan from a survey alone. Orphans and left-over files follow every failure, and wait for
# the next run; to find them takes a listing of the whole folder.
_STEPS = (refresh.STEP, compact.STEP, rewrite_deletes.STEP, rewrite_manifests.STEP)


_SLACK = 0.1  # of the time that snapshots are kept, as with every commit one more exceeds it


def lasting_breaches(view: PlanInput) -> Iterator[str]:
    """Yield a line for each that stays while neither the table nor what is beside it changes."""
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


def overdue(table: Table, policy: Policy, now: float) -> Iterator[str]:
    """Yield that snapshots are long past their retention, which time alone brings about."""
    kept = policy.snapshots.keep_for
    late = None if kept is None else max(kept * _SLACK, timedelta(0))
    if late is not None and (count := expirable(table, policy.snapshots, now, late)):
        yield f"{counted(count, 'snapshot')} overdue to expire"
