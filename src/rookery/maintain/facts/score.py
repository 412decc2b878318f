"""One number for a table's health, and its parts, so that tables can be sorted by need."""

from __future__ import annotations

from dataclasses import dataclass

from rookery.maintain.facts.engine_visibility import EngineVisibility
from rookery.maintain.facts.layout import Layout
from rookery.maintain.facts.staleness import Freshness, Staleness
from rookery.maintain.policies.policy import Policy
from rookery.model import counted, percent


@dataclass(frozen=True, slots=True)
class ScorePart:
    """A part of the score: how good it is, from 0 to 1, and how much it counts."""

    name: str
    value: float
    weight: float
    why: str


@dataclass(frozen=True, slots=True)
class Score:
    """A table's health, from 0 to 100."""

    total: float
    parts: tuple[ScorePart, ...]


def score(
    staleness: Staleness,
    engine_visibility: tuple[EngineVisibility, ...],
    layout: Layout,
    policy: Policy,
    expirable: int,
) -> Score:
    """Return the score of a table, with its parts."""
    parts = (
        _statistics(staleness),
        _visibility(engine_visibility),
        _files(layout),
        _deletes(layout, policy),
        _manifests(layout, policy),
        ScorePart(
            "snapshots",
            1 - expirable / layout.snapshots if layout.snapshots else 1.0,
            0.05,
            f"{expirable:,} of {counted(layout.snapshots, 'snapshot')} due to expire",
        ),
        _order(layout, policy),
    )
    weight = sum(part.weight for part in parts)
    return Score(round(100 * sum(part.value * part.weight for part in parts) / weight, 1), parts)


def _statistics(staleness: Staleness) -> ScorePart:
    if staleness.freshness is Freshness.NEVER:
        return ScorePart("statistics", staleness.health, 0.35, "never collected")
    value = (staleness.health + staleness.covered) / 2
    changed = f"{counted(staleness.changed_rows, 'row')} changed since"
    return ScorePart("statistics", value, 0.35, f"{changed}, {percent(staleness.covered)} of rows described")


def _visibility(engine_visibility: tuple[EngineVisibility, ...]) -> ScorePart:
    shares = [visibility.columns / visibility.of for visibility in engine_visibility if visibility.of]
    columns_found = ", ".join(
        f"{visibility.engine} {visibility.columns} of {visibility.of}" for visibility in engine_visibility
    )
    return ScorePart(
        "visibility",
        sum(shares) / len(shares) if shares else 1.0,
        0.1,
        f"columns visible: {columns_found or 'none needed'}",
    )


def _files(layout: Layout) -> ScorePart:
    value = 1 - layout.crowded_files / layout.files if layout.files else 1.0
    return ScorePart(
        "files",
        value,
        0.25,
        f"{layout.crowded_files:,} of {counted(layout.files, 'file')} small, "
        "in partitions with many small files",
    )


def _deletes(layout: Layout, policy: Policy) -> ScorePart:
    share = sum(kind.share for kind in layout.deletes)
    value = 1 - min(1.0, share / policy.compaction.delete_ratio)
    return ScorePart("deletes", value, 0.15, f"{share:.1%} of rows deleted")


def _manifests(layout: Layout, policy: Policy) -> ScorePart:
    most = max(policy.manifests.most_small, 1)
    value = min(1.0, most / layout.small_manifests) if layout.small_manifests else 1.0
    return ScorePart("manifests", value, 0.05, counted(layout.small_manifests, "small manifest"))


def _order(layout: Layout, policy: Policy) -> ScorePart:
    depth = layout.sort.depth if layout.sort is not None else None
    if depth is None:
        return ScorePart("order", 1.0, 0.05, "no sort order")
    return ScorePart(
        "order", min(1.0, policy.compaction.most_overlap / depth), 0.05, f"{depth:.1f} files overlap"
    )
