"""What a query needs of each table: files pruned by its own predicates, and by the keys of its partners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc

from rookery.api.sql_tables import Equality, SelectTables, TableUse, read_conditions, selects
from rookery.model import (
    ALWAYS,
    And,
    Field,
    In,
    IsNaN,
    IsNull,
    Opaque,
    Or,
    Predicate,
    RookeryError,
    Sheet,
    SheetReport,
    Snapshot,
    Value,
    all_of,
    any_of,
    in_bytes,
)
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import file_set
from rookery.prune.forms import from_rows, scale_of, unscaled_of
from rookery.read.rows import read_table
from rookery.sketch.typing import base_type
from rookery.store import Store
from rookery.tables.iceberg import IcebergTable
from rookery.where.sql_text import predicate_of

MOST_KEYS = 100_000
MOST_BYTES = 256 << 20  # of files that are read for their keys
_WORTH = 4  # times as large as what is read for its keys must be what those may cut

Resolve = Callable[[Sequence[str]], tuple[IcebergTable, Store] | None]
"""Returns the table that a session takes a name for, if it is one of ours."""


@dataclass(slots=True)
class PlannedTable:
    """A table of a query: what must be true of its rows, and which files may hold such rows."""

    use: TableUse
    table: IcebergTable
    store: Store
    snapshot: Snapshot
    predicate: Predicate
    pruning: Pruning
    keys_from: list[str] = field(default_factory=list)

    def measure(self) -> tuple[int, int]:
        """Return files and bytes that are left."""
        files, size, _ = self.pruning.measure()
        return files, size

    def narrow(self, predicate: Predicate) -> None:
        """Demand something more."""
        self.predicate = all_of(self.predicate, predicate)
        self.pruning = prune(self.table, self.snapshot, self.pruning.files, self.predicate)


@dataclass(frozen=True, slots=True)
class SqlTable:
    """A table's line in the report."""

    table: str
    alias: str
    files: int
    files_left: int
    bytes: int
    bytes_left: int
    keys_from: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SqlReport(SheetReport):
    """What of a query's tables is read."""

    tables: tuple[SqlTable, ...]

    def sheets(self) -> Sequence[Sheet]:
        """A line a table."""
        rows = tuple(
            (
                each.table,
                each.alias,
                f"{each.files:,} → {each.files_left:,}",
                f"{in_bytes(each.bytes)} → {in_bytes(each.bytes_left)}",
                ", ".join(each.keys_from) or "–",
            )
            for each in self.tables
        )
        header = ("table", "as", "files", "bytes", "cut by keys of")
        return [Sheet("tables of the query", header, rows, right=frozenset({2, 3}))]


def plan(text: str, resolve: Resolve, zone: str) -> list[PlannedTable]:
    """Return the tables of a query that could be pruned, pruned."""
    planned: list[PlannedTable] = []
    for found in selects(text):
        planned += _plan_select(found, resolve, zone)
    return planned


def report(planned: Sequence[PlannedTable]) -> SqlReport:
    """Say what is left of each table."""
    lines = []
    for each in planned:
        sizes = each.pruning.files.files["size"].to_numpy()
        left, size = each.measure()
        line = SqlTable(
            str(each.table.name),
            each.use.alias,
            len(sizes),
            left,
            int(sizes.sum()),
            size,
            tuple(each.keys_from),
        )
        lines.append(line)
    return SqlReport(tuple(lines))


def _plan_select(found: SelectTables, resolve: Resolve, zone: str) -> list[PlannedTable]:
    loaded: dict[int, tuple[IcebergTable, Store]] = {}
    for use in found.uses:
        known = resolve(use.parts)
        if known is not None:
            loaded[id(use)] = known
            use.columns = frozenset(column.name.lower() for column in known[0].schema().fields)
    equalities = read_conditions(found)
    planned = {}
    for use in found.uses:
        if id(use) in loaded and (made := _planned(use, *loaded[id(use)], zone)) is not None:
            planned[id(use)] = made
    _cut_by_keys(planned, equalities)
    return list(planned.values())


def _planned(use: TableUse, table: IcebergTable, store: Store, zone: str) -> PlannedTable | None:
    snapshot = table.snapshot()
    if snapshot is None:
        return None
    fields = table.fields(snapshot)

    def bound(part: object) -> Predicate:
        try:
            return predicate_of(part, fields, zone=zone, qualifiers=(use.alias,))  # type: ignore[arg-type]
        except RookeryError as error:  # Spark will say so in its own words, or knows better
            return Opaque(str(part), str(error))

    conditions = [bound(part) for part in use.conditions]
    # Of a table whose columns may be null for want of a partner, only what null would fail counts.
    wheres = [found for found in map(bound, use.wheres) if not _true_of_nulls(found)]
    predicate = all_of(*conditions, *wheres)
    return PlannedTable(
        use,
        table,
        store,
        snapshot,
        predicate,
        prune(table, snapshot, file_set(table, store, snapshot), predicate),
    )


def _true_of_nulls(predicate: Predicate) -> bool:
    if isinstance(predicate, And):
        return all(map(_true_of_nulls, predicate.parts))
    if isinstance(predicate, Or):
        return any(map(_true_of_nulls, predicate.parts))
    if isinstance(predicate, IsNull):
        return not predicate.negated
    if isinstance(predicate, IsNaN):
        return predicate.negated
    return predicate == ALWAYS or isinstance(predicate, Opaque)


def _cut_by_keys(planned: dict[int, PlannedTable], equalities: Sequence[Equality]) -> None:
    """Read the keys of small filtered tables, the smallest first, and cut their partners by them."""
    done: set[int] = set()
    while True:
        ready = [
            each
            for number, each in planned.items()
            if number not in done and each.predicate != ALWAYS and _edges(each, planned, equalities)
        ]
        if not ready:
            return
        source = min(ready, key=lambda each: each.measure()[1])
        done.add(id(source.use))
        for edge in _edges(source, planned, equalities):
            target = planned[id(edge.target)]
            if id(edge.target) not in done:
                _cut(source, edge.source_column, target, edge.target_column)


def _edges(
    source: PlannedTable, planned: dict[int, PlannedTable], equalities: Sequence[Equality]
) -> list[Equality]:
    """The partners that are worth cutting by a table's keys."""
    size = source.measure()[1]
    return [
        edge
        for edge in equalities
        if edge.source is source.use
        and id(edge.target) in planned
        and size <= MOST_BYTES
        and planned[id(edge.target)].measure()[1] >= _WORTH * size
        and planned[id(edge.target)].measure()[0] > 1
    ]


def _cut(source: PlannedTable, source_column: str, target: PlannedTable, target_column: str) -> None:
    ours, theirs = _column(source, source_column), _column(target, target_column)
    if ours is None or theirs is None or not _same_values(ours.type, theirs.type):
        return
    keys = _keys(source, ours)
    if keys is not None and len(keys) <= MOST_KEYS:
        target.narrow(In(theirs, keys))
        target.keys_from.append(source.use.alias)


def _column(planned: PlannedTable, name: str) -> Field | None:
    fields = planned.table.fields(planned.snapshot)
    found = [field for field in fields if len(field.parts) == 1 and field.name.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def _same_values(one: str, two: str) -> bool:
    """Whether equal values of two types stand in the same form."""
    whole = {"int", "long"}
    return (one == two and base_type(one) not in ("float", "double")) or {one, two} <= whole


def _keys(source: PlannedTable, field: Field) -> tuple[Value, ...] | None:
    """The distinct keys of the rows that a table's predicate may leave; what it cannot decide, it leaves."""
    decided = _without_opaque(source.predicate)
    try:
        rows = read_table(source.table, source.store, source.snapshot, decided, [field.name]).rows
    except RookeryError:
        return None
    values = pc.unique(from_rows(field.type, rows.column(0))).drop_null()
    if base_type(field.type) == "decimal":
        scale = scale_of(field.type)
        return tuple(unscaled_of(value, scale) for value in values.to_pylist())
    if base_type(field.type) == "string":
        return tuple(value.decode() for value in values.to_pylist())
    if base_type(field.type) == "boolean":
        return tuple(bool(value) for value in values.to_pylist())
    return tuple(values.to_pylist())


def _without_opaque(predicate: Predicate) -> Predicate:
    if isinstance(predicate, Opaque):
        return ALWAYS
    if isinstance(predicate, And):
        return all_of(*map(_without_opaque, predicate.parts))
    if isinstance(predicate, Or):
        return any_of(*map(_without_opaque, predicate.parts))
    return predicate
