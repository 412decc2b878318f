"""Steps that change columns and partitions."""

from __future__ import annotations

import math
import urllib.parse
from collections.abc import Iterator
from typing import Any

from rookery.model import Value
from rookery.model.type_names import base_type
from tests.differential.columns import Column, Path, is_utf8, leaf, make, paths, quoted, schema_of
from tests.differential.history import History

_BUCKETED = (
    "int",
    "long",
    "decimal",
    "date",
    "timestamp",
    "timestamptz",
    "string",
    "binary",
    "uuid",
    "fixed",
)
_TRUNCATED = ("int", "long", "decimal", "string", "binary")
_TIMES = ("date", "timestamp", "timestamptz")
_WIDER = {"int": ("long",), "float": ("double",), "decimal(4, 2)": ("decimal(9, 2)", "decimal(20, 2)")}
_WIDER["decimal(9, 3)"] = ("decimal(18, 3)", "decimal(38, 3)")
_LONGEST_FOLDER = 150
_DEFAULTED = ("int", "long", "string", "double", "boolean")


def change_columns(history: History) -> None:
    history.rng.choice((_add, _add, _add, _drop, _rename, _move, _widen, _widen))(history)


def _add(history: History) -> None:
    rng = history.rng
    structs = [column for column in history.columns if column.kind == "struct"]
    home = rng.choice(structs) if structs and rng.random() < 0.5 else None
    column = make(rng, history.fresh_name())
    if history.format_version == 3 and not history.orc and rng.random() < 0.6:
        _add_with_default(history, leaf(rng, column.name, rng.choice(_DEFAULTED)), home)
        return
    if not column.in_sql:
        history.note(f"add column {column.name} {column.kind} by Java{f' to {home.name}' if home else ''}")
        history.world.java.add_column(history.name, schema_of([column]), home.name if home else None)
        (home.children if home else history.columns).append(column)
        return
    if home is not None:
        full = f"{quoted(home.name)}.{quoted(column.name)}"
        if history.sql(f"ALTER TABLE {history.name} ADD COLUMN {full} {column.spark}"):
            home.children.append(column)
        return
    where = rng.choice(("", " FIRST", f" AFTER {quoted(history.columns[0].name)}"))
    history.sql(f"ALTER TABLE {history.name} ADD COLUMN {quoted(column.name)} {column.spark}{where}")
    place = {"": len(history.columns), " FIRST": 0}.get(where, 1)
    history.columns.insert(place, column)


def _add_with_default(history: History, column: Column, home: Column | None) -> None:
    """A column that rows written before it have a value in, at the top or within a struct."""
    jvm: Any = history.world.spark._jvm
    types, literals = jvm.org.apache.iceberg.types.Types, jvm.org.apache.iceberg.expressions.Literal
    kinds = {
        "int": types.IntegerType,
        "long": types.LongType,
        "string": types.StringType,
        "double": types.DoubleType,
        "boolean": types.BooleanType,
    }
    kind = kinds[column.kind].get()
    value = next((value for value in column.values if _is_a_default(value)), None)
    if value is None:
        return
    parent = "" if home is None else f"{home.name}."
    history.note(f"add column {parent}{column.name} {column.kind} with default {value!r}")
    literal = literals.of(value)
    literal = literal.to(kind) if column.kind in ("long", "int") else literal
    update = history.world.java.table(history.name).updateSchema()
    if home is None:
        update.addColumn(column.name, kind, None, literal).commit()
    else:
        update.addColumn(home.name, column.name, kind, None, literal).commit()
    history.changed()
    history.beyond_orc = True
    (history.columns if home is None else home.children).append(column)


def _is_a_default(value: Value) -> bool:
    """Whether Java reads what it writes: of NaN and infinities it does not, nor of text that is not UTF-8."""
    return is_utf8(value) and (not isinstance(value, float) or math.isfinite(value))


def _is_source(history: History, column: Column) -> bool:
    """Whether the table is partitioned by the column, or by one within it."""
    name = quoted(column.name)
    return any(source == name or source.startswith(name + ".") for _, source in history.parts)


def _drop(history: History) -> None:
    able = [c for c in history.columns if c.name not in ("id", "k") and not _is_source(history, c)]
    if len(able) < 2:
        return
    gone = history.rng.choice(able)
    if history.sql(f"ALTER TABLE {history.name} DROP COLUMN {quoted(gone.name)}", may_fail=True):
        history.columns.remove(gone)
        if history.rng.random() < 0.3:  # another of the same name is another column
            again = leaf(history.rng, gone.name, history.rng.choice(("int", "string", "double")))
            history.sql(f"ALTER TABLE {history.name} ADD COLUMN {quoted(again.name)} {again.spark}")
            history.columns.append(again)


def _rename(history: History) -> None:
    able = [c for c in history.columns if c.name != "k" and not _is_source(history, c)]
    if able:
        column, name = history.rng.choice(able), history.fresh_name()
        history.sql(f"ALTER TABLE {history.name} RENAME COLUMN {quoted(column.name)} TO {quoted(name)}")
        column.name = name


def _move(history: History) -> None:
    column = history.rng.choice(history.columns)
    if history.sql(f"ALTER TABLE {history.name} ALTER COLUMN {quoted(column.name)} FIRST"):
        history.columns.remove(column)
        history.columns.insert(0, column)


def _widen(history: History) -> None:
    able = [path for path in paths(history.columns) if path.column.kind in _WIDER]
    if able:
        path = history.rng.choice(able)
        wider = Column("", history.rng.choice(_WIDER[path.column.kind]))
        text = f"ALTER TABLE {history.name} ALTER COLUMN {path.sql} TYPE {wider.spark}"
        if history.sql(text, may_fail=True):
            path.column.kind = wider.kind


def change_partitions(history: History) -> None:
    rng = history.rng
    if not history.parts or rng.random() < 0.5:
        add_part(history)
        return
    old = rng.choice(history.parts)
    if rng.random() < 0.5:
        if history.sql(f"ALTER TABLE {history.name} DROP PARTITION FIELD {old[0]}", may_fail=True):
            history.parts.remove(old)
        return
    new = _transform(history)
    if new is not None and new not in history.parts:
        text = f"ALTER TABLE {history.name} REPLACE PARTITION FIELD {old[0]} WITH {new[0]}"
        if history.sql(text, may_fail=True):
            history.parts[history.parts.index(old)] = new


def add_part(history: History) -> None:
    new = _transform(history)
    if new is None or new in history.parts:
        return
    if history.sql(f"ALTER TABLE {history.name} ADD PARTITION FIELD {new[0]}", may_fail=True):
        history.parts.append(new)


def _transform(history: History) -> tuple[str, str] | None:
    path = history.rng.choice(list(paths(history.columns)))
    options = list(_options(history, path))
    if not options:
        return None
    chosen = history.rng.choice(options)
    history.beyond_orc |= chosen == path.sql and len(path.names) > 1
    return chosen, path.sql


def _folder(value: Value) -> str:
    return urllib.parse.quote(str(value), errors="surrogateescape")


def _options(history: History, path: Path) -> Iterator[str]:
    base, name = base_type(path.column.kind), path.sql
    if base in _BUCKETED:
        yield f"bucket({history.rng.choice((2, 5))}, {name})"
    if base in _TRUNCATED:
        yield f"truncate({history.rng.choice((1, 3, 10))}, {name})"
    if base in _TIMES:
        yield from (f"years({name})", f"months({name})", f"days({name})")
        if base != "date":
            yield f"hours({name})"
    longest = max((len(_folder(value)) for value in path.column.values), default=0)
    if base == "fixed":
        return  # of which Java writes no Avro: a length before the bytes, where the schema has a fixed one
    if longest < _LONGEST_FOLDER and (len(path.names) == 1 or not history.orc):
        yield name
