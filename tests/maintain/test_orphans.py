"""Which files are orphans: old, in the table's folder, and named by nothing at all; told without Spark."""

from __future__ import annotations

import gzip
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.api.lake import Lake
from rookery.maintain.policies.policy import CleanUp
from rookery.maintain.steps import clean_up, orphans
from rookery.maintain.steps.step import Idle, Plan
from rookery.model import UsageError
from rookery.storage import local_path
from tests.maintain.tending import BRISK, DAY, folder_of, look_of, make_old, plant

ROWS = pa.table({"id": pa.array(range(10), pa.int64())})


@pytest.fixture
def table(lake: Lake) -> Iterator[str]:
    """A table of three snapshots, all of its files old."""
    lake.catalog.create_namespace_if_not_exists("orphans")
    name = f"orphans.t{uuid.uuid4().hex}"  # in a folder of its own: none is left by one before
    made = lake.catalog.create_table(name, ROWS.schema)
    for _ in range(3):
        made.append(ROWS)
    make_old(folder_of(lake, name), 30 * DAY)
    yield name
    lake.catalog.drop_table(name)


def found(lake: Lake, table: str) -> set[str]:
    planned = orphans.plan(look_of(lake, table))
    if isinstance(planned, Idle):
        return set()
    files = {local_path(file.location) for file in planned.details["files"]}
    assert planned.files == len(files)
    assert planned.bytes == sum(Path(name).stat().st_size for name in files)
    return files


def test_nothing_that_the_table_names_is_an_orphan(lake: Lake, table: str) -> None:
    assert found(lake, table) == set()


def test_old_files_that_nothing_names_are(lake: Lake, table: str) -> None:
    folder = folder_of(lake, table)
    old = [
        plant(folder, "data/part=1/x.parquet", 3 * DAY),
        plant(folder, "metadata/m0.avro", 3 * DAY),
        plant(folder, "stray", 3 * DAY),
        plant(folder, "data/_day=3/y.parquet", 3 * DAY),  # the folder of a partition is not hidden
        plant(folder, "metadata/1-old.stats", 3 * DAY),
    ]
    plant(folder, "data/young.parquet", DAY)
    plant(folder, "data/.hidden", 3 * DAY)
    plant(folder, "data/_temporary/0/z.parquet", 3 * DAY)
    assert found(lake, table) == set(map(str, old))


def test_what_is_kept_inside_the_table_is_left_alone(lake: Lake, table: str) -> None:
    folder = folder_of(lake, table)
    with lake.load(table).transaction() as change:
        change.set_properties({"rookery.location": f"{lake.load(table).location()}/kept/ours"})
    plant(folder, "kept/ours/state-1.puffin", 9 * DAY)
    stray = plant(folder, "kept/state-1.puffin", 9 * DAY)
    assert found(lake, table) == {str(stray)}


def test_tables_below_are_left_alone(lake: Lake, table: str) -> None:
    folder = folder_of(lake, table)
    below = lake.catalog.create_table("orphans.below", ROWS.schema, location=f"file://{folder}/data/below")
    below.append(ROWS)
    plant(folder, "data/below/data/an-orphan-of-that-table", 9 * DAY)
    plant(folder, "data/below.rookery/state-1.puffin", 9 * DAY)
    make_old(folder / "data" / "below", 9 * DAY)
    try:
        assert found(lake, table) == set()
    finally:
        lake.catalog.drop_table("orphans.below")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_folder_that_two_tables_share_is_left_alone(lake: Lake, table: str, packed: bool) -> None:
    folder = folder_of(lake, table)
    other = json.dumps({"table-uuid": "00000000-0000-0000-0000-000000000001"}).encode()
    name = "metadata/00000-x.gz.metadata.json" if packed else "metadata/00000-x.metadata.json"
    plant(folder, name, 0, gzip.compress(other) if packed else other)
    stray = plant(folder, "data/of-the-other.parquet", 9 * DAY)
    with pytest.raises(UsageError, match="another table has kept its metadata"):
        found(lake, table)
    forced = orphans.plan(look_of(lake, table, forced=True))  # whoever says so knows that it is gone
    assert isinstance(forced, Plan)
    assert [local_path(file.location) for file in forced.details["files"]] == [str(stray)]


def test_old_metadata_of_the_same_table_is_an_orphan(lake: Lake, table: str) -> None:
    folder = folder_of(lake, table)
    mine = json.dumps({"table-uuid": str(lake.load(table).metadata.table_uuid)}).encode()
    old = plant(folder, "metadata/00000-mine.metadata.json", 9 * DAY, mine)
    assert found(lake, table) == {str(old)}


def test_a_later_state_than_the_catalog_knows_is_no_orphan(lake: Lake, table: str) -> None:
    """The table may stand in another catalog too, and be ahead there."""
    folder, metadata = folder_of(lake, table), lake.load(table).metadata
    later = {"table-uuid": str(metadata.table_uuid), "last-updated-ms": metadata.last_updated_ms + 1}
    plant(folder, "metadata/00009-later.metadata.json", 9 * DAY, json.dumps(later).encode())
    plant(folder, "data/of-later.parquet", 9 * DAY)
    with pytest.raises(UsageError, match="a later state of the table"):
        found(lake, table)
    os.utime(folder / "metadata" / "00009-later.metadata.json")  # of a commit under way
    assert len(found(lake, table)) == 1
    make_old(folder / "metadata", 9 * DAY)
    with lake.load(table).transaction() as change:  # now it is the catalog that is ahead
        change.set_properties({"a": "b"})
    assert len(found(lake, table)) == 2


def test_links_are_not_followed_to_what_they_name(lake: Lake, table: str, tmp_path: Path) -> None:
    """By another name a file that is needed would look like one that is not."""
    folder = folder_of(lake, table)
    (folder / "alias").symlink_to(folder / "data")
    plant(tmp_path, "another/precious.parquet", 9 * DAY)
    (folder / "data" / "shared").symlink_to(tmp_path / "another")
    (folder / "data" / "one.parquet").symlink_to(tmp_path / "another" / "precious.parquet")
    assert found(lake, table) == set()


def test_clean_up_leaves_shared_files_alone(lake: Lake, table: str) -> None:
    folder = folder_of(lake, table)
    stray = plant(folder, "metadata/1-old.stats", 9 * DAY)
    planned = clean_up.plan(look_of(lake, table))
    assert isinstance(planned, Plan)
    assert [local_path(file.location) for file in planned.details["files"]] == [str(stray)]
    other = json.dumps({"table-uuid": "00000000-0000-0000-0000-000000000001"}).encode()
    theirs = plant(folder, "metadata/00000-x.metadata.json", 0, other)
    with pytest.raises(UsageError, match="another table has kept its metadata"):
        clean_up.plan(look_of(lake, table))
    theirs.unlink()
    with lake.load(table).transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    assert isinstance(clean_up.plan(look_of(lake, table)), Idle)


@pytest.mark.parametrize(
    ("location", "bare"),
    [
        ("s3a://bucket/a/b.parquet", "/a/b.parquet"),
        ("s3://other/a//b.parquet", "/a/b.parquet"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("/a/b", "/a/b"),
    ],
)
def test_paths_are_told_apart_without_scheme_and_authority(location: str, bare: str) -> None:
    from rookery.maintain.steps.referenced import bare as stripped

    assert stripped(location) == bare


def test_less_than_a_day_is_refused(lake: Lake, table: str) -> None:
    policy = replace(BRISK, orphans=CleanUp(timedelta(hours=23)))
    with pytest.raises(UsageError, match="at least 24 hours"):
        orphans.plan(look_of(lake, table, policy))


def test_a_table_whose_files_are_shared_is_left_alone(lake: Lake, table: str) -> None:
    plant(folder_of(lake, table), "data/stray", 9 * DAY)
    assert isinstance(orphans.plan(look_of(lake, table)), Plan)
    with lake.load(table).transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    planned = orphans.plan(look_of(lake, table))
    assert isinstance(planned, Idle)
    assert "gc.enabled" in planned.why
