"""Row groups and pages: what lies in those that are left out never matches."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rookery.io import BytesSource
from rookery.model import Compare, Field, In, IsNull, Op, Predicate, Value
from rookery.model.cache import Cache
from rookery.prune.parquet_pruning import Inside, StoredFile, pages, row_groups
from tests.prune import typed
from tests.where.naive import matches

N = 240
LAYOUTS: tuple[Mapping[str, Any], ...] = (
    {"use_dictionary": True},
    {"use_dictionary": False},
    {"use_dictionary": True, "dictionary_pagesize_limit": 32},
    {"use_dictionary": False, "write_page_index": False},
    {"use_dictionary": True, "write_statistics": False, "write_page_index": False},
    {"use_dictionary": True, "data_page_version": "2.0"},
)
BLOOMS = {"int", "long", "float", "double", "date", "timestamp", "string", "binary", "uuid", "fixed[4]"}
Rows = dict[str, list[Value | None]]
_numbers = iter(range(10**9))


def write(fields: Sequence[Field], rows: Rows, **options: Any) -> BytesSource:
    arrays = [typed.stored(field.type, rows[field.name]) for field in fields]
    arrays = [array.storage if isinstance(array, pa.ExtensionArray) else array for array in arrays]
    schema = pa.schema(
        [
            pa.field(field.name, array.type, metadata={"PARQUET:field_id": str(field.id)})
            for field, array in zip(fields, arrays, strict=True)
        ]
    )
    sink = pa.BufferOutputStream()
    small = {"row_group_size": 80, "max_rows_per_page": 10, "write_batch_size": 5, "write_page_index": True}
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, **{**small, **options})
    # What is read of a file is kept by its name.
    return BytesSource(sink.getvalue(), f"inside-{next(_numbers)}.parquet")


def left(source: BytesSource, predicate: Predicate) -> tuple[set[int], Inside]:
    """The rows that may match."""
    rows = pq.read_metadata(pa.BufferReader(source.read(0, source.size))).num_rows
    inside = row_groups(source, StoredFile(source.name, source.size, rows), predicate, Cache())
    groups = len(inside.groups)
    pages(source, inside, predicate)
    assert len(inside.groups) <= groups
    found: set[int] = set()
    for group in inside.groups:
        stored = inside.footer.row_groups[group.number]
        numbers = range(stored.rows) if group.rows is None else np.flatnonzero(group.rows).tolist()
        found |= {stored.first_row + number for number in numbers}
    return found, inside


def column(rng: random.Random, kind: str, values: Sequence[Value]) -> list[Value | None]:
    nulls = rng.choice((0.0, 0.1, 0.9))
    made: list[Value | None] = [None if rng.random() < nulls else rng.choice(values) for _ in range(N)]
    if rng.random() < 0.3:
        made[100:170] = [None] * 70
    return made


@pytest.mark.parametrize("kind", typed.KINDS)
def test_a_row_that_matches_is_never_left_out(kind: str) -> None:
    rng = random.Random(f"inside {kind}")
    field = Field(7, "c", kind)
    left_out = 0
    for layout in LAYOUTS:
        values = typed.pool(rng, kind, rng.choice((3, 12)))
        rows: Rows = {"c": column(rng, kind, values)}
        bloom = (
            {"bloom_filter_options": {"c": {"ndv": 20, "fpp": 0.01}}}
            if kind in BLOOMS and rng.random() < 0.5
            else {}
        )
        source = write([field], rows, **layout, **bloom)
        for _ in range(25):
            predicate = typed.leaf(rng, field, values)
            found, inside = left(source, predicate)
            assert not inside.notes, inside.notes
            wanted = {number for number, value in enumerate(rows["c"]) if matches(predicate, {"c": value})}
            assert wanted <= found, (predicate, layout, sorted(wanted - found)[:3])
            left_out += N - len(found)
    assert left_out > 0


def test_several_columns() -> None:
    rng = random.Random("several")
    for number in range(30):
        kinds = rng.sample(typed.KINDS, 3)
        fields = [Field(place + 1, f"c{place}", kind) for place, kind in enumerate(kinds)]
        pools = {field.name: typed.pool(rng, field.type, 6) for field in fields}
        rows: Rows = {field.name: column(rng, field.type, pools[field.name]) for field in fields}
        source = write(fields, rows, **LAYOUTS[number % len(LAYOUTS)])
        listed = [{name: rows[name][place] for name in rows} for place in range(N)]
        for _ in range(10):
            predicate = typed.tree(rng, fields, pools, 2)
            found, _ = left(source, predicate)
            assert {place for place, row in enumerate(listed) if matches(predicate, row)} <= found, predicate


@pytest.mark.parametrize("kind", [kind for kind in typed.KINDS if kind != "boolean"])
def test_sorted_data_is_pruned_to_the_page(kind: str) -> None:
    rng = random.Random(f"sorted {kind}")
    field = Field(7, "c", kind)
    distinct = {repr(value): value for value in typed.pool(rng, kind, 2000) if value == value and value != 0}
    values = sorted(distinct.values())[:N]
    assert len(values) >= 40
    source = write([field], {"c": list(values)}, use_dictionary=False)
    for place in (0, 17, len(values) - 1):
        found, _ = left(source, Compare(field, Op.EQ, values[place]))
        assert place in found
        assert len(found) <= 20, "no more than the page and one that it touches"
        below, _ = left(source, Compare(field, Op.LT, values[place]))
        assert set(range(place)) <= below
        assert len(below) <= place + 10
    assert left(source, IsNull(field))[0] == set()


@pytest.mark.parametrize("kind", ["int", "long", "double", "string", "uuid"])
@pytest.mark.parametrize("how", ["dictionary", "bloom"])
def test_values_between_the_bounds_are_looked_up(kind: str, how: str) -> None:
    """The ends of each row group are the same: only a dictionary or a Bloom filter tells them apart."""
    rng = random.Random(f"looked up {kind}")
    field = Field(7, "c", kind)
    values = sorted({repr(v): v for v in typed.pool(rng, kind, 60) if v == v and v not in (0, "")}.values())
    first, last, inner = values[0], values[-1], values[1:-1]
    here, there = inner[::2], inner[1::2]
    rows: Rows = {"c": ([first, last, *here] * 20)[:80] + ([first, last, *there] * 20)[:80]}
    options: dict[str, Any] = {"use_dictionary": how == "dictionary", "write_page_index": False}
    if how == "bloom":
        options["bloom_filter_options"] = {"c": {"ndv": 200, "fpp": 0.0001}}
    source = write([field], rows, **options)
    pruned = 0
    for value in inner:
        for predicate in (
            Compare(field, Op.EQ, value),
            In(field, (value, values[1] if value in here else there[0])),
        ):
            found, _ = left(source, predicate)
            wanted = {place for place, each in enumerate(rows["c"]) if matches(predicate, {"c": each})}
            assert wanted <= found
            pruned += len(found) == 80
    assert pruned > len(inner) / 2
    absent = next(
        v for v in iter(lambda: typed.value(rng, kind), None) if v not in values and first < v < last
    )  # type: ignore[operator]
    assert left(source, Compare(field, Op.EQ, absent))[0] == set()


def test_a_column_that_the_file_lacks_is_null() -> None:
    source = write([Field(1, "c", "int")], {"c": list(range(N))})
    absent = Field(2, "d", "int")
    everything = set(range(N))
    assert left(source, IsNull(absent))[0] == everything
    assert left(source, IsNull(absent, True))[0] == set()
    assert left(source, Compare(absent, Op.EQ, 5))[0] == set()
    filled = Field(2, "d", "int", filled=True)  # by a default, or by its partition
    assert left(source, Compare(filled, Op.EQ, 5))[0] == everything
    assert left(source, IsNull(filled, True))[0] == everything


@pytest.mark.parametrize(
    ("stored", "now"), [("int", "long"), ("float", "double"), ("decimal(4, 2)", "decimal(18, 2)")]
)
def test_columns_that_were_widened(stored: str, now: str) -> None:
    rng = random.Random(stored)
    values = typed.pool(rng, stored, 10)
    rows: Rows = {"c": [rng.choice((None, *values)) for _ in range(N)]}
    field = Field(7, "c", now)
    for layout in LAYOUTS:
        source = write(
            [Field(7, "c", stored)], rows, **layout, bloom_filter_options={"c": {"ndv": 20, "fpp": 0.01}}
        )
        for _ in range(30):
            predicate = typed.leaf(rng, field, values)
            found, _ = left(source, predicate)
            wanted = {number for number, value in enumerate(rows["c"]) if matches(predicate, {"c": value})}
            assert wanted <= found, predicate


def test_a_file_without_field_ids_is_read_whole() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c": [1, 2, 3]}), sink)
    source = BytesSource(sink.getvalue(), f"inside-{next(_numbers)}.parquet")
    found, inside = left(source, Compare(Field(1, "c", "long"), Op.EQ, 9))
    assert found == {0, 1, 2}
    assert inside.notes == ["a file without field ids is read whole"]


def test_a_file_that_does_not_stand_alone_is_read_whole() -> None:
    field = Field(1, "c", "int")
    source = write([field], {"c": list(range(N))})
    file = StoredFile(source.name, source.size, N, stands_alone=False)
    inside = row_groups(source, file, Compare(field, Op.EQ, -1), Cache())
    pages(source, inside, Compare(field, Op.EQ, -1))
    assert [(group.number, group.rows) for group in inside.groups] == [(0, None), (1, None), (2, None)]
    assert inside.notes == ["a file whose rows are merged with those of others is read whole"]


def test_columns_that_an_index_has_answered_are_not_looked_up_again() -> None:
    field = Field(1, "c", "int")
    source = write([field], {"c": [0, 2, 4, 6, 8, 10, 12, 99] * 30}, use_dictionary=True)
    file = StoredFile(source.name, source.size, N)
    absent = Compare(field, Op.EQ, 7)  # between the bounds, and not in the dictionary
    assert not row_groups(source, file, absent, Cache()).groups
    assert len(row_groups(source, file, absent, Cache(), answered={1}).groups) == 3
    assert not row_groups(source, file, absent, Cache(), answered={2}).groups


@pytest.mark.parametrize("kind", ["dictionary", "bloom", "page index"])
def test_a_part_that_is_damaged_keeps_what_it_describes(kind: str) -> None:
    field = Field(1, "c", "int")
    options: dict[str, Any] = {"use_dictionary": kind == "dictionary"}
    if kind == "bloom":
        options["bloom_filter_options"] = {"c": {"ndv": 20, "fpp": 0.001}}
    whole = write([field], {"c": [0, 2, 4, 6, 8, 10, 12, 99] * 30}, **options)
    data = bytearray(whole.read(0, whole.size))
    predicate = Compare(field, Op.EQ, 6 if kind == "page index" else 7)
    _, inside = left(whole, predicate)
    for group in inside.footer.row_groups:
        chunk = group.chunks[0]
        start = {
            "dictionary": chunk.start,
            "bloom": chunk.bloom_filter_offset,
            "page index": chunk.column_index_offset,
        }[kind]
        assert start is not None
        data[start : start + 8] = b"\xff" * 8
    found, inside = left(BytesSource(bytes(data), f"inside-{next(_numbers)}.parquet"), predicate)
    assert found == set(range(N))
    assert len(inside.notes) == 3
    assert all("could not be used" in note for note in inside.notes)
