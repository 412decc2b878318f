"""Refreshing distributions: only new rows are read, until too many are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.collect.analyze import AnalyzeResult, analyze
from rookery.collect.choose import Choice
from rookery.sidecar import DistributionHeader, Store, store_of
from tests.collect.plain import NO_SPARK
from tests.tables.memory_format import MemoryWriter

BOTH = Choice(histogram=("id",), top_k=("word",))


@pytest.fixture
def writer(tmp_path: Path) -> MemoryWriter:
    made = MemoryWriter(tmp_path, {"id": "long", "word": "string"})
    for start in range(0, 100, 10):
        made.append(rows(start))
    return made


@pytest.fixture
def store(writer: MemoryWriter) -> Store:
    return store_of(writer.open())


def rows(start: int) -> list[dict[str, object]]:
    return [{"id": start + n, "word": f"w{n % 2}"} for n in range(10)]


def refreshed(
    writer: MemoryWriter, store: Store, choice: Choice = BOTH
) -> tuple[AnalyzeResult, DistributionHeader]:
    found = analyze(lambda: NO_SPARK, writer.open(), store, choice)
    assert found.state is not None
    assert found.state.header.rows is not None
    return found, found.state.header.rows


def test_new_files_are_merged_in(writer: MemoryWriter, store: Store) -> None:
    found, header = refreshed(writer, store)
    assert (found.rows_read, header) == (100, DistributionHeader((1,), (2,), 0, 100, 0))
    assert refreshed(writer, store)[0].rows_read == 0
    writer.append(rows(100))
    found, header = refreshed(writer, store, Choice())  # what is declared is kept current
    assert (found.rows_read, header.rows_seen, header.rows_gone) == (10, 110, 0)
    assert found.state is not None
    assert (found.state.quantiles[1].count, found.state.quantiles[1].ends) == (110, (0, 109))
    assert [(value, count.value) for value, count in found.state.frequent[2].top(5)] == [
        ("w0", 55),
        ("w1", 55),
    ]


def test_without_any_nothing_is_read(writer: MemoryWriter, store: Store) -> None:
    found = analyze(lambda: NO_SPARK, writer.open(), store)
    assert found.state is not None
    assert (found.rows_read, found.state.header.rows, found.state.quantiles) == (0, None, {})


def test_one_more_column_or_another_sample_reads_all_again(writer: MemoryWriter, store: Store) -> None:
    refreshed(writer, store)
    found, header = refreshed(writer, store, Choice(histogram=("word",)))
    assert (found.rows_read, header.histogram, header.top_k) == (100, (1, 2), (2,))
    found, header = refreshed(writer, store, Choice(sample=1))
    assert (found.rows_read, header.sample) == (100, 1)
    found, header = refreshed(writer, store, Choice(drop_histogram=("word",)))
    assert (found.rows_read, header.histogram) == (0, (1,))


def test_rows_that_are_gone_are_counted_until_they_are_too_many(writer: MemoryWriter, store: Store) -> None:
    refreshed(writer, store)
    for number, gone in ((5, 10), (15, 20)):
        writer.remove_file_of(number)
        found, header = refreshed(writer, store)
        assert (found.rows_read, header.rows_seen, header.rows_gone) == (0, 100, gone)
    writer.remove_file_of(25)  # more than a fifth
    found, header = refreshed(writer, store)
    assert (found.rows_read, header.rows_seen, header.rows_gone) == (70, 70, 0)
    assert found.state is not None
    assert found.state.quantiles[1].ends == (30, 99)


def test_a_file_in_two_segments_is_gone_once(writer: MemoryWriter, store: Store) -> None:
    refreshed(writer, store, Choice(columns=("id",), histogram=("id",), top_k=("word",)))
    found, _ = refreshed(writer, store)
    assert found.state is not None
    assert (len(found.state.header.segments), found.rows_read) == (2, 0)
    writer.remove_file_of(5)
    assert refreshed(writer, store)[1].rows_gone == 10
