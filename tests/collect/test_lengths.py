"""Lengths of text and binary values, collected as they are hashed, against the values themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import StringType

from rookery.api.statistics import stats
from rookery.collect.engine import sketched
from rookery.collect.lengths import FileLengths, chunk_lengths
from rookery.collect.plan import FileTask, Task
from rookery.collect.run import _batches, _cells, _partials, _Row, merge
from rookery.collect.task import run_task
from rookery.io import open_source
from rookery.model import Field
from rookery.parquet import Chunk, read_footer
from rookery.sketch.lengths import Lengths
from rookery.tables.column_mapping import BY_FIELD_ID
from tests.collect.files import read, write
from tests.collect.plain import PlainTable

TEXT = Field(1, "text", "string")
# Long values are rare: the average of the distinct ones is not that of all.
VALUES = [None if n % 7 == 0 else "x" * 300 if n == 500 else f"ü{n % 5}" for n in range(1000)]
WAYS: Mapping[str, Mapping[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False},
    "plain version 2": {"use_dictionary": False, "data_page_version": "2.0"},
    "dictionary and plain": {"dictionary_pagesize_limit": 10, "write_batch_size": 10},
    "decoded by pyarrow": {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
    "several row groups": {"row_group_size": 90},
    "not compressed": {"compression": "none", "row_group_size": 501},
}


def lengths_of(values: Sequence[str | bytes | None]) -> Lengths:
    sizes = [
        len(value.encode() if isinstance(value, str) else value) for value in values if value is not None
    ]
    return Lengths(len(sizes), sum(sizes), max(sizes, default=0))


def chunk_of(path: str) -> Chunk:
    with open_source(path, {}) as source:
        return read_footer(source).row_groups[0].chunks[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("type_name", ["string", "binary"])
def test_a_file(tmp_path: Path, way: str, type_name: str) -> None:
    values = pa.array(VALUES, pa.string()).cast(getattr(pa, type_name)())
    path = write(tmp_path / "file.parquet", pa.table({"text": values}), **WAYS[way])
    assert read(path, [replace(TEXT, type=type_name)]).lengths == {1: lengths_of(VALUES)}


@pytest.mark.parametrize("way", ["plain", "plain version 2", "decoded by pyarrow"])
def test_without_a_stated_sum_all_values_are_counted(tmp_path: Path, way: str) -> None:
    path = write(tmp_path / "file.parquet", pa.table({"text": VALUES}), **WAYS[way])
    unstated = replace(chunk_of(path), byte_array_bytes=None)
    assert chunk_lengths(unstated, lengths_of(VALUES)) == lengths_of(VALUES)


def test_without_a_stated_sum_distinct_values_are_a_sample(tmp_path: Path) -> None:
    path = write(tmp_path / "file.parquet", pa.table({"text": VALUES}))
    seen = lengths_of(sorted({value for value in VALUES if value is not None}))
    chunk = chunk_of(path)
    every = lengths_of(VALUES)
    assert chunk.byte_array_bytes == every.bytes
    estimated = chunk_lengths(replace(chunk, byte_array_bytes=None), seen)
    assert (estimated.values, estimated.greatest) == (every.values, 300)
    assert estimated.bytes == round(every.values * seen.bytes / seen.values)


@pytest.mark.parametrize("stated", [-1, 300 * 1000 + 1, 1 << 62])
def test_a_stated_sum_that_is_impossible_is_not_used(tmp_path: Path, stated: int) -> None:
    path = write(tmp_path / "file.parquet", pa.table({"text": VALUES}))
    chunk = replace(chunk_of(path), byte_array_bytes=stated)
    assert chunk_lengths(chunk, lengths_of(VALUES)) == lengths_of(VALUES)


def test_a_stated_sum_is_not_used_if_nulls_are_not_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "file.parquet", pa.table({"text": VALUES}))
    chunk = chunk_of(path)
    unknown = replace(chunk, statistics=replace(chunk.statistics, null_count=None))
    found = chunk_lengths(unknown, lengths_of(VALUES))
    assert found.bytes / found.values == pytest.approx(
        lengths_of(VALUES).bytes / lengths_of(VALUES).values, 0.01
    )


@pytest.mark.parametrize("values", [[], [None, None], ["", "", None]])
def test_columns_without_bytes(tmp_path: Path, values: list[str | None]) -> None:
    path = write(tmp_path / "file.parquet", pa.table({"text": pa.array(values, pa.string())}))
    assert read(path, [TEXT]).lengths == {1: lengths_of(values)}


def test_columns_of_other_types_and_in_lists_have_none(tmp_path: Path) -> None:
    table = pa.table({"n": [1], "l": [["a"]], "s": [{"t": "abc"}]})
    path = write(tmp_path / "file.parquet", table)
    fields = [
        Field(1, "n", "long"),
        Field(3, "l.element", "string", repeated=True),
        Field(5, "s.t", "string"),
    ]
    assert read(path, fields).lengths == {5: Lengths(1, 3, 3)}


@pytest.mark.parametrize("theta", [1, 1 << 40])
def test_values_that_the_sketch_drops_count_too(tmp_path: Path, theta: int) -> None:
    path = write(tmp_path / "file.parquet", pa.table({"text": VALUES}), use_dictionary=False)
    assert read(path, [TEXT], theta).lengths == {1: lengths_of(VALUES)}


def test_parts_of_a_file_add_up_and_come_back(tmp_path: Path) -> None:
    """As tasks send them to the driver."""
    files = [VALUES, ["long " * 90, None], VALUES[:50]]
    paths = [
        write(tmp_path / f"{number}.parquet", pa.table({"text": values}), row_group_size=30)
        for number, values in enumerate(files)
    ]
    parts = []
    for part in range(3):
        pieces = tuple(
            FileTask(number, path, Path(path).stat().st_size, len(files[number]), part, 3, False, BY_FIELD_ID)
            for number, path in enumerate(paths)
        )
        sent = run_task(Task(0, tuple(map(len, files)), pieces, (TEXT,), ()), {})
        rows = [_Row(*cells) for batch in _batches(sent, str(tmp_path), {}) for cells in _cells(batch)]
        parts += list(_partials(rows, {0: ()}, {}))
    tables = merge(parts).lengths.tables(4)
    found = [Lengths(**row) for row in tables[1].slice(0, 3).to_pylist()]
    assert found == [lengths_of(values) for values in files]
    assert set(tables[1].slice(3).to_pylist()[0].values()) == {None}  # the engine may read the last file


@given(st.lists(st.lists(st.none() | st.text(max_size=9)), max_size=4))
def test_batches_of_an_engine(batches: list[list[str | None]]) -> None:
    rows = [
        ("a" if number % 2 else "b", pa.record_batch({"text": pa.array(values, pa.string())}))
        for number, values in enumerate(batches)
    ]
    for row in sketched(rows, [TEXT]).to_pylist():
        number = int(row["file"] == "a")
        values = [value for batch in batches[number::2] for value in batch]
        assert Lengths(*row["lengths"]) == lengths_of(values)


def test_nothing_is_known_of_a_group_that_is_not_counted() -> None:
    assert FileLengths().tables(3) == {}


def test_statistics_show_them(tmp_path: Path) -> None:
    """Of a column that is younger than some files too; the greatest only if it is that of all files."""
    table = PlainTable(tmp_path, pa.schema([("text", pa.string())]))
    table.append(pa.table({"text": ["a", None, "bcd"]}))

    def shown() -> list[tuple[float | None, int | None]]:
        columns = stats(table.load(), table.store).columns
        return [(column.avg_length, column.max_length) for column in columns]

    assert shown() == [(None, None)]
    table.analyse()
    assert shown() == [(2, 3)]
    with table.table.update_schema() as update:
        update.add_column("young", StringType())
    assert shown() == [(2, 3), (None, None)]
    table.append(pa.table({"text": ["efghij", "kl"], "young": ["é", "x"]}))
    assert shown() == [(2, None), (None, None)]
    table.analyse()
    assert shown() == [(3, 6), (1.5, 2)]
