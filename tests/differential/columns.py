"""Random columns, of every type that Spark writes to Iceberg, and random values in them.

UUIDs are text to Spark, and fixed ones are binaries; its SQL has no names for these types, so Java makes such
columns. Texts that are not UTF-8 hold their odd bytes as `surrogateescape` does.
"""

from __future__ import annotations

import itertools
import random
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pyarrow as pa

from rookery.model import Value
from tests.prune import typed

LEAVES = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(4, 2)",
    "decimal(9, 3)",
    "decimal(18, 0)",
    "decimal(38, 10)",
    "date",
    "timestamp",
    "timestamptz",
    "string",
    "string",
    "binary",
    "uuid",
    "fixed[4]",
)
_SPARK = {"long": "BIGINT", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}
_SPARK |= {"uuid": "STRING", "fixed[4]": "BINARY"}
_UNNAMED = ("uuid", "fixed[4]")  # in Spark's SQL
_PLAIN = re.compile(r"[A-Za-z]\w*")
_NESTED = ("struct", "list", "map")
# Numbers that others round to, if they are brought to this type.
_ROUNDED: dict[str, list[Value]] = {
    "float": [16777216.0, struct.unpack("<f", struct.pack("<f", 0.1))[0]],
    "double": [9007199254740992.0, 0.1],
}
_NOT_UTF8 = [
    data.decode(errors="surrogateescape")
    for data in (
        b"\xff",
        b"a\xff",
        b"caf\xe9",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x98",
        b"a" * 15 + b"\xfftail",
        b"\x80",
    )
]
Form = Callable[[str, Sequence[Value | None]], pa.Array]  # of a leaf's values


@dataclass
class Column:
    """A column, with the values that are drawn for it; a struct has columns, a list or map has one or two."""

    name: str
    kind: str
    values: list[Value] = field(default_factory=list)
    children: list[Column] = field(default_factory=list)

    @property
    def spark(self) -> str:
        """Its type in Spark's SQL."""
        inside = [child.spark for child in self.children]
        match self.kind:
            case "struct":
                named = (f"{quoted(child.name)}: {child.spark}" for child in self.children)
                return f"STRUCT<{', '.join(named)}>"
            case "list":
                return f"ARRAY<{inside[0]}>"
            case "map":
                return f"MAP<{inside[0]}, {inside[1]}>"
        return _SPARK.get(self.kind, self.kind.upper())

    @property
    def is_leaf(self) -> bool:
        return self.kind not in _NESTED

    @property
    def in_sql(self) -> bool:
        """Whether Spark's SQL can name its type."""
        return self.kind not in _UNNAMED and all(child.in_sql for child in self.children)


@dataclass(frozen=True)
class Path:
    """A leaf column, by the names that lead to it."""

    names: tuple[str, ...]
    column: Column
    qualifier: str = ""  # the table's name or alias, as it stands in the text

    @property
    def sql(self) -> str:
        """The name in full, qualified."""
        return ".".join([*([self.qualifier] if self.qualifier else []), *map(quoted, self.names)])

    @property
    def text(self) -> str:
        """The same, quoted only where it must be."""
        names = (name if _PLAIN.fullmatch(name) else quoted(name) for name in self.names)
        return ".".join([*([self.qualifier] if self.qualifier else []), *names])


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def make(rng: random.Random, name: str, *, depth: int = 2) -> Column:
    """A column of a random type."""
    if depth and rng.random() < 0.2:
        kind = rng.choice(("struct", "struct", "list", "map"))
        count = {"struct": rng.randrange(1, 4), "list": 1, "map": 2}[kind]
        names = {"struct": ("x", "y", "z"), "list": ("element",), "map": ("key", "value")}[kind]
        children = [make(rng, names[place], depth=depth - 1) for place in range(count)]
        if kind == "map":
            children[0] = leaf(rng, "key", rng.choice(("int", "string", "long")))
        return Column(name, kind, children=children)
    return leaf(rng, name, rng.choice(LEAVES))


def leaf(rng: random.Random, name: str, kind: str) -> Column:
    values = typed.pool(rng, kind, rng.choice((1, 3, 8, 30)))
    if kind in _ROUNDED and rng.random() < 0.4:
        values += _ROUNDED[kind]
    if kind == "string" and rng.random() < 0.15:
        values += rng.sample(_NOT_UTF8, 3)
    return Column(name, kind, values)


def paths(columns: Sequence[Column], above: tuple[str, ...] = (), qualifier: str = "") -> Iterator[Path]:
    """The leaves outside of lists and maps."""
    for column in columns:
        names = (*above, column.name)
        if column.is_leaf:
            yield Path(names, column, qualifier)
        elif column.kind == "struct":
            yield from paths(column.children, names, qualifier)


def is_utf8(value: Value) -> bool:
    """Whether a value is anything but text with odd bytes."""
    return not isinstance(value, str) or not any("\udc80" <= letter <= "\udcff" for letter in value)


def schema_of(columns: Sequence[Column]) -> dict[str, Any]:
    """Columns as Iceberg's JSON has a schema."""
    return {"type": "struct", "schema-id": 0, "fields": _fields(columns, itertools.count(1))}


def _fields(columns: Sequence[Column], ids: Iterator[int]) -> list[dict[str, Any]]:
    return [
        {"id": next(ids), "name": column.name, "required": False, "type": _iceberg(column, ids)}
        for column in columns
    ]


def _iceberg(column: Column, ids: Iterator[int]) -> Any:
    inside = [(next(ids), _iceberg(child, ids)) for child in column.children if column.kind != "struct"]
    match column.kind:
        case "struct":
            return {"type": "struct", "fields": _fields(column.children, ids)}
        case "list":
            ((number, element),) = inside
            return {"type": "list", "element-id": number, "element": element, "element-required": False}
        case "map":
            (one, key), (two, value) = inside
            of_key, of_value = {"key-id": one, "key": key}, {"value-id": two, "value": value}
            return {"type": "map", **of_key, **of_value, "value-required": False}
    return column.kind


def for_spark(kind: str, values: Sequence[Value | None]) -> pa.Array:
    """Values in the types that Spark has for a column's type."""
    if kind == "uuid":
        return pa.array([None if value is None else str(UUID(bytes=value)) for value in values], pa.string())  # type: ignore[arg-type]
    stored = typed.stored(kind, values)
    return stored.cast(pa.binary()) if kind.startswith("fixed") else stored


def rows(rng: random.Random, columns: Sequence[Column], count: int, *, form: Form = typed.stored) -> pa.Table:
    """Random rows, now and then sorted by one of the columns."""
    arrays = [_array(rng, column, count, form) for column in columns]
    table = pa.table(arrays, names=[column.name for column in columns])
    plain = [column for column in columns if column.is_leaf and column.kind not in ("boolean", "uuid")]
    if plain and rng.random() < 0.4:
        table = table.sort_by(rng.choice(plain).name)
    return table


def _array(rng: random.Random, column: Column, count: int, form: Form) -> pa.Array:
    nulls = rng.choice((0.0, 0.0, 0.1, 0.1, 0.6, 1.0 if rng.random() < 0.3 else 0.0))
    gone = [rng.random() < nulls for _ in range(count)]
    if column.is_leaf:
        some = column.values if rng.random() < 0.5 else rng.sample(column.values, min(3, len(column.values)))
        fresh = rng.random() < 0.3
        drawn: list[Value | None] = [
            typed.value(rng, column.kind) if fresh and rng.random() < 0.5 else rng.choice(some)
            for _ in range(count)
        ]
        values = [None if no else value for no, value in zip(gone, drawn, strict=True)]
        if fresh:
            column.values += [value for value in values[:10] if value is not None]
        return form(column.kind, values)
    if column.kind == "struct":
        children = [_array(rng, child, count, form) for child in column.children]
        names = [child.name for child in column.children]
        return pa.StructArray.from_arrays(children, names, mask=pa.array(gone, pa.bool_()))
    sizes = [0 if no else rng.randrange(3) for no in gone]
    inside = [_array(rng, child, sum(sizes), form) for child in column.children]
    offsets: list[int | None] = [0]
    for size in sizes:
        offsets.append((offsets[-1] or 0) + size)
    starts: Any = [None if no else start for no, start in zip(gone, offsets[:-1], strict=True)]
    ends = pa.array([*starts, offsets[-1]], pa.int32())
    if column.kind == "list":
        return pa.ListArray.from_arrays(ends, inside[0])
    # Keys are neither null nor there twice.
    numbers = typed.stored(column.children[0].kind, list(_keys(column.children[0].kind, sizes)))
    return pa.MapArray.from_arrays(ends, numbers, inside[1])


def _keys(kind: str, sizes: Sequence[int]) -> Iterator[Value]:
    for size in sizes:
        for number in range(size):
            yield f"k{number}" if kind == "string" else number
