"""Histograms, frequent values and column sets are declared for the table, not for one of its snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.model import UsageError
from rookery.sidecar import Store
from tests.interop.conftest import NewTable
from tests.interop.test_analyze_incremental import COLUMNS, Analyst

ASKED = {"histogram": ["id"], "top_k": ["word"], "column_sets": [["part", "word"]]}
DROPPED = {"drop_histogram": ["id"], "drop_top_k": ["word"], "drop_column_sets": [["word", "part"]]}
ALL = {"histogram of id", "top-k of word", "word + part"}


@pytest.fixture
def analyst(spark: SparkSession, lake: Lake, new_table: NewTable) -> Analyst:
    found = Analyst(spark, lake, new_table(COLUMNS, 2))
    found.append(0)
    return found


def shown(analyst: Analyst) -> set[str]:
    """What `stats` knows beyond the numbers of each column."""
    columns = rookery.table(analyst.name, analyst.lake).stats().columns
    found = {column.name for column in columns if "+" in column.name and column.coverage == 1.0}
    for column in columns:
        if column.rows is not None and column.rows.quantiles:
            found.add(f"histogram of {column.name}")
        if column.rows is not None and column.rows.top:
            found.add(f"top-k of {column.name}")
    return found


def store(analyst: Analyst) -> Store:
    return analyst.lake.open(analyst.name)[1]


def test_they_are_collected_again_after_a_rollback(analyst: Analyst) -> None:
    analyst.analyze()
    first = analyst.snapshot()
    analyst.append(300)
    analyst.analyze(**ASKED)
    assert shown(analyst) == ALL
    analyst.call("rollback_to_snapshot", snapshot_id=first)
    assert shown(analyst) == set()
    assert analyst.analyze().rows_read == 60
    assert shown(analyst) == ALL
    assert not analyst.analyze().rows_read


def test_they_are_collected_again_with_everything_else(analyst: Analyst) -> None:
    analyst.analyze()
    first = analyst.snapshot()
    analyst.append(300)
    analyst.analyze(**ASKED)
    analyst.call("rollback_to_snapshot", snapshot_id=first)
    analyst.analyze(full=True)
    assert shown(analyst) == ALL


def test_the_sample_is_remembered(analyst: Analyst) -> None:
    analyst.analyze()
    first = analyst.snapshot()
    analyst.append(300)
    analyst.analyze(histogram=["id"], sample=1)
    analyst.call("rollback_to_snapshot", snapshot_id=first)
    analyst.analyze()
    found = store(analyst)
    ((_, newest),) = list(found.newest([first]))[:1]
    assert newest.header.rows is not None
    assert newest.header.rows.sample == 1


def test_an_index_declared_after_a_rollback_does_not_end_them(analyst: Analyst) -> None:
    analyst.analyze()
    first = analyst.snapshot()
    analyst.append(300)
    analyst.analyze(**ASKED)
    analyst.call("rollback_to_snapshot", snapshot_id=first)
    for _ in range(9):  # more states than are asked for declarations
        rookery.table(analyst.name, analyst.lake).add_index("bloom", "id")
    analyst.analyze()
    assert shown(analyst) == ALL


def test_a_lost_state_that_was_built_upon(analyst: Analyst) -> None:
    """The latest state is damaged: the one before has the declarations, though not the best snapshot."""
    analyst.analyze()
    first = analyst.snapshot()
    analyst.append(300)
    analyst.analyze(**ASKED)
    analyst.call("rollback_to_snapshot", snapshot_id=first)
    analyst.analyze()
    found = store(analyst)
    Path(found.path(found.latest_first()[0]).removeprefix("file:")).write_bytes(b"rubbish")
    analyst.analyze()
    assert shown(analyst) == ALL


def test_what_is_dropped_stays_dropped(analyst: Analyst) -> None:
    analyst.analyze(**ASKED)
    first = analyst.snapshot()
    assert shown(analyst) == ALL
    analyst.append(300)
    assert analyst.analyze(**DROPPED).rows_read == 0
    assert shown(analyst) == set()
    analyst.call("rollback_to_snapshot", snapshot_id=first)
    analyst.analyze()
    assert shown(analyst) == set()
    with pytest.raises(UsageError, match="no histogram of 'id'"):
        analyst.analyze(drop_histogram=["id"])
    analyst.analyze(**ASKED)
    assert shown(analyst) == ALL


def test_one_is_dropped_and_the_others_are_not_read_again(analyst: Analyst) -> None:
    analyst.analyze(histogram=["id", "part"], top_k=["word"])
    assert analyst.analyze(drop_histogram=["part"]).rows_read == 0
    assert shown(analyst) == {"histogram of id", "top-k of word"}


def test_a_dry_run_drops_nothing(analyst: Analyst) -> None:
    analyst.analyze(**ASKED)
    analyst.analyze(**DROPPED, dry_run=True)
    analyst.analyze()
    assert shown(analyst) == ALL


def test_asking_again_changes_nothing(analyst: Analyst) -> None:
    analyst.analyze(**ASKED)
    before = store(analyst).latest_first()
    analyst.analyze(**ASKED)
    assert store(analyst).latest_first() == before


def test_two_who_ask_at_the_same_time(analyst: Analyst, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each began before the other had written: the next run collects what both have asked for."""
    analyst.analyze()
    plain, others = Store.write_state, [{"top_k": ["word"]}, {"column_sets": [["part", "word"]]}]

    def write(self: Store, new: object) -> str:
        if others:
            analyst.analyze(**others.pop())
        return plain(self, new)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "write_state", write)
    analyst.analyze(histogram=["id"])
    analyst.analyze()
    assert shown(analyst) == ALL
