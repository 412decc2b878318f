"""Expiring snapshots: what a retention lets go, with the files that nothing else names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.metadata import TableMetadata

from rookery.collect.analyze import analyze
from rookery.collect.statistics import names_gone
from rookery.io import shown
from rookery.io.identity import LikelyFiles
from rookery.maintain.steps.listing import list_table
from rookery.maintain.steps.neighbours import NEIGHBOURS_SECONDS, not_asked
from rookery.maintain.steps.ownership import forked, strangers
from rookery.maintain.steps.reachable_files import content, counts, listed, named_in, statistics_paths
from rookery.maintain.steps.refresh import choice_of
from rookery.maintain.steps.snapshot_retention import Retention, Rule, retention, rule_of
from rookery.maintain.steps.step import Idle, Plan, PlanInput, Ran, Step, TableView, VerificationError
from rookery.maintain.steps.verify import nothing_missing, others_came
from rookery.model import RookeryError, UsageError
from rookery.model.report import counted
from rookery.spark.procedures import Moment, call, expire_by_action
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
    """Whether files of the table may be deleted: not where others share them."""
    return table.properties.get(GC_ENABLED, "true").lower() != "false"


def expirable(look: PlanInput, late: timedelta = timedelta(0)) -> int:
    """Return how many snapshots are past the retention, by so much at least; nothing is read for it."""
    table = look.table
    rule = rule_of(look.policy.snapshots, look.now_ms)
    if rule is None or not collects_garbage(table):
        return 0
    rule = replace(rule, older_than_ms=rule.older_than_ms - int(late.total_seconds() * 1000))
    return len(retention(table.table.metadata, rule).snapshots)


def plan(look: PlanInput) -> Plan | Idle:
    """Say which snapshots go, and what goes with them."""
    table, wanted = look.table, look.policy.snapshots
    rule = rule_of(wanted, look.now_ms)
    if rule is None:
        return Idle("snapshots are kept for ever")
    if look.not_loadable:
        return Idle(look.not_loadable)
    if not collects_garbage(table):
        return Idle(f"{GC_ENABLED} is false: its files may be shared")
    found = retention(table.table.metadata, rule)
    if not found.snapshots and not found.refs:
        return Idle(f"no snapshot of {len(table.snapshots):,} is past the retention")
    others = _unknown_metadata(look)
    gone = _unnamed(found, others, _by_branches(table.table.metadata, rule))
    if not gone.snapshots and not gone.refs:
        return Idle(_kept(found, gone, others))
    kinds, size, doomed = _files(table, gone)
    _check_not_named(look, others, doomed)
    _check_not_shared(look, doomed)
    return Plan(
        _why(gone, wanted.keep_last) + (f"; {_kept(found, gone, others)}" if found != gone else ""),
        sum(kinds.values()),
        size,
        {
            "older_than": rule.older_than_ms,
            "keep_last": rule.keep_last,
            "snapshots": gone.snapshots,
            "refs": gone.refs,
            "kinds": kinds,
            "files": tuple(doomed),
            "statistics_first": _would_lose_statistics(look, gone),
        },
    )


def _unknown_metadata(look: PlanInput) -> tuple[MetadataFile, ...]:
    """Return the metadata files beside the table that are not of its past.

    Where another catalog surely has the table too, refuse: it may need the snapshots that this one lets go.
    """
    table, store = look.table, look.survey.store
    found = strangers(table, store, list_table(table.metadata_folder, store))
    fork, _ = forked(table, found, look.now)
    if fork is not None and not look.forced:
        raise fork
    return (*found.own, *found.foreign)


def _unnamed(gone: Retention, others: Sequence[MetadataFile], by_branches: set[int]) -> Retention:
    """Leave out the snapshots that another metadata file names, which may be current in another catalog.

    Those that go *by_branches* cannot be left out; whether their files are named is checked by itself.
    """
    named = {snapshot for each in others for snapshot in each.snapshots} - by_branches
    return replace(gone, snapshots=tuple(number for number in gone.snapshots if number not in named))


def _kept(found: Retention, gone: Retention, others: Sequence[MetadataFile]) -> str:
    kept = set(found.snapshots) - set(gone.snapshots)
    naming = next(each for each in others if kept.intersection(each.snapshots))
    return f"{counted(len(kept), 'snapshot')} kept, named by {shown(naming.location)}, unknown to the catalog"


def _check_not_named(look: PlanInput, others: Sequence[MetadataFile], doomed: Sequence[str]) -> None:
    """Refuse where another metadata file beside the table names a file that would go."""
    table = look.table
    going = LikelyFiles(doomed if others else ())
    for each in others:
        damaged: list[RookeryError] = []
        name = going.first(named_in(each, table.io, damaged))
        if name is not None:
            raise UsageError(
                f"{shown(name)} would go with snapshots of {table.name}, and {shown(each.location)}, "
                "which the catalog does not know, names it",
                hint="delete that metadata file if no catalog has it",
            )
        if damaged and not look.forced:
            raise UsageError(
                f"{shown(each.location)}, which the catalog does not know, cannot be asked what it needs: "
                f"{damaged[0].message}",
                hint="delete that metadata file if no catalog has it; --yes goes on without that part",
            )


def _check_not_shared(look: PlanInput, doomed: Sequence[str]) -> None:
    """Refuse where another table of the catalog needs a file that would go."""
    table, neighbours = look.table, look.neighbours
    found = neighbours.shared(table, doomed) if neighbours is not None else None
    if found is None:
        return
    if found.file is not None:
        raise UsageError(
            f"{shown(found.file)} would go with snapshots of {table.name}, and {found.table} needs it",
            hint=f"set {GC_ENABLED}=false on both, or rewrite the data files of {found.table} first",
        )
    if found.error is not None and not look.forced:
        raise not_asked(found.error)


def _check_names(table: IcebergTable, doomed: Sequence[str], staying: Sequence[str]) -> None:
    """Refuse where a file that goes is one that stays by another name: Iceberg compares names alone."""
    twice = LikelyFiles(staying).first(doomed)
    if twice is not None:
        raise UsageError(
            f"{shown(twice)} would go, and {table.name} needs it still by another name",
            hint="rewrite the table's data files, so that each has one name; then run it again",
        )


def _why(gone: Retention, keep_last: int) -> str:
    snapshots = f"{counted(len(gone.snapshots), 'snapshot')} past the retention (the last {keep_last:,} stay)"
    refs = f"; refs past their age: {', '.join(gone.refs)}" if gone.refs else ""
    return snapshots + refs


def _files(table: IcebergTable, gone: Retention) -> tuple[dict[str, int], int, list[str]]:
    """Return the files that only these snapshots name: counts by kind, their bytes, and their names."""
    stay = table.snapshots.keys() - set(gone.snapshots)
    lists, manifests = listed(table, gone.snapshots)
    kept_lists, kept = listed(table, stay)
    alone = [manifest for path, manifest in manifests.items() if path not in kept]
    files = content(table, alone)
    if files.num_rows:
        still = content(table, kept.values())["path"].combine_chunks()
        files = files.filter(pc.invert(pc.is_in(files["path"], value_set=still)))
        _check_names(table, files["path"].to_pylist(), still.to_pylist())
    statistics = statistics_paths(table, set(gone.snapshots))
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


def _would_lose_statistics(look: PlanInput, gone: Retention) -> bool:
    """Whether statistics go with the old snapshots while the current one has none of its own."""
    survey = look.survey
    if survey.snapshot is None:
        return False
    files = survey.table.statistics
    registered = {file.snapshot_id for file in files if not names_gone(survey.table, file)}
    if survey.snapshot.id in registered:
        return False
    state = survey.state
    described = {state.header.snapshot_id} if state is not None and state.thetas else set()
    return bool((registered | described).intersection(gone.snapshots))


def run(look: TableView, planned: Plan) -> Ran:
    """Register what would be lost, then expire."""
    subject, notes = look.subject, tuple[str, ...]()
    spark = subject.spark()
    if planned.details["statistics_first"]:
        analyze(subject.spark, look.table, look.survey.store, choice_of(look))
        notes = ("the statistics of the current snapshot were registered first",)
    # Snapshots are named, and none goes by its age: what others commit meanwhile must not push out another,
    # whose files were not checked.
    snapshots, keep_last = planned.details["snapshots"], planned.details["keep_last"]
    _check_still_due(look, planned)
    if subject.neighbours is not None:
        subject.neighbours.refresh(NEIGHBOURS_SECONDS)
    _check_not_shared(look, planned.details["files"])
    if look.not_rewritable:
        answer = expire_by_action(spark, subject.name, snapshots, Moment(0), keep_last)
    else:
        answer = call(
            spark,
            subject.name,
            "expire_snapshots",
            older_than=Moment(0),
            retain_last=keep_last,
            stream_results=True,
            **({"snapshot_ids": snapshots} if snapshots else {}),
        )[0]
    kinds = {kind: int(answer[column] or 0) for kind, column in _KINDS.items()}
    return Ran(sum(kinds.values()), planned.bytes, notes, {"kinds": kinds})


def _check_still_due(look: TableView, planned: Plan) -> None:
    """See that Iceberg would let go what is planned, and nothing else: others may have committed since."""
    now_ms = int(look.subject.now() * 1000)  # Spark may have been started since the plan
    rule = Rule(planned.details["older_than"], planned.details["keep_last"], now_ms)
    table, _ = look.subject.open()
    metadata, planned_ids = table.table.metadata, set(planned.details["snapshots"])
    if (
        planned_ids.difference(retention(metadata, rule).snapshots)
        or _by_branches(metadata, rule) - planned_ids
    ):
        raise ConflictError(f"{table.name} has changed since the snapshots to expire were chosen")


def _by_branches(metadata: TableMetadata, rule: Rule) -> set[int]:
    """The snapshots that go by the ages that branches set for themselves, whatever a call asks for."""
    return set(retention(metadata, replace(rule, older_than_ms=0)).snapshots)


def verify(before: TableView, planned: Plan, ran: Ran, after: TableView) -> tuple[str, ...]:
    """See that the planned snapshots are gone, no others, and that nothing is missing."""
    doomed = set(planned.details["snapshots"])
    then, now = before.table.snapshots.keys(), after.table.snapshots.keys()
    rule = Rule(planned.details["older_than"], planned.details["keep_last"], after.now_ms)
    left = doomed.intersection(retention(after.table.table.metadata, rule).snapshots)
    if left:  # others may have put a branch or a tag upon one, by which it stays; then it is not among these
        raise VerificationError(
            f"{counted(len(left), 'snapshot')} that should have expired stayed", hint="run it again"
        )
    nothing_missing(after)
    if others_came(before, after) or then - doomed - now:
        return ("others have committed at the same time",)
    if ran.details["kinds"] != planned.details["kinds"]:
        return (
            f"Iceberg deleted {_told(ran.details['kinds'])}; planned were {_told(planned.details['kinds'])}",
        )
    return ()


def _told(kinds: dict[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count) or "nothing"


STEP = Step(NAME, (), ("snapshots",), plan, run, verify)
