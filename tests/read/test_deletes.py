"""Rows deleted by equality, against a plain comparison of tuples."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rookery.model import StorageError
from rookery.model.schema import Column, Primitive, Schema
from rookery.read.deletes import DeleteReader, EqualityDelete, matches
from tests.prune import typed

KINDS = [kind for kind in typed.KINDS if kind not in ("float", "double")]
PATH_ID, POS_ID = 2147483546, 2147483545


@pytest.mark.parametrize("width", [1, 2, 3])
def test_combinations_of_values(width: int) -> None:
    rng = random.Random(width)
    for _ in range(60):
        kinds = rng.sample(KINDS, width)
        pools: list[list[Any]] = [[None, *typed.pool(rng, kind, 3)] for kind in kinds]
        rows = [tuple(rng.choice(pool) for pool in pools) for _ in range(30)]
        gone = [tuple(rng.choice(pool) for pool in pools) for _ in range(rng.randrange(1, 6))]

        def columns(of: list[tuple[Any, ...]], kinds: list[str] = kinds) -> list[pa.Array]:
            return [typed.stored(kind, [row[place] for row in of]) for place, kind in enumerate(kinds)]

        names = [str(place) for place in range(width)]
        delete = EqualityDelete(tuple(range(width)), pa.table(columns(gone), names=names))
        assert matches(delete, columns(rows)).tolist() == [row in gone for row in rows], (kinds, gone)


def test_nothing_to_compare() -> None:
    delete = EqualityDelete((1,), pa.table([pa.array([1, None], pa.int64())], names=["1"]))
    assert matches(delete, [pa.array([], pa.int64())]).tolist() == []
    nothing = EqualityDelete((1,), pa.table([pa.array([], pa.int64())], names=["1"]))
    assert matches(nothing, [pa.array([1, None], pa.int64())]).tolist() == [False, False]


# -- delete files

SCHEMA = Schema((Column(1, "id", Primitive("long")), Column(2, "name", Primitive("string"))))


def write(path: Path, columns: dict[str, tuple[int, pa.Array]]) -> str:
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": str(number)})
        for name, (number, array) in columns.items()
    ]
    arrays = [array for _, array in columns.values()]
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)
    return str(path)


def entry(path: str, content: int, ids: list[int] | None = None, kind: str = "parquet") -> dict[str, Any]:
    return {
        "path": path,
        "content": content,
        "format": kind,
        "equality_ids": ids,
        "content_offset": None,
        "content_size": None,
        "referenced_data_file": None,
    }


def test_positions_of_several_files(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a.parquet",
        {
            "file_path": (PATH_ID, pa.array(["x", "x", "y"])),
            "pos": (POS_ID, pa.array([7, 3, 1], pa.int64())),
        },
    )
    second = write(
        tmp_path / "b.parquet",
        {"file_path": (PATH_ID, pa.array(["x"])), "pos": (POS_ID, pa.array([3], pa.int64()))},
    )
    reader = DeleteReader(SCHEMA, {})
    rows = [entry(first, 1), entry(second, 1)]
    assert reader.deleted("x", rows).positions.tolist() == [3, 7]
    assert reader.deleted("y", rows).positions.tolist() == [1]
    assert reader.deleted("z", rows).positions.tolist() == []


def test_equality_deletes_of_a_column_that_was_widened_since(tmp_path: Path) -> None:
    path = write(tmp_path / "e.parquet", {"old": (1, pa.array([5, None], pa.int32()))})
    (delete,) = DeleteReader(SCHEMA, {}).deleted("x", [entry(path, 2, [1])]).equality
    assert delete.values.column(0).type == pa.int64()
    assert matches(delete, [pa.array([5, 6, None], pa.int64())]).tolist() == [True, False, True]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "e.parquet", {"id": (1, pa.array([5], pa.int64()))})
    reader = DeleteReader(SCHEMA, {})
    with pytest.raises(StorageError, match="lacks the field 2"):
        reader.deleted("x", [entry(path, 2, [2])])
    with pytest.raises(StorageError, match="deletes in avro cannot be read here"):
        reader.deleted("x", [entry("e.avro", 2, [1], "avro")])


def test_values_of_a_dropped_column_keep_the_types_they_were_stored_in() -> None:
    delete = EqualityDelete((1,), pa.table([pa.array([5, None], pa.int64())], names=["1"]))
    assert matches(delete, [pa.array([5, 6, None], pa.int32())]).tolist() == [True, False, True]
    assert matches(delete, [pa.nulls(2)]).tolist() == [True, True]
