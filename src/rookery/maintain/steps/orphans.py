"""Removing orphan files: old files in the folders that a table writes to, needed by nothing."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pyarrow as pa

from rookery.io import Listed, shown
from rookery.maintain.policies.policy import Policy
from rookery.maintain.policies.settings import LEAST_ORPHAN_AGE
from rookery.maintain.steps.deletable import Deletable, deletable, view_again
from rookery.maintain.steps.expire import GC_ENABLED, collects_garbage
from rookery.maintain.steps.expire import NAME as EXPIRE
from rookery.maintain.steps.outside import outside_folders
from rookery.maintain.steps.removal import empty, remove, trash_of
from rookery.maintain.steps.step import Idle, MaintainedTable, Plan, PlanInput, Ran, Step, TableView
from rookery.maintain.steps.verify import nothing_missing
from rookery.model import StorageError, UsageError, counted
from rookery.sidecar.store import FOLDER_SUFFIX
from rookery.spark.procedures import Moment, call
from rookery.tables import Table
from rookery.tables.iceberg import iceberg

NAME = "remove orphan files"
_HIDDEN = re.compile(r"/[._][^/=]*(?:/|$)")  # except folders of partitions, such as /_day=1/
_SIDECAR_FOLDER = re.compile(rf"/[^/]*{re.escape(FOLDER_SUFFIX)}/")  # states and segments of a table below


def folders(of: Table, policy: Policy) -> Sequence[str]:
    """The folders to examine, the table's own first; none if no orphans are removed."""
    table = iceberg(of)
    wanted = policy.orphans.older_than is not None and table.not_loadable is None and collects_garbage(table)
    return [table.location, *outside_folders(table)] if wanted else []


def plan(view: PlanInput) -> Plan | Idle:
    """List the folders, and exclude all files that are needed or too young."""
    age, table = view.policy.orphans.older_than, view.table
    trash = trash_of(view)
    expired = trash.expired(view.survey.store, view.now) if trash is not None else []
    if age is None:
        return _emptying(expired) if expired else Idle("the policy keeps orphan files")
    if view.not_loadable:  # so Iceberg cannot check them
        return _emptying(expired) if expired else Idle(view.not_loadable)
    if not collects_garbage(table):
        return Idle(f"{GC_ENABLED} is false: its files may be shared")
    if age < LEAST_ORPHAN_AGE:
        raise UsageError(
            "orphan files must be at least 24 hours old to be removed",
            hint="raise orphans.older-than: a younger file may belong to a commit in progress",
        )
    older_than = view.now - age.total_seconds()
    parts = candidates(view, age)
    files = tuple(file for part in parts for file in part.files)
    notes = tuple(note for part in parts for note in part.notes)
    if not files and not expired:
        return Idle("; ".join(notes or ("every file that is old enough is referenced",)))
    for part in parts:
        _check_share(view, part)
    why = [f"{counted(len(files), 'file')} unreferenced and older than {_format_age(age)}"] if files else []
    why += [_in_trash(expired)] if expired else []
    return Plan(
        "; ".join((*why, *notes)),
        len(files) + len(expired),
        sum(file.size for file in (*files, *expired)),
        {
            "older_than": int(older_than * 1000),
            "files": files,
            "folders": {part.folder: part.files for part in parts if part.files},
            "expired": tuple(expired),
        },
    )


def _emptying(expired: Sequence[Listed]) -> Plan:
    """Plan to empty the trash alone."""
    return Plan(
        _in_trash(expired),
        len(expired),
        sum(file.size for file in expired),
        {"files": (), "folders": {}, "expired": tuple(expired)},
    )


def _in_trash(expired: Sequence[Listed]) -> str:
    return f"{counted(len(expired), 'file')} in the trash past its retention"


def _format_age(age: timedelta) -> str:
    hours = age.total_seconds() / 3600
    return f"{hours / 24:g} days" if hours % 24 == 0 else f"{hours:g} hours"


def _check_share(view: PlanInput, orphans: Deletable) -> None:
    """Refuse to remove more of a folder at once than expected, unless forced."""
    most = view.policy.orphans.max_share
    of_bytes = sum(file.size for file in orphans.files)
    if view.forced:
        return
    if len(orphans.files) > most * orphans.of_files or of_bytes > most * orphans.of_bytes:
        raise UsageError(
            f"{counted(len(orphans.files), 'file')} of {orphans.of_files:,} in {shown(orphans.folder)} "
            f"would be removed, and {of_bytes:,} of {orphans.of_bytes:,} bytes: "
            f"more than orphans.max-share, {most:g}",
            hint="review some of them first; --yes removes them",
        )


def candidates(view: PlanInput, age: timedelta) -> list[Deletable]:
    """Return the files that nothing needs, and that are older than *age*, for each of a table's folders."""
    parts = [_candidates(view, view.table.location, age, outside=False)]
    for location in outside_folders(view.table):
        try:
            parts.append(_candidates(view, location, age, outside=True))
        except StorageError as error:  # for the table's own folder it is raised
            parts.append(Deletable(notes=(f"{shown(location)} is not examined: {error.message}",)))
    return parts


def _candidates(view: PlanInput, location: str, age: timedelta, *, outside: bool) -> Deletable:
    older_than = view.now - age.total_seconds()
    listing = view.listed(location)
    paths = [file.location[len(listing.location) :] for file in listing.files]
    scope = np.array([not (_HIDDEN.search(path) or _SIDECAR_FOLDER.search(path)) for path in paths], bool)
    scope &= ~listing.inside([view.survey.store.location])
    old = np.array([file.modified < older_than for file in listing.files], bool)
    return deletable(view, listing, scope & old, age, outside=outside)


def run(view: TableView, planned: Plan) -> Ran:
    """Let Iceberg check these files too, and remove what are orphans by both, and still are."""
    agreed = _by_iceberg(view, planned) if planned.details["files"] else ()
    removed = take_away(view.maintained, agreed)
    empty(planned.details["expired"], view.survey.store)
    gone = (*removed, *planned.details["expired"])
    return Ran(len(gone), sum(file.size for file in gone), (), {"removed": tuple(removed)})


def take_away(maintained: MaintainedTable, files: Sequence[Listed]) -> list[Listed]:
    """Remove files that are still orphans: the table and its folders are read again."""
    age = maintained.policy.orphans.older_than
    if not files or age is None:
        return []
    again = view_again(maintained, folders)
    still = {file for part in candidates(again, age) for file in part.files}
    to_delete = [file for file in files if file in still]  # unchanged: the same inode, size and time
    remove(again, to_delete)
    return to_delete


def _by_iceberg(view: TableView, planned: Plan) -> list[Listed]:
    """Return those of the planned files that Iceberg calls orphans, by its own reading of the metadata."""
    by_folder = planned.details["folders"].items()
    return [file for folder, files in by_folder for file in _orphans_by_iceberg(view, planned, folder, files)]


def _orphans_by_iceberg(view: TableView, planned: Plan, folder: str, files: Sequence[Listed]) -> list[Listed]:
    spark = view.maintained.spark()
    temp_view = f"rookery_orphans_{uuid.uuid4().hex}"
    rows = pa.table(
        {
            "file_path": pa.array([file.location for file in files], pa.string()),
            "last_modified": pa.array(
                [int(file.modified * 1e6) for file in files], pa.timestamp("us", tz="UTC")
            ),
        }
    )
    spark.createDataFrame(rows).createOrReplaceTempView(temp_view)
    try:
        answer = call(
            spark,
            view.table,
            "remove_orphan_files",
            older_than=Moment(planned.details["older_than"]),
            file_list_view=temp_view,
            location=folder,  # other paths are not in its result
            prefix_mismatch_mode="IGNORE",
            dry_run=True,
        )
    finally:
        spark.catalog.dropTempView(temp_view)
    orphans = {row["orphan_file_location"] for row in answer}
    return [file for file in files if file.location in orphans]


def verify(before: TableView, planned: Plan, ran: Ran, after: TableView) -> tuple[str, ...]:
    """Check that the removed files are gone, and that no file of the table is missing."""
    folders = {after.survey.table.location, *planned.details["folders"]}
    there = {file.location for folder in folders for file in nothing_missing(after, folder).files}
    left = [file for file in ran.details["removed"] if file.location in there]
    if left:
        raise StorageError(
            f"{counted(len(left), 'orphan file')} could not be deleted, {shown(left[0].location)} among them",
            hint="check the write permissions of the folder",
        )
    kept = planned.files - ran.files
    return (f"{kept:,} of them kept: needed by now, or according to Iceberg",) if kept else ()


STEP = Step(name=NAME, needs=(EXPIRE,), measures=(), plan=plan, run=run, verify=verify, folders=folders)
