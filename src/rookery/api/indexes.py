"""Indexes: declared on a table, built by the next `analyze`, and kept current from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rookery.indexes import KINDS
from rookery.indexes.declare import declare, declared_on, indexed_names, newest_state, undeclare
from rookery.model import Report, Sheet, counted
from rookery.sidecar import Index, State, Store
from rookery.sidecar.live import Live, live_files
from rookery.tables import Table

__all__ = ["IndexKindView", "IndexKinds", "IndexReport", "IndexView", "index_kinds"]

UNKNOWN_KIND = "of a kind that this version does not know: kept, but not used"


@dataclass(frozen=True, slots=True)
class IndexView:
    """The status of an index: its column, and how much of the table it covers."""

    kind: str
    column: str
    fpp: float | None
    files: int
    files_covered: int
    known: bool = True  # whether this version knows the kind

    @property
    def built(self) -> str:
        """How far it is built, as text."""
        if not self.known:
            return UNKNOWN_KIND
        if self.files_covered >= self.files:
            return "built" if self.files else "nothing to index yet"
        if not self.files_covered:
            return "declared; the next analyze builds it"
        return f"covers {self.files_covered:,} of {counted(self.files, 'file')}; analyze completes it"


@dataclass(frozen=True, slots=True)
class IndexReport(Report):
    """The indexes of a table."""

    table: str
    indexes: tuple[IndexView, ...]

    def sheets(self) -> Sequence[Sheet]:
        """One line per index."""
        if not self.indexes:
            return [Sheet(f"{self.table} has no indexes", notes=("`rookery index add` declares one",))]
        rows = tuple(
            (each.kind, each.column, "–" if each.fpp is None else f"{each.fpp:g}", each.built)
            for each in self.indexes
        )
        return [Sheet(self.table, ("kind", "column", "fpp", "state"), rows, right=frozenset({2}))]


@dataclass(frozen=True, slots=True)
class IndexKindView:
    """A kind of index: its name, what it does, and its default false-positive rate if it has one."""

    name: str
    summary: str
    fpp: float | None


@dataclass(frozen=True, slots=True)
class IndexKinds(Report):
    """The kinds of index that can be declared."""

    kinds: tuple[IndexKindView, ...]

    def sheets(self) -> Sequence[Sheet]:
        """One line per kind."""
        rows = tuple(
            (kind.name, kind.summary, "–" if kind.fpp is None else f"{kind.fpp:g}") for kind in self.kinds
        )
        return [Sheet("", ("kind", "what it does", "fpp"), rows, right=frozenset({2}))]


def list_indexes(table: Table, store: Store) -> IndexReport:
    """Return the indexes of a table."""
    indexes = declared_on(table, store).typed(table.fields()).indexes
    if not indexes:
        return IndexReport(str(table.name), ())
    state, current = newest_state(table, store), table.snapshot()
    live = live_files(table, current, state, decode_all=False) if current is not None else None
    names = indexed_names(table, indexes)
    return IndexReport(
        str(table.name),
        tuple(
            IndexView(
                kind=index.kind,
                column=names[index.field_id],
                fpp=index.fpp or None,
                files=live.count if live is not None else 0,
                files_covered=_covered(state, live, index),
                known=index.kind in KINDS,
            )
            for index in indexes
        ),
    )


def add_index(table: Table, store: Store, kind: str, column: str, fpp: float | None = None) -> IndexReport:
    """Declare an index; declaring it again with another rate replaces it."""
    declare(table, store, kind, column, fpp)
    return list_indexes(table, store)


def drop_index(table: Table, store: Store, kind: str, column: str) -> IndexReport:
    """Drop an index; its data is deleted with its segments."""
    undeclare(table, store, kind, column)
    return list_indexes(table, store)


def _covered(state: State | None, live: Live | None, index: Index) -> int:
    """How many of the live files an index covers."""
    if state is None or live is None:
        return 0
    having = [number for number, entry in enumerate(state.header.segments) if index in entry.indexes]
    carried = state.files.take(pa.array(live.carried))
    covered = carried.filter(pc.is_in(carried["segment"], pa.array(having, pa.int32())))
    return len(pc.unique(covered["key"]))


def index_kinds() -> IndexKinds:
    """Return the kinds of index that can be declared."""
    return IndexKinds(
        tuple(IndexKindView(kind.name, kind.summary, kind.default_fpp) for kind in KINDS.values())
    )
