"""What a query needs of each table: files pruned by its own predicates, and by the keys of its partners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow.compute as pc

from rookery.api.sql_tables import Equality, QueryTables, SelectTables, TableUse, read_conditions
from rookery.model import (
    ALWAYS,
    And,
    Field,
    In,
    Opaque,
    Or,
    Predicate,
    Report,
    RookeryError,
    Sheet,
    Snapshot,
    Value,
    all_of,
    any_of,
    in_bytes,
)
from rookery.model.type_names import SKETCHED, base_type
from rookery.prune.cascade import Pruning, prune
from rookery.prune.fileset import file_set
from rookery.read.rows import read_table
from rookery.sidecar import Store
from rookery.tables import Table
from rookery.tables.iceberg.jvm import PinnedTable
from rookery.values.canonical import from_rows, scale_of, unscaled_of
from rookery.where.sql_text import predicate_of

MOST_KEYS = 100_000
MOST_BYTES = 256 << 20  # of files that are read for their keys
_WORTH = 4  # a table is pruned by keys if it is so many times larger than what is read for them


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table at the one snapshot that a query reads of it, for Python and for Spark."""

    table: Table
    store: Store
    pinned: PinnedTable | None  # not where Spark's catalog has other metadata


Resolve = Callable[[Sequence[str]], OpenTable | None]
"""Returns the table that a session resolves a name to, if it is in the lake; the same for the same name."""


@dataclass(slots=True)
class PlannedTable:
    """A table of a query: what must be true of its rows, and which files may hold such rows."""

    use: TableUse
    table: Table
    store: Store
    pinned: PinnedTable
    snapshot: Snapshot
    predicate: Predicate
    pruning: Pruning
    keys_from: list[str] = field(default_factory=list)

    def measure(self) -> tuple[int, int]:
        """Return files and bytes that are left."""
        files, size, _ = self.pruning.measure()
        return files, size

    def narrow(self, predicate: Predicate) -> None:
        """Add a condition."""
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
class SqlReport(Report):
    """The parts of a query's tables that are read."""

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
        header = ("table", "as", "files", "bytes", "pruned by keys of")
        return [Sheet("tables of the query", header, rows, right=frozenset({2, 3}))]


def plan(query: QueryTables, resolve: Resolve, zone: str) -> list[PlannedTable]:
    """Return the uses of tables in a query, pruned.

    A table that is also used in a way that is not understood is left to Spark everywhere: all uses of a table
    in a query must see the same snapshot.
    """
    left_alone = {id(opened.table) for parts in query.elsewhere if (opened := resolve(parts)) is not None}
    planned = [each for select in query.selects for each in _plan_select(select, resolve, zone)]
    return [each for each in planned if id(each.table) not in left_alone]


def report(planned: Sequence[PlannedTable]) -> SqlReport:
    """Report what is left of each table."""
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


def _plan_select(select: SelectTables, resolve: Resolve, zone: str) -> list[PlannedTable]:
    opened: dict[int, OpenTable] = {}
    for use in select.uses:
        known = resolve(use.parts)
        if known is not None:
            opened[id(use)] = known
            use.columns = frozenset(column.name.lower() for column in known.table.schema().columns)
    equalities = read_conditions(select)
    planned = {
        id(use): made
        for use in select.uses
        if id(use) in opened and (made := _planned(use, opened[id(use)], zone)) is not None
    }
    _cut_by_keys(planned, equalities)
    return list(planned.values())


def _planned(use: TableUse, opened: OpenTable, zone: str) -> PlannedTable | None:
    table, store, pinned = opened.table, opened.store, opened.pinned
    snapshot = table.snapshot()
    if snapshot is None or pinned is None:
        return None
    fields = table.fields(snapshot)

    def bound(part: object) -> Predicate:
        try:
            return predicate_of(part, fields, zone=zone, qualifiers=(use.alias,))  # type: ignore[arg-type]
        except RookeryError as error:  # left to Spark, which may raise its own error
            return Opaque(str(part), str(error))

    predicate = all_of(*map(bound, use.conditions))
    pruning = prune(table, snapshot, file_set(table, store, snapshot), predicate)
    return PlannedTable(use, table, store, pinned, snapshot, predicate, pruning)


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
    source_field, target_field = _column(source, source_column), _column(target, target_column)
    if source_field is None or target_field is None or not _same_values(source_field.type, target_field.type):
        return
    keys = _keys(source, source_field)
    if keys is not None and len(keys) <= MOST_KEYS:
        target.narrow(In(target_field, keys))
        target.keys_from.append(source.use.alias)


def _column(planned: PlannedTable, name: str) -> Field | None:
    fields = planned.table.fields(planned.snapshot)
    matching = [field for field in fields if len(field.parts) == 1 and field.name.lower() == name.lower()]
    return matching[0] if len(matching) == 1 else None


def _same_values(one: str, two: str) -> bool:
    """Whether equal values of two types have the same form."""
    whole = {"int", "long"}
    comparable = base_type(one) in SKETCHED - {"float", "double"}
    return (one == two and comparable) or {one, two} <= whole


def _keys(source: PlannedTable, field: Field) -> tuple[Value, ...] | None:
    """The distinct keys of the rows that a table's predicate may leave; undecided rows are kept."""
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
        try:
            return tuple(value.decode() for value in values.to_pylist())
        except UnicodeDecodeError:  # there is no literal for it
            return None
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
