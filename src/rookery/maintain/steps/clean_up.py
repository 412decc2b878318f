"""Clearing away what statistics leave behind: files that nothing names, states and segments of the past."""

from __future__ import annotations

from contextlib import suppress

from pyiceberg.io import load_file_io

from rookery.maintain.facts.beside import left_over
from rookery.maintain.steps.alone import check_alone
from rookery.maintain.steps.expire import collects_garbage
from rookery.maintain.steps.referenced import bare, named
from rookery.maintain.steps.refresh import NAME as REFRESH
from rookery.maintain.steps.step import Idle, Look, Plan, Ran, Step
from rookery.maintain.words import counted
from rookery.model import StorageError
from rookery.storage import Listed, list_folder, shown

NAME = "clean up"


def plan(look: Look) -> Plan | Idle:
    """Say which files go."""
    age = look.policy.statistics_files.older_than
    if age is None:
        return Idle("statistics files are kept")
    older_than = look.subject.now() - age.total_seconds()
    files = statistics_files(look, older_than) if collects_garbage(look.survey.table) else []
    garbage = look.survey.store.garbage(look.survey.table.snapshots.keys())
    if not files and not garbage:
        return Idle("nothing is left over")
    sizes = {file.name: file.size for file in _ours(look)} if garbage else {}
    why = [f"{counted(len(files), 'statistics file')} named by nothing"] if files else []
    why += (
        [f"{counted(len(garbage), 'state or segment', 'states and segments')} of the past"] if garbage else []
    )
    return Plan(
        "; ".join(why),
        len(files) + len(garbage),
        sum(file.size for file in files) + sum(sizes.get(name, 0) for name in garbage),
        {"files": tuple(files), "garbage": tuple(garbage)},
    )


def _ours(look: Look) -> list[Listed]:
    store = look.survey.store
    return list_folder(store.location, store.io_properties, recursive=False)


def statistics_files(look: Look, older_than: float) -> list[Listed]:
    """Return the old statistics files, and torsos of such, that lie with the metadata and nothing names."""
    found = look.survey
    left = [each.file for each in left_over(found)]
    folder = list_folder(found.table.metadata_folder, found.store.io_properties, recursive=False, links=False)
    torsos = [file for file in folder if file.name.startswith(".") and file.name.endswith(".tmp")]
    old = [file for file in (*left, *torsos) if file.modified < older_than]
    if not old:
        return []
    names = named(found.table)  # a deletion vector may lie there too
    if not look.subject.forced:
        check_alone(look, (file for file in folder if bare(file.location) not in names))
    return [file for file in old if bare(file.location) not in names]


def run(look: Look, planned: Plan) -> Ran:
    """Delete them."""
    store = look.survey.store
    io = load_file_io(dict(store.io_properties), look.survey.table.location)
    for file in planned.details["files"]:
        with suppress(FileNotFoundError):  # another run has been here
            try:
                io.delete(file.location)
            except OSError as error:
                if isinstance(error, FileNotFoundError):
                    raise
                raise StorageError(
                    f"{shown(file.location)}: cannot be deleted: {error.strerror or error}",
                    hint="check who may write to the folder",
                ) from error
    gone = store.collect_garbage(look.survey.table.snapshots.keys()) if planned.details["garbage"] else []
    return Ran(len(planned.details["files"]) + len(gone), planned.bytes)


def verify(before: Look, planned: Plan, ran: Ran, after: Look) -> tuple[str, ...]:
    """See that what describes the table is still there."""
    state = after.survey.state
    if before.survey.state is not None:
        if state is None:
            raise StorageError("no state can be read any more", hint="`rookery analyze` collects it anew")
        after.survey.store.check(state)
    return ()


STEP = Step(NAME, (REFRESH,), (), plan, run, verify)
