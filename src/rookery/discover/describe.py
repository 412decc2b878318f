"""The facts of a table's columns, from its state and the zone maps of its files. No data file is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os.path import commonprefix
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.discover.column import ColumnFacts, NotCompared, TableFacts
from rookery.discover.confidence import may_be_unique
from rookery.discover.repeats import repeated_columns
from rookery.model import Field, counted
from rookery.model.type_names import SKETCHED, base_type, member_types
from rookery.prune.bounds import Bounds
from rookery.prune.fileset import FileSet, unchanged_file_set
from rookery.sidecar import Declared, Store
from rookery.tables import Table

_EMPTY_TABLE = "the table has no rows"
_NO_STATE = "never analyzed; `rookery analyze` describes it"
_NOT_SKETCHED = "columns of type {} are not analyzed"
_PARTIAL = "not analyzed in all files; `rookery analyze` completes it"
_WITH_EMPTY = frozenset({"string", "binary"})
_WHOLE_NUMBERS = frozenset({"int", "long", "date"})


def describe_table(table: Table, store: Store) -> TableFacts:
    """Return the columns of a table whose state is current, and why others are not compared."""
    name = ".".join(table.name.identifier)
    snapshot = table.snapshot()
    if snapshot is None:
        return _left_out(name, _EMPTY_TABLE)
    files = unchanged_file_set(table, store, snapshot)
    if files is None or files.state is None or not files.state.thetas:
        return _left_out(name, _NO_STATE)
    if files.fresh or files.live.removed:
        return _left_out(name, _stale(files))
    return _Description(name, files, tuple(table.fields(snapshot))).facts()


def _left_out(name: str, reason: str) -> TableFacts:
    return TableFacts(name, not_compared=(NotCompared(name, None, reason),))


def _stale(files: FileSet) -> str:
    changes = []
    if files.fresh:
        changes.append(f"{counted(files.fresh, 'file')} not described")
    if files.live.removed:
        changes.append(f"{counted(files.live.removed, 'described file')} removed")
    return f"stale: {', '.join(changes)}; `rookery analyze` updates it"


class _Description:
    """A table whose state describes exactly its live files."""

    def __init__(self, name: str, files: FileSet, fields: tuple[Field, ...]) -> None:
        assert files.state is not None
        self._name = name
        self._files = files
        self._state = files.state
        self._fields = fields
        self._complete = files.state.complete(fields)
        self._rows = np.asarray(files.files["rows"].to_numpy(), np.int64)
        deletes = files.files["deletes"].fill_null("")
        self._deletes = bool(pc.any(pc.not_equal(deletes, "")).as_py())
        self._prefix = common_prefix([field.parts[0] for field in fields])
        files.expect_all_columns()

    def facts(self) -> TableFacts:
        if not self._rows.sum():
            return _left_out(self._name, _EMPTY_TABLE)
        columns: dict[int, ColumnFacts] = {}
        left_out = []
        for field in self._fields:
            reason = self._why_not(field)
            if reason is None:
                columns[field.id] = self._column(field)
            else:
                left_out.append(NotCompared(self._name, field.name, reason))
        sets = self._column_sets(columns)
        left_out += self._sets_left_out(sets)
        return TableFacts(self._name, self._with_repeats({**columns, **sets}), tuple(left_out))

    def _why_not(self, field: Field) -> str | None:
        if base_type(field.type) not in SKETCHED:
            return _NOT_SKETCHED.format(field.type)
        # A column too young for any file has no sketch of its own, and no values either.
        if field.id not in self._complete or field.id not in self._state.thetas:
            return _PARTIAL
        return None

    def _column(self, field: Field) -> ColumnFacts:
        bounds = self._files.bounds(field)
        nulls = None if field.repeated or (bounds.nulls < 0).any() else int(bounds.nulls.sum())
        has_bounds = base_type(field.type) in _WHOLE_NUMBERS
        may_be_empty, has_empty = self._empty(field, bounds)
        return ColumnFacts(
            table=self._name,
            columns=(field.name,),
            types=(field.type,),
            sketch=self._state.thetas[field.id],
            rows_high=int(self._rows.sum()) - (nulls or 0),
            rows_exact=nulls is not None and not self._deletes,
            deletes=self._deletes,
            has_nulls=nulls != 0,
            may_be_empty=may_be_empty,
            has_empty=has_empty,
            repeated=field.repeated,
            low=_end(bounds, bounds.lower, pc.min) if has_bounds else None,
            high=_end(bounds, bounds.upper, pc.max) if has_bounds else None,
            tight=not self._deletes,
            column_prefix=self._prefix,
        )

    def _empty(self, field: Field, bounds: Bounds) -> tuple[bool, bool]:
        """Whether a value may be empty, and whether one surely is. The empty value is the least of all."""
        if base_type(field.type) not in _WITH_EMPTY:
            return False, False
        lower = bounds.lower.filter(pa.array(bounds.has_values & (self._rows > 0)))
        known_empty = bool(pc.any(pc.equal(lower, b"")).as_py())
        return known_empty or bool(lower.null_count), known_empty and not self._deletes

    def _column_sets(self, columns: Mapping[int, ColumnFacts]) -> dict[int, ColumnFacts]:
        """The declared column sets, of members that are compared themselves and have the same types."""
        sets = {}
        for number, kind in self._state.header.types.items():
            members = [columns.get(member) for member in member_types(kind)]
            known = [member for member in members if member is not None]
            types = tuple(member.types[0] for member in known)
            if number >= 0 or number not in self._state.thetas or len(known) < len(members) or not known:
                continue
            if types == tuple(member_types(kind).values()):
                sets[number] = self._column_set(known, number)
        return sets

    def _sets_left_out(self, sets: Mapping[int, ColumnFacts]) -> Iterator[NotCompared]:
        names = {field.id: field.name for field in self._fields}
        known = {each.columns for each in sets.values()}
        for ids in Declared.of(self._state.header).column_sets:
            columns = tuple(names[number] for number in ids if number in names)
            if columns not in known:
                yield NotCompared(self._name, f"({', '.join(columns)})", _PARTIAL)

    def _column_set(self, members: Sequence[ColumnFacts], number: int) -> ColumnFacts:
        return ColumnFacts(
            table=self._name,
            columns=tuple(member.columns[0] for member in members),
            types=tuple(member.types[0] for member in members),
            sketch=self._state.thetas[number],
            rows_high=min(member.rows_high for member in members),
            rows_exact=not self._deletes and not any(member.has_nulls for member in members),
            deletes=self._deletes,
            has_nulls=any(member.has_nulls for member in members),
            column_prefix=self._prefix,
        )

    def _with_repeats(self, columns: Mapping[int, ColumnFacts]) -> tuple[ColumnFacts, ...]:
        """Note which columns have a value in two files, where the sketch alone cannot rule that out."""
        asked = frozenset(
            number for number, each in columns.items() if each.is_sampled and may_be_unique(each)
        )
        repeated = repeated_columns(self._files, asked) if asked else frozenset()
        return tuple(replace(each, in_two_files=number in repeated) for number, each in columns.items())


def _end(bounds: Bounds, ends: pa.Array, choose: Any) -> int | None:
    """The least or greatest bound of all files; None if that of one with values is not known."""
    filled = ends.filter(pa.array(bounds.has_values))
    chosen = None if filled.null_count else choose(filled).as_py()
    return None if chosen is None else int(chosen)


def common_prefix(names: Sequence[str]) -> str:
    """Return what all names of two or more begin with, up to an underscore.

    >>> common_prefix(["l_orderkey", "l_partkey"]), common_prefix(["id", "name"]), common_prefix(["a_b"])
    ('l_', '', '')
    """
    if len(names) < 2:
        return ""
    shared = commonprefix(names)  # noqa: RUF071  # not of paths
    return shared[: shared.rfind("_") + 1]
