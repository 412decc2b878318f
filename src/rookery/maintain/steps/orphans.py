"""Removing orphan files: what lies in a table's folder, is old, and is named by nothing at all."""

from __future__ import annotations

import re
import uuid
from collections.abc import Set
from datetime import timedelta

import pyarrow as pa

from rookery.maintain.policies.settings import LEAST_ORPHAN_AGE
from rookery.maintain.steps.alone import check_alone
from rookery.maintain.steps.expire import GC_ENABLED, collects_garbage
from rookery.maintain.steps.expire import NAME as EXPIRE
from rookery.maintain.steps.referenced import bare, is_ours, named
from rookery.maintain.steps.step import Idle, Look, Plan, Ran, Step
from rookery.maintain.steps.verify import nothing_missing
from rookery.maintain.words import counted
from rookery.model import StorageError, UsageError
from rookery.spark.procedures import Moment, call
from rookery.storage import Listed, list_folder, shown
from rookery.store.store import FOLDER_SUFFIX

NAME = "remove orphan files"
_METADATA = re.compile(r"^(.*)/metadata/[^/]*\.metadata\.json(?:\.gz)?$")
_HIDDEN = re.compile(r"/[._][^/=]*(?:/|$)")  # but folders of partitions, such as /_day=1/


def plan(look: Look) -> Plan | Idle:
    """List the folder, and take away all that is named, and all that is young."""
    age, table = look.policy.orphans.older_than, look.survey.table
    if age is None:
        return Idle("orphan files are kept")
    if not collects_garbage(table):
        return Idle(f"{GC_ENABLED} is false: its files may be shared")
    if age < LEAST_ORPHAN_AGE:
        raise UsageError(
            "orphan files must be at least 24 hours old to be removed",
            hint="raise orphans.older-than: what is younger may belong to a commit under way",
        )
    older_than = look.subject.now() - age.total_seconds()
    found = candidates(look, older_than)
    if not found:
        return Idle("every file that is old enough is named by something")
    return Plan(
        f"{counted(len(found), 'file')} named by nothing and older than {_said(age)}",
        len(found),
        sum(file.size for file in found),
        {"older_than": int(older_than * 1000), "files": tuple(found)},
    )


def _said(age: timedelta) -> str:
    hours = age.total_seconds() / 3600
    return f"{hours / 24:g} days" if hours % 24 == 0 else f"{hours:g} hours"


def candidates(look: Look, older_than: float) -> list[Listed]:
    """Return the files in the table's folder that nothing names, written before *older_than* (in seconds)."""
    table, store = look.survey.table, look.survey.store
    folder = bare(table.location)
    listed = list_folder(table.location, store.io_properties, links=False)
    everything = [(file, bare(file.location)) for file in listed]
    nested = {match.group(1) for _, path in everything if (match := _METADATA.match(path))} - {folder}
    everything = [
        (file, path)
        for file, path in everything
        if not (_HIDDEN.search(path[len(folder) :]) or is_ours(path, store) or _lies_in(path, folder, nested))
    ]
    if not any(file.modified < older_than for file, _ in everything):
        return []
    names = named(table)
    unnamed = [file for file, path in everything if path not in names]
    if not look.subject.forced:
        check_alone(look, unnamed)
    return [file for file in unnamed if file.modified < older_than]


def _lies_in(path: str, folder: str, nested: Set[str]) -> bool:
    """Whether a file below *folder* belongs to a table that lies there too, or to what is kept beside one."""
    parent = path.rpartition("/")[0]
    while len(parent) > len(folder):
        if parent in nested or parent.endswith(FOLDER_SUFFIX):
            return True
        parent = parent.rpartition("/")[0]
    return False


def run(look: Look, planned: Plan) -> Ran:
    """Hand exactly these files to Iceberg, which proves them again and deletes what both call orphans."""
    spark, files = look.subject.spark(), planned.details["files"]
    view = f"rookery_orphans_{uuid.uuid4().hex}"
    rows = pa.table(
        {
            "file_path": pa.array([file.location for file in files], pa.string()),
            "last_modified": pa.array(
                [int(file.modified * 1e6) for file in files], pa.timestamp("us", tz="UTC")
            ),
        }
    )
    spark.createDataFrame(rows).createOrReplaceTempView(view)
    try:
        answer = call(
            spark,
            look.subject.name,
            "remove_orphan_files",
            older_than=Moment(planned.details["older_than"]),
            file_list_view=view,
            prefix_mismatch_mode="IGNORE",
        )
    finally:
        spark.catalog.dropTempView(view)
    gone = {bare(row["orphan_file_location"]) for row in answer}
    removed = [file for file in files if bare(file.location) in gone]
    return Ran(len(removed), sum(file.size for file in removed), (), {"removed": tuple(removed)})


def verify(before: Look, planned: Plan, ran: Ran, after: Look) -> tuple[str, ...]:
    """See that what was removed is gone, and nothing else that the table names."""
    there = nothing_missing(after)
    left = [file for file in ran.details["removed"] if bare(file.location) in there]
    if left:
        raise StorageError(
            f"{counted(len(left), 'orphan file')} could not be deleted, {shown(left[0].location)} among them",
            hint="check who may write to the folder",
        )
    kept = planned.files - ran.files
    return (f"Iceberg kept {kept:,} of them",) if kept else ()


STEP = Step(NAME, (EXPIRE,), (), plan, run, verify)
