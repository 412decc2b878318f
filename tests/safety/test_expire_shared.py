"""Snapshots whose files others need: by another name, in another table, or in another catalog."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from rookery.io import local_path
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.steps.step import Outcome
from tests.maintain.tending import BRISK, DAY, by_step, maintained_of, missing_files
from tests.safety.places import EXPIRE, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.table({"id": pa.array([7, 8], pa.int64())})


def test_a_file_that_stays_by_another_name_does_not_expire(place: Place) -> None:
    """Iceberg would delete it: it compares names alone."""
    name = place.create(f"{place.real}/t")
    place.spark.range(3).coalesce(1).write.parquet(f"{place.real}/rows")
    (made,) = (place.real / "rows").glob("*.parquet")
    for base in (place.real, place.alias):
        call = f"'{name.partition('.')[2]}', '`parquet`.`{base}/rows/{made.name}`'"
        if base is place.alias:
            place.spark.sql(f"DELETE FROM {name}")
        place.spark.sql(f"CALL lake.system.add_files({call}, check_duplicate_files => false)")
    place.insert(name, 9)
    place.insert(name, 10)
    report = place.maintain(name, EXPIRE, BRISK)
    assert report.outcome is Outcome.FAILED
    assert "under another name" in (report.error or "")


@pytest.mark.parametrize("by", ["registered", "added"])
@pytest.mark.parametrize("forced", [False, True])
def test_what_another_table_needs_does_not_expire(place: Place, by: str, forced: bool) -> None:
    """Of the same catalog, with the same metadata or with data files of this one."""
    name = place.create(f"{place.real}/t")
    place.insert(name, 1, 2)
    other = name + "_other"
    if by == "registered":
        current = place.lake.load(name).metadata_location
        place.spark.sql(f"CALL lake.system.register_table('{other.partition('.')[2]}', '{current}')")
    else:
        place.spark.sql(f"CREATE TABLE {other} (id bigint) USING iceberg LOCATION '{place.real}/other'")
        (data,) = {Path(task.file.file_path).parent for task in place.lake.load(name).scan().plan_files()}
        source = f"`parquet`.`{str(data).replace(str(place.real), str(place.alias))}`"
        place.spark.sql(f"CALL lake.system.add_files('{other.partition('.')[2]}', '{source}')")
    for _ in range(2):
        place.spark.sql(f"INSERT OVERWRITE {name} VALUES (3)")
    report = place.maintain(name, EXPIRE, BRISK, forced=forced)
    assert report.outcome is Outcome.FAILED
    assert f"{other} needs it" in (report.error or "")
    assert missing_files(place.lake, other) == []
    place.spark.sql(f"DROP TABLE {other}")
    assert place.maintain(name, EXPIRE, BRISK).outcome is Outcome.DONE


@pytest.mark.parametrize("late", [False, True], ids=["now", "after 91 days"])
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("commits", [1, 2])
def test_what_a_fork_needs_does_not_expire(
    place: Place, tmp_path: Path, commits: int, forced: bool, late: bool
) -> None:
    """Whether it is sure that there is one or not, and however long it has made no commit."""
    name = place.create(f"{place.real}/t", **{"write_metadata_previous-versions-max": "2"})
    place.insert(name, 1, 2)
    other = SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}/other")
    other.create_namespace("db")
    fork = other.register_table("db.t", place.lake.load(name).metadata_location)
    for _ in range(commits):
        fork.append(ROWS)
    for number in range(4):
        place.spark.sql(f"INSERT OVERWRITE {name} VALUES ({number})")
    before = place.lake.load(name).metadata.snapshots
    clock = (lambda: time.time() + 91 * DAY) if late else time.time
    maintained = maintained_of(place.lake, name, place.spark, BRISK, forced=forced, clock=clock)
    report = by_step(maintain_table(maintained, only=[EXPIRE]))[EXPIRE]
    left = {each.snapshot_id for each in place.lake.load(name).metadata.snapshots}
    assert before[0].snapshot_id in left
    if commits == 1 or forced or late:  # what it does not name goes
        assert (report.outcome, "1 snapshot kept, referenced by" in report.why) == (Outcome.DONE, True), (
            report
        )
        assert len(left) < len(before)
    else:
        assert report.outcome is Outcome.FAILED
    rows = other.load_table("db.t").scan().to_arrow()["id"].to_pylist()
    assert sorted(rows) == sorted([1, 2] + [7, 8] * commits)
    assert missing_files(place.lake, name) == []


def test_a_file_of_snapshots_that_a_fork_has_let_go(place: Place, tmp_path: Path) -> None:
    name = place.create(f"{place.real}/t")
    place.insert(name, 1)
    place.insert(name, 2)
    other = SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}/other")
    other.create_namespace("db")
    fork = other.register_table("db.t", place.lake.load(name).metadata_location)
    fork.append(ROWS)
    for old in fork.metadata.snapshots[:2]:
        fork.maintenance.expire_snapshots().by_id(old.snapshot_id).commit()
    for entry in fork.metadata.metadata_log[-3:]:  # as write.metadata.delete-after-commit does
        if entry.metadata_file != place.lake.load(name).metadata_location:
            Path(local_path(entry.metadata_file)).unlink()
    for number in range(3):
        place.spark.sql(f"INSERT OVERWRITE {name} VALUES ({number})")
    report = place.maintain(name, EXPIRE, BRISK, forced=True)
    assert report.outcome is Outcome.FAILED, report
    assert "which the catalog does not know, references it" in (report.error or "")
    assert sorted(other.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [1, 2, 7, 8]


def test_what_was_checked_is_what_expires(place: Place) -> None:
    """Another writer commits while Spark starts: the snapshot that it pushes out of the last two stays."""
    name, other = place.create(f"{place.real}/a"), place.create(f"{place.real}/b")
    place.insert(name, 1)
    place.spark.sql(f"INSERT OVERWRITE {name} VALUES (2)")
    file = place.spark.sql(f"SELECT file_path FROM {name}.files").first()[0]
    place.spark.sql(f"CALL lake.system.add_files('{other.partition('.')[2]}', '`parquet`.`{file}`')")
    place.spark.sql(f"INSERT OVERWRITE {name} VALUES (3)")
    started: list[int] = []

    def starting() -> SparkSession:
        if not started:
            started.append(1)
            place.spark.sql(f"INSERT OVERWRITE {name} VALUES (4)")
        return place.spark

    maintained = replace(maintained_of(place.lake, name, place.spark, BRISK), spark=starting)
    report = by_step(maintain_table(maintained, only=[EXPIRE]))[EXPIRE]
    assert report.outcome is Outcome.DONE, report
    assert missing_files(place.lake, other) == []
    assert len(place.lake.load(name).metadata.snapshots) == 3
    assert (
        place.maintain(name, EXPIRE, BRISK).outcome is Outcome.FAILED
    )  # the next plan sees what the other needs


def test_what_another_table_takes_over_meanwhile_does_not_expire(place: Place) -> None:
    """The catalog's tables were loaded for the plan; Spark then takes a minute to start."""
    name, other = place.create(f"{place.real}/a"), place.create(f"{place.real}/b")
    place.insert(name, 1)
    file = place.spark.sql(f"SELECT file_path FROM {name}.files").first()[0]
    for number in (2, 3):
        place.spark.sql(f"INSERT OVERWRITE {name} VALUES ({number})")
    clock = [0.0]

    def starting() -> SparkSession:
        if not clock[0]:
            clock[0] = 60.0
            place.spark.sql(f"CALL lake.system.add_files('{other.partition('.')[2]}', '`parquet`.`{file}`')")
        return place.spark

    other_tables = place.lake.other_tables()
    other_tables._timer = lambda: clock[0]
    maintained = maintained_of(place.lake, name, place.spark, BRISK)
    maintained = replace(maintained, spark=starting, other_tables=other_tables)
    report = by_step(maintain_table(maintained, only=[EXPIRE]))[EXPIRE]
    assert report.outcome is Outcome.FAILED, report
    assert f"{other} needs it" in (report.error or "")
    assert missing_files(place.lake, other) == []


@pytest.mark.parametrize("forced", [False, True])
def test_a_table_with_a_damaged_manifest_keeps_what_it_needs(place: Place, forced: bool) -> None:
    """The manifest is of an old snapshot alone; the table is read as well as ever."""
    name, other = place.create(f"{place.real}/a"), place.create(f"{place.real}/b")
    place.insert(name, 1, 2)
    place.insert(other, 99)
    (old,) = (row[0] for row in place.spark.sql(f"SELECT path FROM {other}.manifests").collect())
    place.spark.sql(f"INSERT OVERWRITE {other} VALUES (100)")
    place.spark.sql(
        f"CALL lake.system.add_files('{other.partition('.')[2]}', '`parquet`.`{place.real}/a/data`')"
    )
    path = Path(local_path(old))
    path.write_bytes(b"XXXX" + path.read_bytes()[4:])
    for number in range(3):
        place.spark.sql(f"INSERT OVERWRITE {name} VALUES ({number})")
    report = place.maintain(name, EXPIRE, BRISK, forced=forced)
    assert report.outcome is Outcome.FAILED, report
    assert f"{other} needs it" in (report.error or "")
    place.spark.catalog.refreshTable(other)
    assert sorted(row[0] for row in place.spark.table(other).collect()) == [1, 2, 100]


def test_a_fork_that_cannot_be_asked(place: Place, tmp_path: Path) -> None:
    name = place.create(f"{place.real}/t")
    place.insert(name, 1)
    other = SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}/other")
    other.create_namespace("db")
    fork = other.register_table("db.t", place.lake.load(name).metadata_location)
    known = set((place.real / "t" / "metadata").glob("*-m*.avro"))
    fork.append(ROWS)
    (added,) = set((place.real / "t" / "metadata").glob("*-m*.avro")) - known
    added.write_bytes(b"XXXX" + added.read_bytes()[4:])
    for number in range(4):
        place.spark.sql(f"INSERT OVERWRITE {name} VALUES ({number})")
    report = place.maintain(name, EXPIRE, BRISK)
    assert report.outcome is Outcome.FAILED, report
    assert "cannot be read in full" in (report.error or "")
    assert place.maintain(name, EXPIRE, BRISK, forced=True).outcome is Outcome.DONE
