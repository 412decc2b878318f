"""Which files are orphans: old, in the table's folder, and unreferenced at all; told without Spark."""

from __future__ import annotations

import gzip
import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rookery.api.lake import Lake
from rookery.io import local_path
from rookery.maintain.policies.policy import Orphans, Policy
from rookery.maintain.steps import clean_up, orphans, removal
from rookery.maintain.steps.step import Idle, Plan, Ran
from rookery.maintain.survey import survey
from rookery.model import UsageError
from rookery.sidecar import Store
from rookery.sidecar.state import read_header
from tests.maintain.tending import BRISK, DAY, folder_of, maintained_of, make_old, plant, view_of
from tests.sidecar.builders import state

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
    planned = orphans.plan(view_of(lake, table))
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
    with pytest.raises(UsageError, match="another table has metadata"):
        found(lake, table)
    forced = orphans.plan(view_of(lake, table, forced=True))  # whoever says so knows that it is gone
    assert isinstance(forced, Plan)
    assert [local_path(file.location) for file in forced.details["files"]] == [str(stray)]


def test_metadata_files_that_have_left_the_log_are_orphans(lake: Lake, table: str) -> None:
    """They are known to be the table's own past: each names those before it."""
    with lake.load(table).transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "1"})
    for number in range(4):
        with lake.load(table).transaction() as change:
            change.set_properties({"number": str(number)})
    folder, metadata = folder_of(lake, table), lake.load(table).metadata
    make_old(folder, 9 * DAY)
    names = [lake.load(table).metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)]
    there = {str(path) for path in (folder / "metadata").glob("*.metadata.json")}
    assert found(lake, table) == there - set(map(local_path, names))
    assert len(there) == 9


def states(lake: Lake, table: str, log: list[str], updated: int, **more: object) -> bytes:
    """A metadata file of the table that its catalog does not know."""
    uuid_ = str(lake.load(table).metadata.table_uuid)
    entries = [{"metadata-file": name, "timestamp-ms": 1} for name in log]
    text = {"table-uuid": uuid_, "last-updated-ms": updated, "metadata-log": entries, **more}
    return json.dumps(text).encode()


@pytest.mark.parametrize("log", [[], ["/elsewhere/00003-theirs.metadata.json"]], ids=["alone", "second"])
@pytest.mark.parametrize("age", [0, 9 * DAY], ids=["young", "old"])
def test_a_fork_of_the_table_is_refused(lake: Lake, table: str, log: list[str], age: float) -> None:
    """It stands in another catalog too; what this one knows of it is kept even with --yes."""
    folder, updated = folder_of(lake, table), lake.load(table).metadata.last_updated_ms
    theirs = plant(folder, "data/theirs.stats", 9 * DAY)
    with lake.load(table).transaction() as change:  # whichever is ahead
        change.set_properties({"a": "b"})
    file = states(lake, table, log, updated + 1, statistics=[{"statistics-path": f"file:{theirs}"}])
    plant(folder, "metadata/00004-theirs.metadata.json", age, file)
    stray = plant(folder, "data/stray.parquet", 9 * DAY)
    with pytest.raises(UsageError, match="its catalog does not know"):
        found(lake, table)
    forced = orphans.plan(view_of(lake, table, forced=True))
    assert isinstance(forced, Plan)
    assert [local_path(file.location) for file in forced.details["files"]] == [str(stray)]


def test_one_unknown_commit_keeps_what_may_have_come_after_it(lake: Lake, table: str) -> None:
    """It may have failed, or may have begun a fork that went on where it cannot be seen."""
    folder, loaded = folder_of(lake, table), lake.load(table)
    unknown = states(lake, table, [loaded.metadata_location], int(time.time() * 1000))
    plant(folder, "metadata/00004-unknown.metadata.json", 0, unknown)
    before = plant(folder, "data/before.parquet", 9 * DAY)
    after = plant(folder, "data/after.parquet", -DAY)
    in_a_month = replace(maintained_of(lake, table, None), now=lambda: time.time() + 30 * DAY)
    planned = orphans.plan(in_a_month.view(survey(*in_a_month.load())))
    assert isinstance(planned, Plan)
    assert [local_path(file.location) for file in planned.details["files"]] == [str(before)]
    assert "1 file left" in planned.why
    forced = replace(in_a_month, forced=True)
    planned = orphans.plan(forced.view(survey(*forced.load())))
    assert isinstance(planned, Plan)
    assert {local_path(file.location) for file in planned.details["files"]} == {str(before), str(after)}


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
    planned = clean_up.plan(view_of(lake, table))
    assert isinstance(planned, Plan)
    assert [local_path(file.location) for file in planned.details["files"]] == [str(stray)]
    other = json.dumps({"table-uuid": "00000000-0000-0000-0000-000000000001"}).encode()
    theirs = plant(folder, "metadata/00000-x.metadata.json", 0, other)
    with pytest.raises(UsageError, match="another table has metadata"):
        clean_up.plan(view_of(lake, table))
    theirs.unlink()
    with lake.load(table).transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    assert isinstance(clean_up.plan(view_of(lake, table)), Idle)


def metadata_json(lake: Lake, name: str) -> bytes:
    return Path(local_path(lake.load(name).metadata_location)).read_bytes()


@pytest.fixture
def guest(lake: Lake, table: str, tmp_path: Path) -> tuple[bytes, set[str]]:
    """The metadata of a table that no catalog knows, and its data files in the folder of another."""
    folder = folder_of(lake, table)
    made = lake.catalog.create_table(
        "orphans.guest",
        ROWS.schema,
        location=f"file://{tmp_path}/guest",
        properties={"write.data.path": f"file://{folder}/of-guest"},
    )
    made.append(ROWS)
    make_old(folder, 30 * DAY)
    text = metadata_json(lake, "orphans.guest")
    lake.catalog.drop_table("orphans.guest")
    parsed = json.loads(text)  # as if it wrote here by habit, and not by its properties
    parsed["properties"] = {}
    return json.dumps(parsed).encode(), {str(path) for path in (folder / "of-guest").rglob("*.parquet")}


def test_a_guest_whose_metadata_is_called_like_one_of_ours_that_is_gone(
    lake: Lake, table: str, guest: tuple[bytes, set[str]]
) -> None:
    """A name alone makes no metadata file the table's own: as its own it would protect nothing."""
    folder = folder_of(lake, table)
    gone = Path(local_path(lake.load(table).metadata.metadata_log[0].metadata_file))
    gone.unlink()
    plant(folder, f"below/metadata/{gone.name}", 30 * DAY, guest[0])
    stray = plant(folder, "data/stray.parquet", 9 * DAY)
    assert found(lake, table) == {str(stray)}
    assert guest[1]


def test_a_guest_of_the_first_version_without_a_uuid(
    lake: Lake, table: str, guest: tuple[bytes, set[str]]
) -> None:
    parsed = json.loads(guest[0])
    del parsed["table-uuid"]
    folder = folder_of(lake, table)
    plant(folder, "below/metadata/v1.metadata.json", 30 * DAY, json.dumps(parsed).encode())
    stray = plant(folder, "data/stray.parquet", 9 * DAY)
    assert found(lake, table) == {str(stray)}


@pytest.mark.parametrize("damage", [b"\x1f\x8b\x08\x00" + bytes(40), b"{", b"[]", b"{}", b"\xff\xfe"])
def test_a_damaged_metadata_file_is_nobodys(lake: Lake, table: str, damage: bytes) -> None:
    folder = folder_of(lake, table)
    damaged = plant(folder, "metadata/00009-x.gz.metadata.json", 9 * DAY, damage)
    assert found(lake, table) == {str(damaged)}


def test_a_table_that_cannot_be_loaded_takes_no_protection_from_others(lake: Lake, table: str) -> None:
    folder = folder_of(lake, table)
    properties = {"write.data.path": f"file://{folder}/of-healthy"}
    lake.catalog.create_table("orphans.healthy", ROWS.schema, properties=properties).append(ROWS)
    broken = lake.catalog.create_table("orphans.broken", ROWS.schema)
    make_old(folder, 30 * DAY)
    stray = plant(folder, "data/stray.parquet", 9 * DAY)
    try:
        assert found(lake, table) == {str(stray)}
        Path(local_path(broken.metadata_location)).unlink()
        with pytest.raises(UsageError, match="another table of the catalog cannot be read"):
            found(lake, table)
        forced = orphans.plan(view_of(lake, table, forced=True))
        assert isinstance(forced, Plan)
        assert [local_path(file.location) for file in forced.details["files"]] == [str(stray)]
    finally:
        lake.catalog.drop_table("orphans.broken")
        lake.catalog.drop_table("orphans.healthy")


def test_a_file_that_another_table_names_by_a_link(lake: Lake, table: str, tmp_path: Path) -> None:
    """Also with a table of the third version in the catalog, whose metadata PyIceberg does not write."""
    folder = folder_of(lake, table)
    taken = folder / "data" / "taken.parquet"
    pq.write_table(ROWS, taken)
    link = tmp_path / "elsewhere" / "link.parquet"
    link.parent.mkdir()
    link.symlink_to(taken)
    other = lake.catalog.create_table("orphans.linking", ROWS.schema)
    other.add_files([f"file://{link}"])
    third = lake.catalog.create_table("orphans.third", ROWS.schema, properties={"format-version": "2"})
    path = Path(local_path(third.metadata_location))
    path.write_text(json.dumps({**json.loads(path.read_text()), "format-version": 3, "next-row-id": 0}))
    make_old(folder, 30 * DAY)
    stray = plant(folder, "data/stray.parquet", 9 * DAY)
    try:
        assert found(lake, table) == {str(stray)}
    finally:
        lake.catalog.drop_table("orphans.linking")
        lake.catalog.drop_table("orphans.third")


def test_a_trash_in_the_folder_of_another_table_is_refused(lake: Lake, table: str) -> None:
    other = lake.catalog.create_table("orphans.other", ROWS.schema)
    trash = f"{local_path(other.location())}/data/trash"
    policy = replace(BRISK, orphans=Orphans(timedelta(days=2), trash=trash))
    try:
        with pytest.raises(UsageError, match=r"is in the folder of lake\.orphans\.other"):
            orphans.plan(view_of(lake, table, policy))
    finally:
        lake.catalog.drop_table("orphans.other")


def test_a_trash_is_emptied_where_orphans_are_kept(lake: Lake, table: str, tmp_path: Path) -> None:
    policy = replace(BRISK, orphans=Orphans(timedelta(days=2), trash=str(tmp_path / "trash")))
    plant(folder_of(lake, table), "data/stray.parquet", 9 * DAY)
    assert run(lake, table, policy).files == 1
    policy = replace(policy, orphans=replace(policy.orphans, older_than=None))
    assert isinstance(orphans.plan(view_of(lake, table, policy)), Idle)
    run(lake, table, policy, at=8 * DAY)
    assert not [path for path in (tmp_path / "trash").rglob("*") if path.is_file()]


def test_less_than_a_day_is_refused(lake: Lake, table: str) -> None:
    policy = replace(BRISK, orphans=Orphans(timedelta(hours=23)))
    with pytest.raises(UsageError, match="at least 24 hours"):
        orphans.plan(view_of(lake, table, policy))


def test_a_table_whose_files_are_shared_is_left_alone(lake: Lake, table: str) -> None:
    plant(folder_of(lake, table), "data/stray", 9 * DAY)
    assert isinstance(orphans.plan(view_of(lake, table)), Plan)
    with lake.load(table).transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    planned = orphans.plan(view_of(lake, table))
    assert isinstance(planned, Idle)
    assert "gc.enabled" in planned.why


def run(lake: Lake, table: str, policy: Policy, at: float = 0.0, *, forced: bool = False) -> Ran:
    """Do what the step does, but for asking Iceberg as well; *at* so many seconds from now."""
    maintained = replace(
        maintained_of(lake, table, None, policy, forced=forced), now=lambda: time.time() + at
    )
    view = maintained.view(survey(*maintained.load()))
    planned = orphans.plan(view)
    assert isinstance(planned, Plan), planned
    removed = orphans.take_away(maintained, planned.details["files"])
    removal.empty(planned.details["expired"], view.survey.store)
    return Ran(len(removed), details={"planned": planned})


def test_the_trash_keeps_files_for_a_time(lake: Lake, table: str, tmp_path: Path) -> None:
    folder, trash = folder_of(lake, table), tmp_path / "trash"
    policy = replace(BRISK, orphans=Orphans(timedelta(days=2), trash=str(trash)))
    plant(folder, "data/a/stray.parquet", 9 * DAY, b"first")
    plant(folder, "data/#odd? name\n", 9 * DAY)
    assert run(lake, table, policy).files == 2
    plant(folder, "data/a/stray.parquet", 9 * DAY, b"second")
    assert run(lake, table, policy).files == 1
    own = trash / str(lake.load(table).metadata.table_uuid)
    assert sorted(path.read_bytes() for path in own.glob("*/data/a/stray.parquet")) == [b"first", b"second"]
    assert len(list(own.glob("*/data/#odd? name\n"))) == 1
    theirs = plant(own, "not-a-run/precious", 99 * DAY)
    stray = plant(folder, "data/late.parquet", -8 * DAY + 3 * DAY)
    run(lake, table, policy, at=8 * DAY)
    assert not stray.exists()
    left = {path.name for path in trash.rglob("*") if path.is_file()}
    assert left == {"precious", "late.parquet"}
    assert theirs.exists()
    assert len(list(own.iterdir())) == 2  # folders of runs go with the last of their files
    theirs.unlink()
    theirs.parent.rmdir()
    store = view_of(lake, table, policy).survey.store
    removal.empty(removal.Trash(str(own), 0.0).expired(store, time.time() + 99 * DAY), store)
    assert list(own.iterdir()) == []  # the trash itself stays


def test_a_trash_in_the_folder_is_refused(lake: Lake, table: str) -> None:
    policy = replace(BRISK, orphans=Orphans(timedelta(days=2), trash=f"{folder_of(lake, table)}/data/trash"))
    with pytest.raises(UsageError, match="is in the folder"):
        orphans.plan(view_of(lake, table, policy))


@pytest.mark.parametrize("kind", ["files", "bytes"])
def test_no_more_than_a_share_of_the_folder_goes(lake: Lake, table: str, kind: str) -> None:
    folder = folder_of(lake, table)
    there = sum(1 for path in folder.rglob("*") if path.is_file())
    if kind == "files":
        for number in range(there + 1):
            plant(folder, f"data/{number}.parquet", 9 * DAY, b"")
    else:
        plant(folder, "data/large.parquet", 9 * DAY, b"x" * (1 << 20))
    with pytest.raises(UsageError, match=r"more than orphans\.max-share"):
        orphans.plan(view_of(lake, table))
    assert isinstance(orphans.plan(view_of(lake, table, forced=True)), Plan)
    generous = replace(BRISK, orphans=Orphans(timedelta(days=2), max_share=1))
    assert isinstance(orphans.plan(view_of(lake, table, generous)), Plan)


def test_what_is_named_meanwhile_is_not_removed(lake: Lake, table: str) -> None:
    """Planned as an orphan, then added to the table, or written anew, before it is removed."""
    folder = folder_of(lake, table)
    added, changed, gone = (plant(folder, f"data/{name}.parquet", 9 * DAY) for name in ("a", "b", "c"))
    pq.write_table(ROWS, added)
    os.utime(added, (1, 1))
    maintained = maintained_of(lake, table, None)
    planned = orphans.plan(view_of(lake, table))
    assert isinstance(planned, Plan)
    assert planned.files == 3
    lake.load(table).add_files([f"file:{folder}/../{folder.name}/data/a.parquet"])
    changed.write_bytes(b"anew")
    assert [file.name for file in orphans.take_away(maintained, planned.details["files"])] == ["c.parquet"]
    assert added.exists()
    assert changed.exists()
    assert not gone.exists()


def test_what_another_table_takes_over_meanwhile_is_not_removed(lake: Lake, table: str) -> None:
    """The catalog's tables were loaded before, as for an earlier table of the same run."""
    stray = folder_of(lake, table) / "data" / "rescued.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), stray)
    os.utime(stray, (time.time() - 9 * DAY,) * 2)
    clock = [0.0]
    other_tables = lake.other_tables()
    other_tables._timer = lambda: clock[0]
    maintained = replace(maintained_of(lake, table, None), other_tables=other_tables)
    planned = orphans.plan(maintained.view(survey(*maintained.load())))
    assert isinstance(planned, Plan)
    assert [file.name for file in planned.details["files"]] == [stray.name]
    other = lake.catalog.create_table(f"orphans.r{uuid.uuid4().hex}", pa.schema([("id", pa.int64())]))
    other.add_files([f"file://{stray}"])
    clock[0] = 60.0
    assert orphans.take_away(maintained, planned.details["files"]) == []
    assert stray.exists()


def test_a_catalog_that_cannot_be_asked_is_refused(lake: Lake, table: str) -> None:
    """One table of it is broken: it may lie anywhere, in this folder too."""
    plant(folder_of(lake, table), "data/stray", 9 * DAY)
    broken = lake.catalog.create_table("orphans.broken", ROWS.schema)
    Path(local_path(broken.metadata_location)).write_text("{")
    try:
        with pytest.raises(UsageError, match="cannot be read"):
            orphans.plan(view_of(lake, table))
        assert isinstance(orphans.plan(view_of(lake, table, forced=True)), Plan)
    finally:
        lake.catalog.drop_table("orphans.broken")


def test_a_table_that_lacks_files_is_left_alone(lake: Lake, table: str) -> None:
    folder = folder_of(lake, table)
    plant(folder, "data/stray", 9 * DAY)
    next(iter(sorted((folder / "data").rglob("*.parquet")))).unlink()
    with pytest.raises(UsageError, match="cannot be found"):
        orphans.plan(view_of(lake, table))


def test_states_of_another_table_are_not_garbage(tmp_path: Path) -> None:
    """Two tables with one `rookery.location`, even of the same snapshot ids; what cannot be read is kept."""
    store = Store(str(tmp_path), {})
    for uuid_ in ("one", "two"):
        for snapshot in (1, 2, 2, 3):
            made = state(snapshot_id=snapshot, sequence_number=snapshot)
            store.write_state(replace(made, header=replace(made.header, table_uuid=uuid_)))
    gone = store.garbage("one", [3], grace=-1)
    assert len(gone) == 3
    assert {read_header(store.path(name)).table_uuid for name in gone} == {"one"}
    for name in store.names("state-", ".puffin"):
        Path(store.path(name)).write_bytes(b"damaged")
    assert store.garbage("one", [], grace=-1) == []
