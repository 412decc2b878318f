"""Indexes: declared on a table, built by the next `analyze`, and kept current from then on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rookery.model import Field, Sheet, SheetReport, Snapshot, UsageError, column_named, thousands
from rookery.prune.forms import SUPPORTED
from rookery.sketch.typing import base_type
from rookery.store import FILES_SCHEMA, Declared, Index, IndexKind, State, StateIndex, Store
from rookery.store.live import Live, live_files
from rookery.tables.iceberg import IcebergTable

DEFAULT_FPP = 0.001
LOWEST_FPP = 1e-6  # a lower one takes more than twice the space, and files are seldom so many
MOST_BITMAP_VALUES = 1000
_INSIDE = " in a list or map"
_KINDS = ", ".join(kind.value for kind in IndexKind)


@dataclass(frozen=True, slots=True)
class IndexView:
    """An index as it stands: on what, and how much of the table it covers."""

    kind: str
    column: str
    fpp: float | None
    files: int
    files_covered: int

    @property
    def built(self) -> str:
        """How far it is built, in words."""
        if self.files_covered >= self.files:
            return "built" if self.files else "nothing to index yet"
        if not self.files_covered:
            return "declared; the next analyze builds it"
        return f"covers {self.files_covered:,} of {self.files:,} files; analyze completes it"


@dataclass(frozen=True, slots=True)
class IndexReport(SheetReport):
    """The indexes of a table."""

    table: str
    indexes: tuple[IndexView, ...]

    def sheets(self) -> Sequence[Sheet]:
        """One sheet, a line an index."""
        if not self.indexes:
            return [Sheet(f"{self.table} has no indexes", notes=("`rookery index add` declares one",))]
        rows = tuple(
            (each.kind, each.column, "–" if each.fpp is None else f"{each.fpp:g}", each.built)
            for each in self.indexes
        )
        return [Sheet(self.table, ("kind", "column", "fpp", "state"), rows, right=frozenset({2}))]


def list_indexes(table: IcebergTable, store: Store) -> IndexReport:
    """Return the indexes of a table."""
    indexes = _declared(table, store).typed(table.fields()).indexes
    if not indexes:
        return IndexReport(str(table.name), ())
    state, current = _newest(table, store), table.snapshot()
    live = live_files(table, current, state, decode_all=False) if current is not None else None
    names = _names(table, indexes)
    return IndexReport(
        str(table.name),
        tuple(
            IndexView(
                index.kind.value,
                names[index.field_id],
                index.fpp if index.kind is IndexKind.BLOOM else None,
                live.count if live is not None else 0,
                _covered(state, live, index),
            )
            for index in indexes
        ),
    )


def add_index(
    table: IcebergTable, store: Store, kind: str, column: str, fpp: float | None = None
) -> IndexReport:
    """Declare an index; declaring it again with another rate replaces it."""
    if kind not in list(IndexKind):
        raise UsageError(f"there is no index '{kind}'", hint=f"the kinds are {_KINDS}")
    chosen = IndexKind(kind)
    if fpp is not None and (chosen is not IndexKind.BLOOM or not LOWEST_FPP <= fpp < 1):
        raise UsageError(
            f"a false-positive rate of {fpp:g} cannot be had",
            hint=f"a Bloom index has one, between {LOWEST_FPP:f} and 1, such as {DEFAULT_FPP:g}",
        )
    field = _column(table, column)
    state = _newest(table, store)
    if chosen is IndexKind.BITMAP:
        _check_few_values(field, state)
    rate = (fpp or DEFAULT_FPP) if chosen is IndexKind.BLOOM else 0.0
    wanted = Index(chosen, field.id, field.type, rate)
    _write(table, store, state, _declared(table, store).adding(wanted, time.time_ns()))
    return list_indexes(table, store)


def drop_index(table: IcebergTable, store: Store, kind: str, column: str) -> IndexReport:
    """Take an index back; what was built of it goes with its segments."""
    declared = _declared(table, store)
    names = _names(table, declared.indexes)
    mine = [index for index in declared.indexes if index.kind == kind]
    found = [index for index in mine if names[index.field_id] == column]
    found = found or [index for index in mine if names[index.field_id].lower() == column.lower()]
    if len(found) != 1:
        raise UsageError(
            f"{table.name} has no {kind} index on '{column}'", hint="`rookery index list` shows all"
        )
    _write(table, store, _newest(table, store), declared.dropping(found[0], time.time_ns()))
    return list_indexes(table, store)


def _names(table: IcebergTable, indexes: Sequence[Index]) -> dict[int, str]:
    """What the indexed columns are called, by id; a column may be gone, and come back by a rollback."""
    gone = {index.field_id: f"field {index.field_id}, which is gone" for index in indexes}
    return gone | {field.id: field.name for field in table.fields()}


def _column(table: IcebergTable, name: str) -> Field:
    field = column_named(table.fields(), name)
    if field.repeated or base_type(field.type) not in SUPPORTED:
        raise UsageError(
            f"'{field.name}', a {field.type}{_INSIDE if field.repeated else ''}, cannot be indexed",
            hint="index a column with one value a row, of a primitive type",
        )
    return field


def _check_few_values(field: Field, state: State | None) -> None:
    sketch = state.thetas.get(field.id) if state is not None else None
    if sketch is not None and (count := sketch.estimate().value) > MOST_BITMAP_VALUES:
        raise UsageError(
            f"'{field.name}' has about {thousands(count)} distinct values, too many for a bitmap index",
            hint=f"a bitmap serves up to {MOST_BITMAP_VALUES:,}; add a bloom index instead",
        )


def _declared(table: IcebergTable, store: Store) -> Declared:
    return store.declared(str(table.table.metadata.table_uuid))


def _newest(table: IcebergTable, store: Store) -> State | None:
    current = table.snapshot()
    ancestors = [ancestor.id for ancestor in table.ancestors(current)] if current is not None else []
    for _, state in store.newest(ancestors):
        if state.index.table_uuid == str(table.table.metadata.table_uuid):
            return state
    return None


def _covered(state: State | None, live: Live | None, index: Index) -> int:
    """How many of the live files an index covers."""
    if state is None or live is None:
        return 0
    having = [number for number, entry in enumerate(state.index.segments) if index in entry.indexes]
    carried = state.files.take(pa.array(live.carried))
    mine = carried.filter(pc.is_in(carried["segment"], pa.array(having, pa.int32())))
    return len(pc.unique(mine["key"]))


def _write(table: IcebergTable, store: Store, state: State | None, declared: Declared) -> None:
    """Write the state anew with other indexes declared; one that was never there knows no file."""
    if state is None:
        snapshot = table.snapshot() or Snapshot(0, None, 0, 0, None, None)
        index = StateIndex(
            str(table.table.metadata.table_uuid),
            snapshot.id,
            snapshot.sequence_number,
            snapshot.timestamp_ms,
            table.table.metadata.last_column_id,
            (),
            (),
            (),
            {},
        )
        state = State(index, FILES_SCHEMA.empty_table())
    store.publish(declared.on(state))
