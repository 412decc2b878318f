"""Orphan removal, Iceberg's part in it too: a folder has two names, a guest, or a fork elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import rookery
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.steps.step import Outcome
from tests.maintain.tending import DAY, by_step, maintained_of, make_old, missing_files, plant, rows_hash
from tests.safety.places import POLICY, REMOVE, Place

if TYPE_CHECKING:
    pass

ROWS = pa.table({"id": pa.array([7, 8], pa.int64())})


FORMS = ["{alias}/t", "file:{alias}/t", "file://{alias}/t", "{real}/../alias/t", "{real}/x/../t", "{real}//t"]


@pytest.mark.parametrize("form", FORMS)
def test_data_by_another_name_of_the_folder(place: Place, form: str) -> None:
    (place.real / "x").mkdir()
    data = form.format(real=place.real, alias=place.alias) + "/data"
    name = place.create(f"{place.real}/t", write_data_path=data)
    place.insert(name, 1, 2)
    place.insert(name, 3)
    make_old(place.real, 30 * DAY)
    stray = plant(place.real / "t", "data/stray.parquet", 9 * DAY)
    report = place.maintain(name)
    assert (report.outcome, report.files) == (Outcome.DONE, 1), report
    assert not stray.exists()


@pytest.mark.parametrize("objects", ["true", "false"])
@pytest.mark.parametrize("form", FORMS)
def test_data_outside_of_the_folder(place: Place, form: str, objects: str) -> None:
    """Iceberg is asked about each folder by itself: it leaves out what does not begin with the table's."""
    (place.real / "x").mkdir()
    data = form.format(real=place.real, alias=place.alias).removesuffix("t") + "outside/data"
    name = place.create(
        f"{place.real}/t", **{"write_data_path": data, "write_object-storage_enabled": objects}
    )
    place.insert(name, 1, 2)
    place.insert(name, 3)
    make_old(place.real, 30 * DAY)
    inside = plant(place.real / "t", "data/stray.parquet", 9 * DAY)
    outside = plant(place.real / "outside", "data/a/stray.parquet", 9 * DAY)
    own = replace(POLICY, orphans=replace(POLICY.orphans, outside=True))
    report = place.maintain(name, policy=own)
    assert (report.outcome, report.files) == (Outcome.DONE, 2), report
    assert not inside.exists()
    assert not outside.exists()


def test_data_of_two_tables_in_one_folder(place: Place) -> None:
    """As a path of the whole warehouse has it: what is inside goes, what is outside stays, which is said."""
    names = [
        place.create(f"{place.real}/t{number}", write_data_path=f"{base}/pool{end}")
        for number, (base, end) in enumerate([(place.real, ""), (place.alias, "/")])
    ]
    for name in names:
        place.insert(name, 1, 2)
    make_old(place.real, 30 * DAY)
    inside = plant(place.real / "t0", "metadata/stray.avro", 9 * DAY)
    outside = plant(place.real / "pool", "stray.parquet", 9 * DAY)
    own = replace(POLICY, orphans=replace(POLICY.orphans, outside=True))
    report = place.maintain(names[0], policy=own, forced=True)
    assert (report.outcome, report.files) == (Outcome.DONE, 1), report
    said = f"3 files under {place.real}/pool kept, which {names[0]} does not reference: {names[1]} writes to"
    assert said in report.why
    assert not inside.exists()
    assert outside.exists()
    for name in names:
        assert missing_files(place.lake, name) == []


@pytest.mark.parametrize("form", FORMS)
def test_a_location_that_was_set_anew_by_another_name(place: Place, form: str) -> None:
    (place.real / "x").mkdir()
    name = place.create(form.format(real=place.real, alias=place.alias))
    place.insert(name, 1, 2)
    place.spark.sql(f"ALTER TABLE {name} SET LOCATION '{place.real}/t'")
    place.insert(name, 3)
    make_old(place.real, 30 * DAY)
    stray = plant(place.real / "t", "data/stray.parquet", 9 * DAY)
    report = place.maintain(name)
    assert (report.outcome, report.files) == (Outcome.DONE, 1), report
    assert not stray.exists()


def test_a_name_that_leads_nowhere_any_more_is_refused(place: Place) -> None:
    name = place.create(f"{place.real}/t", write_data_path=f"{place.alias}/t/data")
    place.insert(name, 1, 2)
    make_old(place.real, 30 * DAY)
    files = {path for path in place.real.rglob("*") if path.is_file()}
    place.alias.unlink()
    plant(place.real / "t", "data/stray.parquet", 9 * DAY)
    maintained = maintained_of(place.lake, name, place.spark, POLICY, forced=True)
    report = by_step(maintain_table(maintained, only=[REMOVE]))[REMOVE]
    assert report.outcome is Outcome.FAILED
    assert "under another name" in (report.error or "")
    assert all(path.exists() for path in files)


@pytest.mark.parametrize("commits", [1, 2])
def test_a_fork_in_another_catalog(place: Place, tmp_path: Path, commits: int) -> None:
    """Nothing is taken from it; once it is sure that there is one, nothing is done at all without --yes."""
    name = place.create(f"{place.real}/t")
    place.insert(name, 1)
    other = SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}/other")
    other.create_namespace("db")
    fork = other.register_table("db.t", place.lake.load(name).metadata_location)
    for _ in range(commits):
        fork.append(ROWS)
    place.insert(name, 2)
    make_old(place.real, 30 * DAY)
    plant(place.real / "t", "data/stray.parquet", 9 * DAY)
    report = place.maintain(name)
    assert report.outcome is (Outcome.FAILED if commits > 1 else Outcome.DONE), report
    assert place.maintain(name, forced=True).outcome is not Outcome.FAILED
    rows = other.load_table("db.t").scan().to_arrow()["id"].to_pylist()
    assert sorted(rows) == [1, *sorted([7, 8] * commits)]


@pytest.mark.parametrize("inside", ["data", "location", "file"])
def test_a_guest_in_the_folder(place: Place, inside: str) -> None:
    name = place.create(f"{place.real}/t")
    place.insert(name, 1)
    if inside == "data":
        guest = place.create(f"{place.real}/g", write_data_path=f"{place.alias}/t/data/guest")
    elif inside == "location":
        guest = place.create(f"{place.alias}/t/guest", write_metadata_path=f"{place.real}/g")
    else:
        guest = place.create(f"{place.real}/g")
        path = plant(place.real / "t", "data/taken.parquet", 0, b"")
        place.spark.range(3).coalesce(1).write.parquet(f"{place.real}/rows")
        (made,) = (place.real / "rows").glob("*.parquet")
        made.rename(path)
        call = f"table => '{guest.partition('.')[2]}', source_table => '`parquet`.`{path}`'"
        place.spark.sql(f"CALL lake.system.add_files({call})")
    place.insert(guest, 5, 6)
    make_old(place.real, 30 * DAY)
    stray = plant(place.real / "t", "data/stray.parquet", 9 * DAY)
    before = rows_hash(place.spark, guest)
    report = place.maintain(name)
    assert (report.outcome, report.files) == (Outcome.DONE, 1), report
    assert not stray.exists()
    assert missing_files(place.lake, guest) == []
    assert rows_hash(place.spark, guest) == before


def test_tables_with_one_place_for_their_states(place: Place) -> None:
    kept = f"{place.real}/kept"
    names = [place.create(f"{place.real}/t{number}", rookery_location=kept) for number in range(2)]
    for name in names:
        place.insert(name, 1)
        rookery.analyze(place.spark, name, lake=place.lake)
    for name in names * 2:
        loaded, store = place.lake.open(name)
        uuid_ = str(loaded.table.metadata.table_uuid)
        assert store.collect_garbage(uuid_, loaded.snapshots.keys(), grace=-1) == []
        report = rookery.analyze(place.spark, name, lake=place.lake)
        assert report.files_read == 0
