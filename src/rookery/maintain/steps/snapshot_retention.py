"""Which snapshots a retention keeps: what Iceberg's `RemoveSnapshots` would decide, from metadata alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType

from rookery.maintain.policies.policy import Snapshots
from rookery.tables.iceberg.table_properties import number_of

MAIN = "main"
_MAX_REF_AGE = "history.expire.max-ref-age-ms"
_FOR_EVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Link:
    """A snapshot's parent, and when it was written."""

    parent: int | None
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """A retention: what is younger stays, and of each branch so many snapshots of any age."""

    older_than_ms: int
    keep_last: int
    now_ms: int  # by which the refs' own ages are counted


def rule_of(wanted: Snapshots, now_ms: int) -> RetentionRule | None:
    """Return the retention that a policy sets; None if all snapshots are kept."""
    if wanted.keep_for is None:
        return None
    older_than = now_ms - int(wanted.keep_for.total_seconds() * 1000)
    return RetentionRule(older_than, max(wanted.keep_last, 1), now_ms)


@dataclass(frozen=True, slots=True)
class Retention:
    """What expires: snapshots by id, the oldest first, and branches and tags by name."""

    snapshots: tuple[int, ...]
    refs: tuple[str, ...]


def retention(metadata: TableMetadata, rule: RetentionRule) -> Retention:
    """Return which snapshots and refs of a table expire."""
    links = {
        each.snapshot_id: Link(each.parent_snapshot_id, each.timestamp_ms) for each in metadata.snapshots
    }
    oldest = number_of(metadata.properties, _MAX_REF_AGE, _FOR_EVER)
    return expired(links, metadata.refs, rule, oldest)


def expired(
    links: Mapping[int, Link],
    refs: Mapping[str, SnapshotRef],
    rule: RetentionRule,
    max_ref_age_ms: int = _FOR_EVER,
) -> Retention:
    """Return which of these snapshots and refs expire."""
    kept_refs = {
        name: ref for name, ref in refs.items() if name == MAIN or _young(ref, links, rule, max_ref_age_ms)
    }
    kept = {ref.snapshot_id for ref in kept_refs.values()}
    referenced = set(kept)
    for ref in kept_refs.values():
        if ref.snapshot_ref_type is SnapshotRefType.BRANCH:
            kept |= _of_branch(ref, links, rule)
            referenced |= {number for number, _ in _ancestors(ref.snapshot_id, links)}
    kept |= {
        number
        for number, link in links.items()
        if number not in referenced and link.timestamp_ms >= rule.older_than_ms
    }
    gone = sorted(links.keys() - kept, key=lambda number: (links[number].timestamp_ms, number))
    return Retention(tuple(gone), tuple(sorted(refs.keys() - kept_refs.keys())))


def _young(ref: SnapshotRef, links: Mapping[int, Link], rule: RetentionRule, max_ref_age_ms: int) -> bool:
    """Whether a ref is kept; one whose snapshot is missing is not."""
    link = links.get(ref.snapshot_id)
    most = ref.max_ref_age_ms if ref.max_ref_age_ms is not None else max_ref_age_ms
    return link is not None and rule.now_ms - link.timestamp_ms <= most


def _of_branch(ref: SnapshotRef, links: Mapping[int, Link], rule: RetentionRule) -> set[int]:
    """The snapshots that a branch keeps, by its own settings or by the rule, up to the first that expires."""
    age = ref.max_snapshot_age_ms
    oldest = rule.now_ms - age if age is not None else rule.older_than_ms
    least = ref.min_snapshots_to_keep if ref.min_snapshots_to_keep is not None else rule.keep_last
    kept: set[int] = set()
    for number, link in _ancestors(ref.snapshot_id, links):
        if len(kept) >= least and link.timestamp_ms < oldest:
            break
        kept.add(number)
    return kept


def _ancestors(number: int | None, links: Mapping[int, Link]) -> Iterator[tuple[int, Link]]:
    while number is not None and number in links:
        yield number, links[number]
        number = links[number].parent
