"""What of a table is below its policy: one line each, and what mends it is `rookery maintain`."""

from __future__ import annotations

from collections.abc import Iterator

from rookery.maintain.layout import Layout
from rookery.maintain.policy import Policy, Strategy
from rookery.maintain.sights import Sight
from rookery.maintain.staleness import Cause, Freshness, Staleness
from rookery.maintain.survey import Survey


def breaches(
    survey: Survey,
    staleness: Staleness,
    layout: Layout,
    sights: tuple[Sight, ...],
    policy: Policy,
    expirable: int,
) -> tuple[str, ...]:
    """Return what is below the policy."""
    return (
        *of_statistics(survey, staleness, sights, policy),
        *_of_layout(layout, policy),
        *((f"{expirable} snapshots are past their time",) if expirable else ()),
    )


def of_statistics(
    survey: Survey, staleness: Staleness, sights: tuple[Sight, ...], policy: Policy
) -> Iterator[str]:
    """Yield why statistics are to be refreshed."""
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
        yield f"statistics are {behind} snapshots behind, {wanted.snapshots} are allowed"
    unseen = any(sight.engine == "spark" and not sight.columns for sight in sights)
    if wanted.after_compaction and Cause.COMPACTION in staleness.causes and unseen:
        yield "files were rewritten, and Spark finds no statistics since"
    if Cause.SCHEMA in staleness.causes:
        yield "columns have come or changed their type since statistics were collected"
    if staleness.freshness is Freshness.CURRENT and unseen:
        yield "statistics are current, but not registered where Spark looks"


def _of_layout(layout: Layout, policy: Policy) -> Iterator[str]:
    compaction = policy.compaction
    if compaction.strategy is not Strategy.NONE:
        if layout.crowded_files:
            yield f"{layout.crowded_files:,} of {layout.files:,} files are small"
        if layout.worn_files:
            yield f"deletes hide {compaction.delete_ratio:.0%} or more of {layout.worn_files:,} files"
        depth = layout.sort.depth if layout.sort is not None else None
        if compaction.strategy is Strategy.SORT and depth is not None and depth > compaction.most_overlap:
            yield f"files overlap {depth:.1f} deep in the sort order, {compaction.most_overlap:g} is allowed"
    if policy.deletes.dangling and layout.dangling_deletes:
        yield f"{layout.dangling_deletes:,} deletes apply to no data"
    if layout.small_manifests > policy.manifests.most_small:
        yield f"{layout.small_manifests:,} manifests are small, {policy.manifests.most_small} are allowed"
