"""Expiring snapshots: those past their retention, with the files that nothing else names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.metadata import TableMetadata

from rookery.io import shown
from rookery.io.identity import LikelyFiles
from rookery.maintain.policies.policy import Snapshots
from rookery.maintain.steps.listing import list_table
from rookery.maintain.steps.other_tables import DELETION_SECONDS, unreadable_table
from rookery.maintain.steps.ownership import forked, unknown_metadata
from rookery.maintain.steps.reachable_files import content, counts, listed, named_in, statistics_paths
from rookery.maintain.steps.refresh import choice_of
from rookery.maintain.steps.snapshot_retention import Retention, RetentionRule, retention, rule_of
from rookery.maintain.steps.step import Idle, Plan, PlanInput, Ran, Step, TableView, VerificationError
from rookery.maintain.steps.verify import nothing_missing, others_came
from rookery.model import RookeryError, UsageError, counted
from rookery.sidecar.statistics_file import names_gone
from rookery.spark.procedures import Moment, call, expire_by_action
from rookery.tables import Table
from rookery.tables.iceberg import IcebergTable
from rookery.tables.iceberg.metadata_file import MetadataFile
from rookery.tables.java_errors import ConflictError

NAME = "expire snapshots"
GC_ENABLED = "gc.enabled"
_KINDS = {
    "data": "deleted_data_files_count",
    "position": "deleted_position_delete_files_count",
    "equality": "deleted_equality_delete_files_count",
    "manifests": "deleted_manifest_files_count",
    "lists": "deleted_manifest_lists_count",
    "statistics": "deleted_statistics_files_count",
}


def collects_garbage(table: IcebergTable) -> bool:
    """Whether files of the table may be deleted: not if other tables share them."""
    return table.properties.get(GC_ENABLED, "true").lower() != "false"


def expirable(table: Table, wanted: Snapshots, now: float, late: timedelta = timedelta(0)) -> int:
    """Return how many snapshots are past the retention, by at least the given time; no file is read."""
    rule = rule_of(wanted, int(now * 1000))
    if rule is None or not isinstance(table, IcebergTable) or not collects_garbage(table):
        return 0
    rule = replace(rule, older_than_ms=rule.older_than_ms - int(late.total_seconds() * 1000))
    return len(retention(table.table.metadata, rule).snapshots)


def plan(view: PlanInput) -> Plan | Idle:
    """Plan which snapshots to expire, and which files to delete with them."""
    table, wanted = view.table, view.policy.snapshots
    rule = rule_of(wanted, view.now_ms)
    if rule is None:
        return Idle("the policy keeps all snapshots")
    if view.not_loadable:
        return Idle(view.not_loadable)
    if not collects_garbage(table):
        return Idle(f"{GC_ENABLED} is false: its files may be shared")
    due = retention(table.table.metadata, rule)
    if not due.snapshots and not due.refs:
        return Idle(f"no snapshot of {len(table.snapshots):,} is due to expire")
    others = _unknown_metadata(view)
    to_expire = _unnamed(due, others, _by_branches(table.table.metadata, rule))
    if not to_expire.snapshots and not to_expire.refs:
        return Idle(_kept(due, to_expire, others))
    kinds, size, to_delete = _files(table, to_expire)
    _check_not_named(view, others, to_delete)
    _check_not_shared(view, to_delete)
    return Plan(
        _why(to_expire, wanted.keep_last)
        + (f"; {_kept(due, to_expire, others)}" if due != to_expire else ""),
        sum(kinds.values()),
        size,
        {
            "older_than": rule.older_than_ms,
            "keep_last": rule.keep_last,
            "snapshots": to_expire.snapshots,
            "refs": to_expire.refs,
            "kinds": kinds,
            "files": tuple(to_delete),
            "statistics_first": _would_lose_statistics(view, to_expire),
        },
    )


def _unknown_metadata(view: PlanInput) -> tuple[MetadataFile, ...]:
    """Return the metadata files beside the table that are not of its past.

    Refuse if another catalog certainly has the table too: it may need snapshots that this one expires.
    """
    table, store = view.table, view.survey.store
    unknown = unknown_metadata(table, store, list_table(table.metadata_folder, store))
    fork, _ = forked(table, unknown, view.now)
    if fork is not None and not view.forced:
        raise fork
    return (*unknown.own, *unknown.foreign)


def _unnamed(due: Retention, others: Sequence[MetadataFile], by_branches: set[int]) -> Retention:
    """Exclude the snapshots that another metadata file names, which may be current in another catalog.

    Those that expire *by_branches* cannot be excluded; whether their files are named is checked separately.
    """
    named = {snapshot for each in others for snapshot in each.snapshots} - by_branches
    return replace(due, snapshots=tuple(number for number in due.snapshots if number not in named))


def _kept(due: Retention, to_expire: Retention, others: Sequence[MetadataFile]) -> str:
    kept = set(due.snapshots) - set(to_expire.snapshots)
    naming = next(each for each in others if kept.intersection(each.snapshots))
    where = shown(naming.location)
    return f"{counted(len(kept), 'snapshot')} kept, referenced by {where}, unknown to the catalog"


def _check_not_named(view: PlanInput, others: Sequence[MetadataFile], to_delete: Sequence[str]) -> None:
    """Refuse where another metadata file beside the table names a file that would be deleted."""
    table = view.table
    candidates = LikelyFiles(to_delete if others else ())
    for each in others:
        damaged: list[RookeryError] = []
        name = candidates.first(named_in(each, table.io, damaged))
        if name is not None:
            raise UsageError(
                f"{shown(name)} would be deleted with snapshots of {table.name}, and {shown(each.location)}, "
                "which the catalog does not know, references it",
                hint="delete that metadata file if no catalog has it",
            )
        if damaged and not view.forced:
            raise UsageError(
                f"{shown(each.location)}, which the catalog does not know, cannot be read in full: "
                f"{damaged[0].message}",
                hint="delete that metadata file if no catalog has it; --yes continues without that part",
            )


def _check_not_shared(view: PlanInput, to_delete: Sequence[str]) -> None:
    """Refuse where another table of the catalog needs a file that would be deleted."""
    table, other_tables = view.table, view.other_tables
    user = other_tables.shared(table, to_delete) if other_tables is not None else None
    if user is None:
        return
    if user.file is not None:
        raise UsageError(
            f"{shown(user.file)} would be deleted with snapshots of {table.name}, and {user.table} needs it",
            hint=f"set {GC_ENABLED}=false on both, or rewrite the data files of {user.table} first",
        )
    if user.error is not None and not view.forced:
        raise unreadable_table(user.error)


def _check_names(table: IcebergTable, to_delete: Sequence[str], staying: Sequence[str]) -> None:
    """Refuse to delete a file that is kept under another name: Iceberg compares only names."""
    twice = LikelyFiles(staying).first(to_delete)
    if twice is not None:
        raise UsageError(
            f"{shown(twice)} would be deleted, and {table.name} still needs it under another name",
            hint="rewrite the table's data files, so that each has one name; then run it again",
        )


def _why(to_expire: Retention, keep_last: int) -> str:
    snapshots = f"{counted(len(to_expire.snapshots), 'snapshot')} due to expire (the last {keep_last:,} stay)"
    refs = f"; refs past their age: {', '.join(to_expire.refs)}" if to_expire.refs else ""
    return snapshots + refs


def _files(table: IcebergTable, to_expire: Retention) -> tuple[dict[str, int], int, list[str]]:
    """Return the files that only these snapshots name: counts by kind, their bytes, and their names."""
    stay = table.snapshots.keys() - set(to_expire.snapshots)
    lists, manifests = listed(table, to_expire.snapshots)
    kept_lists, kept = listed(table, stay)
    alone = [manifest for path, manifest in manifests.items() if path not in kept]
    files = content(table, alone)
    if files.num_rows:
        still = content(table, kept.values())["path"].combine_chunks()
        files = files.filter(pc.invert(pc.is_in(files["path"], value_set=still)))
        _check_names(table, files["path"].to_pylist(), still.to_pylist())
    statistics = statistics_paths(table, set(to_expire.snapshots))
    others = statistics_paths(table, stay)
    unnamed = {path: size for path, size in statistics.items() if path not in others}
    kinds = {
        **counts(files),
        "manifests": len(alone),
        "lists": len(lists - kept_lists),
        "statistics": len(unnamed),
    }
    size = _sum(files["size"]) + sum(each.manifest_length for each in alone) + sum(unnamed.values())
    names = [*files["path"].to_pylist(), *(each.manifest_path for each in alone), *(lists - kept_lists)]
    return kinds, size, [*names, *unnamed]


def _sum(sizes: pa.ChunkedArray) -> int:
    return int(np.asarray(sizes.to_numpy(), np.int64).sum())


def _would_lose_statistics(view: PlanInput, to_expire: Retention) -> bool:
    """Whether statistics expire with the old snapshots while the current one has none of its own."""
    survey = view.survey
    if survey.snapshot is None:
        return False
    files = survey.table.statistics
    registered = {file.snapshot_id for file in files if not names_gone(survey.table, file)}
    if survey.snapshot.id in registered:
        return False
    state = survey.state
    described = {state.header.snapshot_id} if state is not None and state.thetas else set()
    return bool((registered | described).intersection(to_expire.snapshots))


def run(view: TableView, planned: Plan) -> Ran:
    """Register what would be lost, then expire."""
    maintained, notes = view.maintained, tuple[str, ...]()
    spark = maintained.spark()
    if planned.details["statistics_first"]:
        from rookery.collect.analyze import analyze  # brings numba, which plans do without

        analyze(maintained.spark, view.table, view.survey.store, choice_of(view))
        notes = ("the statistics of the current snapshot were registered first",)
    # Snapshots are given by id, not by age: a commit by others meanwhile must not cause one to expire
    # whose files were not checked.
    snapshots, keep_last = planned.details["snapshots"], planned.details["keep_last"]
    _check_still_due(view, planned)
    if maintained.other_tables is not None:
        maintained.other_tables.refresh(DELETION_SECONDS)
    _check_not_shared(view, planned.details["files"])
    if view.not_rewritable:
        answer = expire_by_action(spark, view.table, snapshots, Moment(0), keep_last)
    else:
        answer = call(
            spark,
            view.table,
            "expire_snapshots",
            older_than=Moment(0),
            retain_last=keep_last,
            stream_results=True,
            **({"snapshot_ids": snapshots} if snapshots else {}),
        )[0]
    kinds = {kind: int(answer[column] or 0) for kind, column in _KINDS.items()}
    return Ran(sum(kinds.values()), planned.bytes, notes, {"kinds": kinds})


def _check_still_due(view: TableView, planned: Plan) -> None:
    """Check that Iceberg would expire what is planned, and nothing else: others may have committed since."""
    now_ms = int(view.maintained.now() * 1000)  # Spark may have been started since the plan
    rule = RetentionRule(planned.details["older_than"], planned.details["keep_last"], now_ms)
    table, _ = view.maintained.open()
    metadata, planned_ids = table.table.metadata, set(planned.details["snapshots"])
    if (
        planned_ids.difference(retention(metadata, rule).snapshots)
        or _by_branches(metadata, rule) - planned_ids
    ):
        raise ConflictError(f"{table.name} has changed since the snapshots to expire were chosen")


def _by_branches(metadata: TableMetadata, rule: RetentionRule) -> set[int]:
    """The snapshots that expire by the ages that branches set for themselves, independent of arguments."""
    return set(retention(metadata, replace(rule, older_than_ms=0)).snapshots)


def verify(before: TableView, planned: Plan, ran: Ran, after: TableView) -> tuple[str, ...]:
    """Check that the planned snapshots have expired, no others, and that no file is missing."""
    planned_ids = set(planned.details["snapshots"])
    then, now = before.table.snapshots.keys(), after.table.snapshots.keys()
    rule = RetentionRule(planned.details["older_than"], planned.details["keep_last"], after.now_ms)
    left = planned_ids.intersection(retention(after.table.table.metadata, rule).snapshots)
    if left:  # one that others have meanwhile put a branch or a tag on stays, and is not among these
        raise VerificationError(
            f"{counted(len(left), 'snapshot')} should have expired and did not", hint="run it again"
        )
    nothing_missing(after)
    if others_came(before, after) or then - planned_ids - now:
        return ("others have committed at the same time",)
    deleted, expected = ran.details["kinds"], planned.details["kinds"]
    if deleted != expected:
        return (f"Iceberg deleted {_format_kinds(deleted)}; planned were {_format_kinds(expected)}",)
    return ()


def _format_kinds(kinds: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count) or "nothing"


STEP = Step(name=NAME, needs=(), measures=("snapshots",), plan=plan, run=run, verify=verify)
