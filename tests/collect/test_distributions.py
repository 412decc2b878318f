"""Quantiles and frequent values against the rows, however these are spread over files, parts and readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rookery.collect.distribution_request import DistributionRequest
from rookery.collect.distributions import (
    DistributionSketches,
    RowsTask,
    _gather,
    _plain_mapper,
    chosen_groups,
    read_rows,
)
from rookery.model import Field
from rookery.sidecar import DistributionHeader
from tests.collect.files import write
from tests.sidecar.builders import state

ID, WORD, NONE = Field(1, "id", "long"), Field(2, "word", "string"), Field(9, "none", "long")
WANTS = DistributionRequest((ID, WORD, NONE), (WORD, ID))
WORDS = ["a", "b", "a", None, "c", "a", "b"]


@pytest.fixture
def files(tmp_path: Path) -> list[RowsTask]:
    """Three files of 40 rows in row groups of 10."""
    made = []
    for start in (0, 40, 80):
        ids = range(start, start + 40)
        rows = pa.table({"id": pa.array(ids, pa.int64()), "word": [WORDS[n % 7] for n in ids]})
        path = write(tmp_path / f"{start}.parquet", rows, row_group_size=10)
        made.append(RowsTask(path, Path(path).stat().st_size))
    return made


def shown(found: DistributionSketches) -> tuple[Any, ...]:
    quantiles = {
        number: (each.count, each.ends, each.at([0.25, 0.5])) for number, each in found.quantiles.items()
    }
    frequent = {
        number: [(value, count.value) for value, count in each.top(10)]
        for number, each in found.frequent.items()
    }
    return quantiles, frequent, found.rows, sorted(found.needs_engine)


def test_all_rows_are_described(files: list[RowsTask]) -> None:
    found = read_rows(files, WANTS, {})
    words = Counter(word for n in range(120) if (word := WORDS[n % 7]) is not None)
    assert (found.rows, found.quantiles[1].count, found.quantiles[1].ends) == (120, 120, (0, 119))
    assert found.quantiles[1].at([0.5]) == pytest.approx([59.5], abs=2)
    assert (found.quantiles[2].count, found.quantiles[2].ends) == (words.total(), ("a", "c"))
    assert {value: count.value for value, count in found.frequent[2].top(10)} == words
    assert found.quantiles[9].count == 0  # a column that no file has is null throughout


@pytest.mark.parametrize("cuts", [(1,), (2,), (0, 1, 2, 3)])
def test_parts_together_are_the_whole(files: list[RowsTask], cuts: Sequence[int]) -> None:
    found = DistributionSketches.empty(WANTS)
    for start, end in zip((0, *cuts), (*cuts, 3), strict=True):
        part = read_rows(files[start:end], WANTS, {})
        found = found.merge(replace(part, needs_engine=(f"import {start}",)))
    imports = tuple(f"import {start}" for start in (0, *cuts))
    assert shown(found) == shown(replace(read_rows(files, WANTS, {}), needs_engine=imports))


def test_what_executors_send_comes_back(files: list[RowsTask], tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "import.parquet")  # without field ids
    foreign = RowsTask(str(tmp_path / "import.parquet"), (tmp_path / "import.parquet").stat().st_size)
    shares = [files[:1], [*files[1:], foreign]]
    sent = _plain_mapper(shares, WANTS, {})([pa.record_batch({"id": [0]}), pa.record_batch({"id": [1]})])
    rows = [SimpleNamespace(**row) for batch in sent for row in batch.to_pylist()]
    found = _gather(cast(Any, SimpleNamespace(collect=lambda: rows)), WANTS)
    expected = read_rows(files, WANTS, {})
    assert shown(found) == shown(replace(expected, needs_engine=(foreign.path,)))


@pytest.mark.parametrize("most", [1, 3, 4, 9])
def test_a_sample_is_of_the_same_row_groups_whenever_it_is_read(files: list[RowsTask], most: int) -> None:
    wants = replace(WANTS, sample=most)
    found = read_rows(files, wants, {})
    assert shown(found) == shown(read_rows(files, wants, {}))
    assert found.rows == 3 * 10 * min(most, 4)
    for count in range(1, 30):
        chosen = chosen_groups("some path", count, most)
        assert chosen == sorted(set(chosen))
        assert len(chosen) == min(most, count)
        assert set(chosen) <= set(range(count))
    assert chosen_groups("a", 1000, 3) != chosen_groups("b", 1000, 3)


def test_what_a_state_has() -> None:
    sketches = DistributionSketches.empty(WANTS)
    header = DistributionHeader((1, 2, 9), (2, 1), 0, 120, 0)
    plain = state()
    having = replace(
        plain,
        header=replace(plain.header, rows=header),
        quantiles=sketches.quantiles,
        frequent=sketches.frequent,
    )
    nothing = DistributionRequest()
    assert WANTS.are_in(having)
    assert nothing.are_in(plain)
    assert not nothing.are_in(having)
    assert not WANTS.are_in(plain)
    fewer = DistributionRequest((ID,), (WORD,))
    assert fewer.are_collected_in(having)  # among others, which are to be dropped
    assert not fewer.are_in(having)
    for other in (replace(WANTS, sample=2), replace(fewer, top_k=(NONE,))):
        assert not other.are_collected_in(having)
    assert not WANTS.are_in(replace(having, quantiles={1: sketches.quantiles[1]}))


def test_columns_are_left_out_of_both() -> None:
    left = WANTS.without({1, 9})
    assert (left.histogram, left.top_k, left.fields) == ((WORD,), (WORD,), (WORD,))
    assert WANTS.fields == (ID, WORD, NONE)
