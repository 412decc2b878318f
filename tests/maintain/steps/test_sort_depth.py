"""How deep files overlap, by bounds in the metadata, against a count over all pairs of files."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.maintain.policies.policy import Compaction, Strategy
from rookery.maintain.steps.sort_depth import sort_depth
from rookery.maintain.survey import survey
from rookery.model import UsageError
from tests.collect.plain import PlainTable

SCHEMA = pa.schema([("part", pa.int32()), ("v", pa.int64())])
BY_V = Compaction(strategy=Strategy.SORT, columns=("v",))
Span = tuple[int, int, int]  # partition, least and greatest value of a file


@pytest.fixture
def table(tmp_path: Path) -> PlainTable:
    made = PlainTable(tmp_path, SCHEMA)
    made.table.update_spec().add_identity("part").commit()
    return made


def fill(table: PlainTable, spans: list[Span]) -> None:
    for part, low, high in spans:
        table.append(pa.table([[part, part], [low, high]], schema=SCHEMA))


def measured(table: PlainTable, wanted: Compaction = BY_V) -> float | None:
    return sort_depth(survey(table.load(), table.store), wanted)


def expected(spans: list[Span]) -> float:
    """Only files with a range of values can be sorted apart, and not those that have the same range."""
    wide = {span for span in spans if span[1] < span[2]}
    covering = [
        sum(part == other and first <= low < last for other, first, last in wide) for part, low, _ in wide
    ]
    return sum(covering) / len(covering) if covering else 1.0


@pytest.mark.parametrize(
    ("spans", "depth"),
    [
        ([(0, 0, 10), (0, 10, 20), (0, 20, 30)], 1.0),
        ([(0, 0, 10), (0, 5, 15)], 1.5),
        ([(0, 0, 10), (1, 5, 15)], 1.0),  # of two partitions
        ([(0, 0, 10), (0, 0, 10), (0, 0, 10)], 1.0),  # the same bounds
        ([(0, 0, 10), (0, 5, 5), (0, 5, 5)], 1.0),  # one value only
        ([(0, 3, 3)], 1.0),
    ],
)
def test_the_overlap_that_sorting_can_remove(table: PlainTable, spans: list[Span], depth: float) -> None:
    fill(table, spans)
    assert measured(table) == expected(spans) == depth


@pytest.mark.parametrize("seed", range(4))
def test_against_all_pairs(table: PlainTable, seed: int) -> None:
    rng = random.Random(seed)
    spans = []
    for _ in range(12):
        low = rng.randrange(12)
        spans.append((rng.randrange(2), low, low + rng.randrange(8)))
    fill(table, spans)
    assert measured(table) == pytest.approx(expected(spans))


def test_without_files_or_an_order(table: PlainTable) -> None:
    assert measured(table) is None  # no files
    fill(table, [(0, 0, 10), (0, 5, 15)])
    assert measured(table, Compaction()) is None
    assert measured(table, replace(BY_V, strategy=Strategy.Z_ORDER)) is None
    assert measured(table, replace(BY_V, columns=())) is None  # the table declares no order
    with pytest.raises(UsageError, match="there is no column 'w'"):
        measured(table, replace(BY_V, columns=("w",)))


def test_without_bounds(table: PlainTable) -> None:
    table.table.transaction().set_properties({"write.metadata.metrics.default": "none"}).commit_transaction()
    fill(table, [(0, 0, 10), (0, 5, 15)])
    assert measured(table) is None
