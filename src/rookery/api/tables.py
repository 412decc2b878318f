"""`tables`: the tables of a catalog, by what the summaries of their snapshots state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rookery.api.lake import ALL, Lake
from rookery.io.redaction import one_line
from rookery.model import EmptyCatalogError, Report, Sheet, TableName, counted, in_bytes, thousands
from rookery.tables.java_errors import as_rookery

__all__ = ["TableEntry", "TableList", "list_tables"]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table; what its writer does not state is None. With an error, it cannot be loaded."""

    table: str
    rows: int | None = None
    has_deletes: bool = False  # then some of the rows are deleted
    files: int | None = None
    bytes: int | None = None
    format_version: int | None = None
    committed_ms: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TableList(Report):
    """Tables by name."""

    catalog: str
    tables: tuple[TableEntry, ...]
    hint: str | None = None  # what to do if there are none

    @property
    def has_findings(self) -> bool:  # type: ignore[override]
        """Whether a table cannot be loaded."""
        return any(table.error for table in self.tables)

    def sheets(self) -> Sequence[Sheet]:
        """One line per table."""
        if not self.tables:
            return [no_tables(self.hint, f"{self.catalog} has no tables yet")]
        header = ("table", "rows", "files", "size", "version", "last commit (UTC)")
        errors = tuple(f"{table.table}: {table.error}" for table in self.tables if table.error)
        title = counted(len(self.tables), "table")
        return [
            Sheet(
                title=title,
                header=header,
                rows=tuple(map(_line, self.tables)),
                notes=errors,
                right=frozenset({1, 2, 3, 4}),
            )
        ]


def no_tables(hint: str | None, title: str = "there are no tables yet") -> Sheet:
    """Return what is shown of a catalog that is empty."""
    return Sheet(title, notes=(hint,) if hint else ())


def _line(table: TableEntry) -> tuple[str, ...]:
    if table.error:
        return (table.table, "cannot be loaded", "–", "–", "–", "–")
    rows = f"≤ {thousands(table.rows)}" if table.has_deletes and table.rows else thousands(table.rows)
    return (
        table.table,
        rows,
        thousands(table.files),
        in_bytes(table.bytes),
        str(table.format_version),
        moment(table.committed_ms),
    )


def moment(committed_ms: int | None) -> str:
    """Return when a commit was made.

    >>> moment(0), moment(None)
    ('1970-01-01 00:00:00', '–')
    """
    if committed_ms is None:
        return "–"
    return datetime.fromtimestamp(committed_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def list_tables(lake: Lake, patterns: Sequence[str] = (ALL,)) -> TableList:
    """Return the tables that the patterns match; reads one metadata file each."""
    try:
        names = lake.find_all(patterns or (ALL,))
    except EmptyCatalogError as error:
        return TableList(lake.name, (), error.hint)
    return TableList(lake.name, tuple(_entry(lake, name, alone=len(names) == 1) for name in names))


def _entry(lake: Lake, name: TableName, *, alone: bool) -> TableEntry:
    try:
        return _loaded(lake, name)
    except Exception as error:  # one that is broken is not to hide the others
        if alone:
            raise
        return TableEntry(str(name), error=one_line(str(as_rookery(error, f"loading {name}"))))


def _loaded(lake: Lake, name: TableName) -> TableEntry:
    table, _ = lake.open(name)
    snapshot = table.snapshot()
    if snapshot is None:
        return TableEntry(
            table=str(name), rows=0, has_deletes=False, files=0, bytes=0, format_version=table.format_version
        )
    totals = table.totals_of(snapshot)
    return TableEntry(
        table=str(name),
        rows=totals.rows,
        has_deletes=bool(totals.delete_files),
        files=totals.files,
        bytes=totals.bytes,
        format_version=table.format_version,
        committed_ms=snapshot.timestamp_ms,
    )
