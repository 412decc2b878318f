"""Removing files from a table's folder: deleted, or moved to a trash and kept there for some time."""

from __future__ import annotations

import os
import posixpath
import re
import time
import uuid
from calendar import timegm
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from rookery.io import Listed, list_folder, local_path, scheme_of, shown
from rookery.io.identity import Listing
from rookery.io.moving import delete_file, move_file
from rookery.maintain.steps.step import PlanInput
from rookery.model import UsageError
from rookery.sidecar import Store
from rookery.tables.iceberg import IcebergTable
from rookery.tables.iceberg.metadata_file import folders_written

OUTSIDE = "outside"
_STAMP = "%Y%m%dT%H%M%SZ"
_RUN = re.compile(r"(\d{8}T\d{6}Z)-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Trash:
    """Where a table's removed files go: a folder for the table, in it one for each run."""

    folder: str
    keep: float  # seconds

    def expired(self, store: Store, now: float) -> list[Listed]:
        """Return the files of runs whose time in the trash has passed."""
        found = list_folder(self.folder, store.io_properties, links=False)
        return [file for file in found if self._written(file) < now - self.keep]

    def _written(self, file: Listed) -> float:
        """When a file was moved here; a file that is not of a run was put here by others, and stays."""
        run = file.location.removeprefix(f"{self.folder}/").partition("/")[0]
        match = _RUN.fullmatch(run)
        return timegm(time.strptime(match[1], _STAMP)) if match else float("inf")

    def new_run(self, now: float) -> str:
        """Return the folder of a run that begins now; it is unique."""
        return f"{self.folder}/{time.strftime(_STAMP, time.gmtime(now))}-{uuid.uuid4().hex[:8]}"


def trash_of(view: PlanInput) -> Trash | None:
    """Return a table's trash, if its policy wants one; it must be outside of the folders of all tables."""
    table, wanted = view.table, view.policy.orphans
    if wanted.trash is None:
        return None
    others = view.other_tables.tables() if view.other_tables is not None else ()
    folder = f"{wanted.trash}/{table.uuid}"
    for each in (table, *others):
        written = folders_written(each.location, each.properties)
        if any(Listing(place, ()).contains(name) for place in written for name in (wanted.trash, folder)):
            raise UsageError(
                f"the trash {shown(wanted.trash)} is in the folder of {each.name}",
                hint="choose a folder that no table has",
            )
    return Trash(folder, wanted.trash_keep.total_seconds())


def remove(view: PlanInput, files: Iterable[Listed]) -> None:
    """Delete files, or move them to the trash under their paths in the table's folder, or outside of it."""
    table, store = view.table, view.survey.store
    trash = trash_of(view)
    run = trash.new_run(view.now) if trash is not None else None
    for file in files:
        if run is None:
            delete_file(file.location, store.io_properties)
        else:
            move_file(file.location, f"{run}/{_relative(file, table)}", store.io_properties)


def _relative(file: Listed, table: IcebergTable) -> str:
    if file.location.startswith(f"{table.location}/"):
        return file.location.removeprefix(f"{table.location}/")
    path = file.location.partition("://")[2] if scheme_of(file.location) else local_path(file.location)
    return f"{OUTSIDE}/{posixpath.normpath(path).lstrip('/')}"  # the whole path, which is unique


def empty(files: Iterable[Listed], store: Store) -> None:
    """Delete files whose time in the trash has passed, and folders that are left empty."""
    for file in files:
        delete_file(file.location, store.io_properties)
        if scheme_of(file.location) is None:
            _remove_empty_folders(os.path.dirname(local_path(file.location)))


def _remove_empty_folders(folder: str) -> None:
    """Remove a folder of a run and those above it, up to the run's own, as long as they are empty."""
    with suppress(OSError):  # other files are still there
        os.rmdir(folder)
        while not _RUN.fullmatch(os.path.basename(folder)):
            folder = os.path.dirname(folder)
            os.rmdir(folder)
