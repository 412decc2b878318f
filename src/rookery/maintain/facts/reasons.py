"""Why statistics are to be refreshed, by the policy."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.maintain.facts.engine_visibility import EngineVisibility
from rookery.maintain.facts.staleness import Cause, Freshness, Staleness
from rookery.maintain.policies.policy import Policy
from rookery.model import counted, percent


def reasons(
    staleness: Staleness, engine_visibility: tuple[EngineVisibility, ...], policy: Policy
) -> Iterator[str]:
    """Yield why statistics are to be refreshed, a line each."""
    wanted = policy.statistics
    if not staleness.rows:
        return
    if staleness.freshness is Freshness.NEVER:
        yield "statistics were never collected"
        return
    if staleness.health < wanted.health:
        yield f"health {staleness.health:.2f} is below {wanted.health:g}"
    behind = staleness.snapshots_behind
    if wanted.snapshots is not None and behind is not None and behind >= wanted.snapshots:
        yield f"statistics are {counted(behind, 'snapshot')} behind, the limit is {wanted.snapshots}"
    unseen = any(
        visibility.engine == "spark" and visibility.of and not visibility.columns
        for visibility in engine_visibility
    )
    if wanted.after_compaction and Cause.COMPACTION in staleness.causes:
        if unseen:
            yield "files were rewritten, and Spark has found no statistics since"
        elif staleness.covered < 1:
            yield f"files were rewritten, and statistics describe {percent(staleness.covered)} of rows"
    if Cause.SCHEMA in staleness.causes:
        yield "columns were added or changed their type since statistics were collected"
    if staleness.freshness is Freshness.CURRENT and unseen:
        yield "statistics are current, but not registered where Spark looks"
    if any(visibility.broken for visibility in engine_visibility):
        yield "statistics of dropped columns are registered, on which Spark's optimizer fails"
