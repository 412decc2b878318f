"""Reading one file: the rows that match and are not deleted, in the table's types, whatever the layout."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rookery.model import ALWAYS, Compare, Field, Op, Predicate, StorageError, Value
from rookery.model.schema import Column, ListOf, MapOf, Primitive, Schema, Struct
from rookery.prune.parquet_pruning import StoredFile
from rookery.read.deletes import Deleted, EqualityDelete
from rookery.read.file import FileRead, ReadCosts, Request, count_file, read_file
from tests.prune import typed
from tests.where.naive import matches

LONG, STRING = Primitive("long"), Primitive("string")
N = 200
KINDS = [kind for kind in typed.KINDS if kind not in ("float", "double")]
LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"write_page_index": True, "max_rows_per_page": 7, "write_batch_size": 3},
    {"write_page_index": True, "max_rows_per_page": 20, "use_dictionary": False, "row_group_size": 60},
    {"row_group_size": 33, "data_page_version": "2.0", "compression": "zstd"},
)


def schema_of(fields: list[Field]) -> Schema:
    return Schema(tuple(Column(field.id, field.name, Primitive(field.type)) for field in fields))


def request(predicate: Predicate, fields: list[Field]) -> Request:
    schema = schema_of(fields)
    return Request(predicate, schema.columns, schema, {field.id: field for field in fields}, {})


def data_file(path: Path) -> FileRead:
    size, rows = path.stat().st_size, pq.read_metadata(path).num_rows
    return FileRead(str(path), StoredFile(str(path), size, rows), "parquet", {})


def write(path: Path, fields: list[Field], rows: dict[str, list[Value | None]], **options: Any) -> FileRead:
    arrays = [typed.stored(field.type, rows[field.name]) for field in fields]
    arrays = [array.storage if isinstance(array, pa.ExtensionArray) else array for array in arrays]
    schema = pa.schema(
        [
            pa.field(field.name, array.type, metadata={"PARQUET:field_id": str(field.id)})
            for field, array in zip(fields, arrays, strict=True)
        ]
    )
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, **options)
    return data_file(path)


def read(asked: Request, file: FileRead) -> pa.Table:
    parts = list(read_file(asked, file, ReadCosts()))
    assert sum(part.num_rows for part in parts) == count_file(asked, file, ReadCosts())
    return pa.concat_tables(parts) if parts else None


@pytest.mark.parametrize("layout", LAYOUTS, ids=["plain", "pages", "groups", "v2"])
def test_rows_that_match_and_are_not_deleted(tmp_path: Path, layout: dict[str, Any]) -> None:
    rng = random.Random(str(layout))
    for number in range(12):
        fields = [Field(place + 1, f"c{place}", kind) for place, kind in enumerate(rng.sample(KINDS, 3))]
        pools = {field.name: typed.pool(rng, field.type, 5) for field in fields}
        rows: dict[str, list[Value | None]] = {
            name: [rng.choice((None, *values)) for _ in range(N)] for name, values in pools.items()
        }
        file = write(tmp_path / f"{number}.parquet", fields, rows, **layout)
        listed = [{name: rows[name][place] for name in rows} for place in range(N)]
        for _ in range(6):
            predicate = typed.tree(rng, fields, pools, 2)
            gone = sorted(rng.sample(range(N), rng.choice((0, 5, 150))))
            key = rng.choice(fields)
            values = [rng.choice((None, *pools[key.name]))]
            named = None if rng.random() < 0.6 else sorted(rng.sample(range(N), 120))
            equality = EqualityDelete((key.id,), pa.table([typed.stored(key.type, values)], names=["k"]))
            deleted = Deleted(np.array(gone, np.int64), (equality,) if rng.random() < 0.5 else ())
            found = read(
                request(predicate, fields),
                replace(file, deleted=deleted, rows=None if named is None else np.array(named)),
            )
            wanted = [
                place
                for place, row in enumerate(listed)
                if matches(predicate, row)
                and place not in gone
                and (named is None or place in named)
                and not (deleted.equality and row[key.name] in values)
            ]
            if not wanted:
                assert found is None
                continue
            for field in fields:
                expected = typed.stored(field.type, [rows[field.name][place] for place in wanted])
                assert found.column(field.name).combine_chunks() == expected, (predicate, field)


@pytest.mark.parametrize(
    ("stored", "now"), [("int", "long"), ("float", "double"), ("decimal(4, 2)", "decimal(18, 2)")]
)
def test_columns_that_were_widened_renamed_and_moved(tmp_path: Path, stored: str, now: str) -> None:
    rng = random.Random(stored)
    values: list[Value | None] = [None, *(value for value in typed.pool(rng, stored, 20) if value == value)]
    file = write(tmp_path / "f.parquet", [Field(1, "old", stored)], {"old": values})
    fields = [Field(9, "added", "string"), Field(1, "new", now)]
    wanted = values[1]
    assert wanted is not None
    found = read(request(Compare(fields[1], Op.EQ, wanted), fields), file)
    assert found.column_names == ["added", "new"]
    assert found.column("added").to_pylist() == [None] * found.num_rows
    expected = [value for value in values if value is not None and value == wanted]
    assert found.column("new").combine_chunks() == typed.stored(now, expected)


def test_columns_that_the_file_lacks(tmp_path: Path) -> None:
    file = write(tmp_path / "f.parquet", [Field(1, "id", "int")], {"id": [1, 2]})
    schema = Schema(
        (
            Column(1, "id", LONG),
            Column(2, "default", LONG, initial_default=7),
            Column(3, "part", STRING),
        )
    )
    fields = {
        1: Field(1, "id", "long"),
        2: Field(2, "default", "long", filled=True),
        3: Field(3, "part", "string", filled=True),
    }
    constants = {3: pa.scalar(b"here", pa.large_binary())}
    placed = replace(file, constants=constants)

    def found(predicate: Predicate) -> list[dict[str, Any]]:
        asked = Request(predicate, schema.columns, schema, fields, {})
        table = read(asked, placed)
        return [] if table is None else table.to_pylist()

    rows = [{"id": number, "default": 7, "part": "here"} for number in (1, 2)]
    assert found(ALWAYS) == rows
    assert found(Compare(fields[2], Op.EQ, 7)) == rows
    assert found(Compare(fields[2], Op.NE, 7)) == []
    assert found(Compare(fields[3], Op.EQ, "here")) == rows
    assert found(Compare(fields[3], Op.GT, "here")) == []


def test_nested_columns_by_their_ids(tmp_path: Path) -> None:
    def numbered(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    struct = pa.struct([numbered("x", pa.int32(), 3), numbered("gone", pa.string(), 4)])
    items = pa.list_(numbered("element", pa.int32(), 6))
    schema = pa.schema([numbered("id", pa.int64(), 1), numbered("s", struct, 2), numbered("l", items, 5)])
    rows = [
        {"id": number, "s": {"x": number, "gone": "a"} if number % 3 else None, "l": [number] * (number % 4)}
        for number in range(50)
    ]
    path = tmp_path / "n.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=20)
    now = Schema(
        (
            Column(2, "renamed", Struct((Column(7, "new", STRING), Column(3, "y", LONG)))),
            Column(5, "l", ListOf(Column(6, "element", LONG))),
            Column(1, "id", LONG),
        )
    )
    fields = {
        1: Field(1, "id", "long"),
        3: Field(3, "renamed.y", "long"),
        7: Field(7, "renamed.new", "string"),
    }
    file = data_file(path)
    asked = Request(Compare(fields[3], Op.GE, 40), now.columns, now, fields, {})
    expected = [
        {"renamed": {"new": None, "y": number}, "l": [number] * (number % 4), "id": number}
        for number in range(40, 50)
        if number % 3
    ]
    assert read(asked, file).to_pylist() == expected


def test_nulls_in_nested_columns_stay_null(tmp_path: Path) -> None:
    def numbered(name: str, kind: pa.DataType, number: int, nullable: bool = True) -> pa.Field:
        return pa.field(name, kind, nullable, metadata={"PARQUET:field_id": str(number)})

    struct = pa.struct(
        [numbered("x", pa.int32(), 5), numbered("l", pa.list_(numbered("element", pa.int32(), 7)), 6)]
    )
    kind = pa.map_(numbered("key", pa.string(), 3, False), numbered("value", struct, 4))
    schema = pa.schema([numbered("id", pa.int64(), 1), numbered("m", kind, 2)])
    inside: list[Any] = [None, [], [("a", None)], [("a", {"x": None, "l": None}), ("b", {"x": 1, "l": []})]]
    rows = [{"id": number, "m": inside[number % 4]} for number in range(40)]
    path = tmp_path / "m.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=16)
    value = Struct((Column(6, "l", ListOf(Column(7, "element", LONG))), Column(5, "x", LONG)))
    now = Schema(
        (Column(1, "id", LONG), Column(2, "m", MapOf(Column(3, "key", STRING), Column(4, "value", value))))
    )
    fields = {1: Field(1, "id", "long")}
    file = data_file(path)
    for first in (0, 37):
        asked = Request(Compare(fields[1], Op.GE, first), now.columns, now, fields, {})
        assert read(asked, file).to_pylist() == rows[first:]


def test_other_formats_and_files_without_ids_are_refused(tmp_path: Path) -> None:
    asked = request(ALWAYS, [Field(1, "id", "int")])
    with pytest.raises(StorageError, match="which is not read here"):
        list(read_file(asked, FileRead("x.orc", StoredFile("x.orc", 1, 1), "orc", {}), ReadCosts()))
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(StorageError, match="has no field ids"):
        list(read_file(asked, data_file(path), ReadCosts()))
