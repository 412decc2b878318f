"""Deleted rows: metadata tells how many, not which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rookery.collect.analyze import analyze
from rookery.estimate.deleted import _own
from rookery.estimate.selection import Selection, select
from rookery.model import ALWAYS, Certainty, Compare, Op, Predicate
from rookery.prune.cascade import prune
from rookery.prune.fileset import file_set
from rookery.sidecar import store_of
from rookery.tables.files import EQUALITY_DELETES, POSITION_DELETES
from tests.collect.plain import NO_SPARK
from tests.tables.memory_format import MemoryWriter


@pytest.fixture
def writer(tmp_path: Path) -> MemoryWriter:
    """Three files of ten rows, analysed; then three rows of the first are deleted."""
    writer = MemoryWriter(tmp_path, {"id": "long", "word": "string"})
    for file in range(3):
        writer.append([{"id": 10 * file + n, "word": f"w{n % 2}"} for n in range(10)])
    analyze(lambda: NO_SPARK, writer.open(), store_of(writer.open()))
    writer.delete_rows({1, 2, 3})
    return writer


def selected(writer: MemoryWriter, predicate: Predicate) -> Selection:
    table = writer.open()
    snapshot = table.snapshot()
    assert snapshot is not None
    return select(prune(table, snapshot, file_set(table, store_of(table), snapshot), predicate))


def test_deletion_vectors_are_subtracted(writer: MemoryWriter) -> None:
    rows = selected(writer, ALWAYS).rows
    assert (rows.value, rows.kind) == (27, Certainty.EXACT)


def test_which_rows_match_is_not_known_then(writer: MemoryWriter) -> None:
    identity = writer.open().fields()[0]
    below = selected(writer, Compare(identity, Op.LT, 5))
    assert (below.rows.low, below.rows.high) == (0, 7)
    assert below.rows.value == pytest.approx(5 * 0.7)
    first = selected(writer, Compare(identity, Op.LT, 10)).rows
    assert (first.value, first.kind) == (7, Certainty.EXACT), "all rows of the file match"
    others = selected(writer, Compare(identity, Op.GE, 20)).rows
    assert (others.value, others.kind) == (10, Certainty.EXACT), "a file without deletes"


def test_a_file_that_others_replace_rows_of_proves_nothing(tmp_path: Path) -> None:
    writer = MemoryWriter(tmp_path, {"id": "long"}, key="id")
    writer.append([{"id": 1}, {"id": 2}])
    writer.append([{"id": 1}])
    rows = selected(writer, ALWAYS).rows
    assert (rows.low, rows.high, rows.kind) == (0, 3, Certainty.SKETCHED)


def listed(content: int, rows: int, *, target: str | None = "a", form: str = "parquet") -> dict[str, Any]:
    return {
        "content": content,
        "rows": rows,
        "referenced_data_file": target,
        "format": form,
        "path": "d",
        "content_offset": None,
        "lower_bounds": None,
        "upper_bounds": None,
    }


def test_kinds_of_deletes() -> None:
    positions, vector = listed(POSITION_DELETES, 4), listed(POSITION_DELETES, 6, form="puffin")
    shared, equality = listed(POSITION_DELETES, 9, target=None), listed(EQUALITY_DELETES, 2, target=None)
    assert _own([positions]) == ((4, 4, 4), [])
    assert _own([positions, positions]) == ((8, 4, 8), []), "positions of two files may be the same"
    assert _own([positions, vector]) == ((6, 6, 6), []), "a vector replaces other positions"
    assert _own([shared, equality]) == ((0, 0, 0), [shared, equality])
