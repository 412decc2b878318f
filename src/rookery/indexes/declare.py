"""Declaring and dropping indexes on a table: only the state is read or written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rookery.indexes import KINDS, IndexKind, kind_names
from rookery.model import Field, Snapshot, UsageError, column_named
from rookery.sidecar import FILES_SCHEMA, Declared, Index, State, StateHeader, Store
from rookery.sidecar.usable import from_best_state
from rookery.tables import Table

_INSIDE = " in a list or map"


def declare(table: Table, store: Store, kind: str, column: str, fpp: float | None = None) -> None:
    """Declare an index; declaring it again with another rate replaces it."""
    chosen = KINDS.get(kind)
    if chosen is None:
        raise UsageError(f"there is no index '{kind}'", hint=f"the kinds are {kind_names()}")
    rate = chosen.rate(fpp)
    field = _column(table, column, chosen)
    state = newest_state(table, store)
    sketch = state.thetas.get(field.id) if state is not None else None
    chosen.check(field, sketch.estimate() if sketch is not None else None)
    wanted = Index(kind, field.id, field.type, rate)
    _write(table, store, state, declared_on(table, store).adding(wanted, time.time_ns()))


def undeclare(table: Table, store: Store, kind: str, column: str) -> None:
    """Drop an index; its data is deleted with its segments."""
    declared = declared_on(table, store)
    names = indexed_names(table, declared.indexes)
    same_kind = [index for index in declared.indexes if index.kind == kind]
    matching = [index for index in same_kind if names[index.field_id] == column]
    matching = matching or [index for index in same_kind if names[index.field_id].lower() == column.lower()]
    if len(matching) != 1:
        raise UsageError(
            f"{table.name} has no {kind} index on '{column}'", hint="`rookery index list` shows all"
        )
    _write(table, store, newest_state(table, store), declared.dropping(matching[0], time.time_ns()))


def indexed_names(table: Table, indexes: Sequence[Index]) -> dict[int, str]:
    """Return the names of indexed columns by id; a dropped column may come back by a rollback."""
    dropped = {index.field_id: f"field {index.field_id}, which was dropped" for index in indexes}
    return dropped | {field.id: field.name for field in table.fields()}


def _column(table: Table, name: str, kind: IndexKind[Any]) -> Field:
    field = column_named(table.fields(), name)
    if not kind.serves(field):
        raise UsageError(
            f"'{field.name}', a {field.type}{_INSIDE if field.repeated else ''}, cannot be indexed "
            f"by a {kind.name} index",
            hint=f"index a column with one value per row, of a type that {kind.name} supports",
        )
    return field


def declared_on(table: Table, store: Store) -> Declared:
    """Return the indexes that are declared on a table."""
    return store.declared(table.uuid)


def newest_state(table: Table, store: Store) -> State | None:
    """Return the state that describes a table best."""
    return from_best_state(table, store, table.snapshot(), lambda state: state)


def _write(table: Table, store: Store, state: State | None, declared: Declared) -> None:
    """Write the state again with other indexes declared; if there was none, one without files."""
    if state is None:
        snapshot = table.snapshot() or Snapshot(
            id=0, parent_id=None, sequence_number=0, timestamp_ms=0, schema_id=None, operation=None
        )
        index = StateHeader(
            table_uuid=table.uuid,
            snapshot_id=snapshot.id,
            sequence_number=snapshot.sequence_number,
            timestamp_ms=snapshot.timestamp_ms,
            last_column_id=table.last_column_id,
            segments=(),
            data_manifests=(),
            delete_manifests=(),
            types={},
        )
        state = State(index, FILES_SCHEMA.empty_table())
    store.publish(declared.on(state))
