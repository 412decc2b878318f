"""Whether a folder is a table's alone, and the catalog knows its latest state: else nothing is deleted."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable

from rookery.maintain.steps.step import Look
from rookery.model import UsageError
from rookery.storage import Listed, open_source, shown
from rookery.store import Store

_METADATA = re.compile(r"\.metadata\.json(?:\.gz)?$")
_GZIP = b"\x1f\x8b"
COMMIT_SECONDS = 3600.0  # longer than a commit takes


def check_alone(look: Look, unnamed: Iterable[Listed]) -> None:
    """See that files which a table does not name are not another's, nor its own of a later time.

    Another table may share the folder; and the same table may stand in two catalogs, or in one that was
    restored from a backup, and what is newer than what this one knows would look like an orphan. A state
    that is young may be that of a commit under way; what only it names is as young, and kept for that.
    """
    metadata = look.survey.table.table.metadata
    settled = look.subject.now() - COMMIT_SECONDS
    for file in unnamed:
        if not _METADATA.search(file.name):
            continue
        found = _told(file, look.survey.store)
        if found is None:
            continue
        uuid, updated = found
        if uuid != str(metadata.table_uuid):
            raise UsageError(
                f"another table has kept its metadata here: {shown(file.location)}",
                hint="if that table is gone for good, say --yes; else keep them in folders of their own",
            )
        if updated > metadata.last_updated_ms and file.modified < settled:
            raise UsageError(
                f"there is a later state of the table than its catalog knows: {shown(file.location)}",
                hint="is it registered in another catalog too, or was this one restored? Say --yes if not",
            )


def _told(file: Listed, store: Store) -> tuple[str, int] | None:
    """The table that a metadata file is of, and when it was written; a torso tells nothing."""
    with open_source(file.location, store.io_properties) as source:
        data = source.read(0, source.size)
    try:
        found = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
        return str(found["table-uuid"]), int(found.get("last-updated-ms", 0))
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, gzip.BadGzipFile):
        return None
