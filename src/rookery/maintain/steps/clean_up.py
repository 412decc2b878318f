"""Deleting left-over statistics files that nothing names, and states and segments of the past."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np

from rookery.io import Listed
from rookery.maintain.facts.sidecar_files import left_over
from rookery.maintain.policies.policy import Policy
from rookery.maintain.steps.deletable import Deletable, deletable, view_again
from rookery.maintain.steps.expire import collects_garbage
from rookery.maintain.steps.refresh import NAME as REFRESH
from rookery.maintain.steps.removal import remove
from rookery.maintain.steps.step import Idle, Plan, PlanInput, Ran, Step, TableView
from rookery.model import StorageError, counted
from rookery.tables import Table
from rookery.tables.iceberg import iceberg

NAME = "clean up"


def folders(of: Table, policy: Policy) -> Sequence[str]:
    """The folder of statistics files; none if the policy keeps them."""
    table = iceberg(of)
    wanted = policy.statistics_files.older_than is not None and collects_garbage(table)
    return [table.metadata_folder] if wanted else []


def plan(view: PlanInput) -> Plan | Idle:
    """Plan which files to delete."""
    age = view.policy.statistics_files.older_than
    if age is None:
        return Idle("the policy keeps statistics files")
    table = view.table
    left_over_files = statistics_files(view, age) if collects_garbage(table) else Deletable()
    files = left_over_files.files
    garbage = _garbage(view)
    if not files and not garbage:
        return Idle("; ".join(("no file is left over", *left_over_files.notes)))
    why = [f"{counted(len(files), 'statistics file')} unreferenced"] if files else []
    why += [f"{counted(len(garbage), 'old state or segment', 'old states and segments')}"] if garbage else []
    return Plan(
        "; ".join((*why, *left_over_files.notes)),
        len(files) + len(garbage),
        sum(file.size for file in files) + sum(garbage.values()),
        {"files": files, "garbage": garbage},
    )


def _garbage(view: PlanInput) -> dict[str, int]:
    """The states and segments that may be deleted, with their sizes."""
    table, store = view.table, view.survey.store
    names = store.garbage(table.uuid, table.snapshots.keys(), now=view.now)
    sizes = store.listing() if names else {}
    return {name: sizes.get(name, 0) for name in names}


def statistics_files(view: PlanInput, age: timedelta) -> Deletable:
    """Return the old statistics files, and partial ones, stored with the metadata but not named in it."""
    listing = view.listed(view.table.metadata_folder)
    left = {each.file.location for each in left_over(view.survey.table, view.survey.store)}
    older_than = view.now - age.total_seconds()
    wanted = [
        file.modified < older_than
        and (file.location in left or _is_partial(file))
        and file.location == f"{listing.location}/{file.name}"
        for file in listing.files
    ]
    return deletable(view, listing, np.array(wanted, bool), age)


def _is_partial(file: Listed) -> bool:
    return file.name.startswith(".") and file.name.endswith(".tmp")


def run(view: TableView, planned: Plan) -> Ran:
    """Delete those that are still not named by anything."""
    age = view.policy.statistics_files.older_than
    again = view_again(view.maintained, folders)
    table, store = again.table, again.survey.store
    files: list[Listed] = []
    if planned.details["files"] and age is not None:
        still = set(statistics_files(again, age).files)
        files = [file for file in planned.details["files"] if file in still]
        remove(again, files)
    deleted = (
        store.collect_garbage(table.uuid, table.snapshots.keys(), now=again.now)
        if planned.details["garbage"]
        else []
    )
    removed = sum(file.size for file in files) + sum(
        planned.details["garbage"].get(name, 0) for name in deleted
    )
    return Ran(len(files) + len(deleted), removed)


def verify(before: TableView, planned: Plan, ran: Ran, after: TableView) -> tuple[str, ...]:
    """Check that the files that describe the table still exist."""
    state = after.survey.state
    if before.survey.state is not None:
        if state is None:
            raise StorageError("no state can be read any more", hint="`rookery analyze` collects it again")
        after.survey.store.check(state)
    return ()


STEP = Step(name=NAME, needs=(REFRESH,), measures=(), plan=plan, run=run, verify=verify, folders=folders)
