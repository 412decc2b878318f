"""What status says of small tables made by PyIceberg: policies found, summaries that say little, slack."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import rookery
from rookery.api.lake import Lake
from rookery.io import local_path
from rookery.maintain.breaches import overdue
from rookery.maintain.facts.staleness import changed_rows
from rookery.maintain.policies.policy import DEFAULT, Policy, Snapshots
from rookery.maintain.runs.metrics import render
from rookery.maintain.status import TableStatus, table_status
from rookery.maintain.steps.expire import expirable
from rookery.maintain.survey import survey
from rookery.model import RookeryError
from tests.maintain.runs.small_site import small_lake
from tests.maintain.tending import DAY, view_of

ROWS = pa.table({"id": pa.array(range(10), pa.int64())})


@pytest.fixture
def small(tmp_path: Path) -> Lake:
    return small_lake(tmp_path, "orders")


def test_the_policy_file_is_found(small: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Python as on the command line."""
    handle = rookery.table("db.orders", small)
    monkeypatch.chdir(tmp_path)
    assert handle.status().tables[0].layout.target_size == 512 << 20
    Path("rookery.yaml").write_text("defaults: {compaction: {target-size: 1MiB}}\n")
    for report in (handle.status(), small.status("db.orders"), small.status()):
        assert report.tables[0].layout.target_size == 1 << 20


def test_a_summary_without_counts_tells_nothing(small: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table, store = small.open("db.orders")
    seen = survey(table, store)
    snapshot = table.snapshot()
    assert snapshot is not None
    told = changed_rows(seen, [snapshot])
    assert told is not None
    assert told.brought > 0
    summary = table.table.metadata.snapshots[-1].summary
    assert summary is not None
    summary._additional_properties.clear()
    assert changed_rows(seen, [snapshot]) is None


def test_one_snapshot_that_is_just_past_its_time_is_no_breach(small: Lake) -> None:
    table = small.load("db.orders")
    for _ in range(3):
        table.append(table.scan().to_arrow())
    policy = replace(DEFAULT, snapshots=Snapshots(timedelta(days=10), 1))
    look = view_of(small, "db.orders", policy)
    for days, going, late in ((9, 0, False), (10.5, 3, False), (11.5, 3, True)):
        later = replace(look, now=look.now + days * DAY)
        assert expirable(look.table, policy.snapshots, later.now) >= going
        assert any("overdue to expire" in breach for breach in overdue(look.table, policy, later.now)) is late


def test_tables_that_cannot_be_told_are_counted() -> None:
    assert 'rookery_table_unreadable{catalog="lake",namespace="db",table="t"} 1.0' in render(
        (), (), ["lake.db.t"]
    )


def manifests_of(lake: Lake) -> list[Path]:
    table = lake.load("db.orders")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return [Path(local_path(each.manifest_path)) for each in snapshot.manifests(table.io)]


def test_an_unchanged_table_is_not_read_again(small: Lake) -> None:
    brisk = replace(DEFAULT, snapshots=Snapshots(timedelta(days=10), 1))

    def told(policy: Policy = brisk, days: float = 0) -> TableStatus:
        return table_status(*small.open("db.orders"), policy, now=now + days * DAY, columns=True)

    now = time.time()
    small.load("db.orders").append(ROWS)
    first = told()
    hidden = [(path, path.rename(f"{path}.hidden")) for path in manifests_of(small)]
    assert told() == first
    later = told(days=30)  # what time alone changes
    assert (later.expirable_snapshots, first.expirable_snapshots) == (1, 0)
    assert later.breaches == (*first.breaches, "1 snapshot overdue to expire")
    other = replace(brisk, compaction=replace(DEFAULT.compaction, target_size=1))
    with pytest.raises(RookeryError):  # the manifests are needed
        told(other)
    for path, elsewhere in hidden:
        elsewhere.rename(path)
    assert told(other).layout.target_size == 1
    rookery.table("db.orders", small).add_index("bloom", "id")  # beside it
    assert [index.kind for index in told().indexes] == ["bloom"]
    small.load("db.orders").append(ROWS)
    assert told().layout.files == first.layout.files + 1
