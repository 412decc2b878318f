"""Folders outside of a table's own that it writes to, such as `write.data.path`: whether they are its alone.

In a table's own folder its metadata shows whose files these are. Nothing in a folder of data does: another
table, of another catalog even, may write there as well, and its live files look like orphans of this one.
"""

from __future__ import annotations

import re

from rookery.io import shown
from rookery.io.identity import Listing
from rookery.maintain.steps.other_tables import metadata_of
from rookery.maintain.steps.step import PlanInput
from rookery.model import RookeryError
from rookery.sidecar.store import default_location
from rookery.tables.iceberg import IcebergTable
from rookery.tables.iceberg.metadata_file import folders_written

SETTING = "orphans.outside"


def outside_folders(table: IcebergTable) -> list[str]:
    """Return the folders that a table writes to and that are not inside its own; none is inside another."""
    _, *written = folders_written(table.location, table.properties)
    outside: list[str] = []
    for folder in sorted((each.rstrip("/") for each in written), key=len):
        if not any(Listing(known, ()).contains(folder) for known in (table.location, *outside)):
            outside = [known for known in outside if not Listing(folder, ()).contains(known)] + [folder]
    return outside


def not_its_own(view: PlanInput, folder: str) -> str | None:
    """Return why a folder outside of a table's own may hold other tables' files; None if it holds none."""
    table = view.table
    if Listing(folder, ()).contains(table.location):
        return f"the folder of {table.name} itself is there"
    why = _other_writer(view, folder)
    if why is not None or _bears_uuid(folder, table.uuid):
        return why
    if view.policy.orphans.outside:
        return None
    return f"a table of another catalog may write there too; if none does, set {SETTING}"


def _other_writer(view: PlanInput, folder: str) -> str | None:
    """Return which other table of the catalog writes to a folder, or to one above it."""
    if view.other_tables is None:
        return "the catalog's other tables are not known"
    try:
        tables, failure = view.other_tables.tables(), view.other_tables.failure
    except RookeryError as error:
        tables, failure = (), error
    for other in tables:
        if other.name == view.table.name:
            continue
        beside = default_location(other.location, other.properties)
        for written in (*metadata_of(other).folders, beside):
            if Listing(written, ()).contains(folder):
                return f"{other.name} writes to {shown(written)}"
    return None if failure is None else f"another table of the catalog cannot be read: {failure.message}"


def _bears_uuid(folder: str, table_uuid: str) -> bool:
    """Whether a folder is named by the uuid of a table, as a part of its path.

    >>> _bears_uuid("s3://b/data/0190-AB/x", "0190-ab"), _bears_uuid("s3://b/0190-ab-old/x", "0190-ab")
    (True, False)
    """
    parts = re.split(r"/+", folder.lower())
    return bool(table_uuid) and not {table_uuid.lower(), table_uuid.lower().replace("-", "")}.isdisjoint(
        parts
    )
