"""The summary that a writer states with a snapshot, as Iceberg names its counts."""

from __future__ import annotations

from collections.abc import Mapping

from rookery.tables.table import RowChanges, SnapshotChanges, SnapshotTotals

_FILES = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")
_ROWS = ("added-records", "deleted-records", "added-position-deletes", "added-equality-deletes")


def changes_of(summary: Mapping[str, str]) -> SnapshotChanges:
    """Return what a summary states; what is not a whole number is ignored.

    >>> changes_of({"added-data-files": "2", "added-records": "10"}).rows.added
    10
    >>> changes_of({}), changes_of({"added-data-files": "2", "total-records": "10"})
    (SnapshotChanges(files=None, rows=None), SnapshotChanges(files=2, rows=None))
    """
    if not summary:
        return SnapshotChanges(None, None)
    counts = _counts(summary)
    files = sum(counts.get(kind, 0) for kind in _FILES)
    # A writer states its rows, or that it changed no file.
    is_stated = any(key in counts for key in _ROWS) or ("total-records" in counts and not files)
    rows = RowChanges(
        added=counts.get("added-records", 0),
        removed=counts.get("deleted-records", 0),
        deletes_added=counts.get("added-position-deletes", 0),
        deletes_removed=counts.get("removed-position-deletes", 0),
        value_deletes_added=counts.get("added-equality-deletes", 0),
    )
    return SnapshotChanges(files, rows if is_stated else None)


def totals_of(summary: Mapping[str, str]) -> SnapshotTotals:
    """Return the totals that a summary states.

    >>> totals_of({"total-records": "10", "total-data-files": "2"})
    SnapshotTotals(rows=10, files=2, bytes=None, delete_files=None)
    """
    counts = _counts(summary)
    keys = ("total-records", "total-data-files", "total-files-size", "total-delete-files")
    return SnapshotTotals(*map(counts.get, keys))


def _counts(summary: Mapping[str, str]) -> dict[str, int]:
    return {
        key: int(value)
        for key, value in summary.items()
        if isinstance(value, str) and value.isascii() and value.isdigit()
    }
