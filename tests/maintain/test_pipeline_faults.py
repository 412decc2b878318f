"""What goes wrong stays where it is: the table, the step, and those that rest upon it."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from datetime import time as clock_time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from rookery.maintain.pipeline import NAMES, maintain_table, steps_named
from rookery.maintain.policies.policy import Manifests, Snapshots
from rookery.maintain.policies.times import QuietHours
from rookery.maintain.steps.step import Outcome, StepReport, VerificationError
from rookery.maintain.steps.verify import same_rows
from rookery.maintain.survey import survey
from rookery.model import UsageError
from tests.interop.java import IcebergJava
from tests.lakehouse import NewTable, append_ids
from tests.maintain.tending import BRISK, by_step, maintained_of, missing_files, rows_hash, view_of

COLUMNS = "id bigint, noise string"


append = partial(append_ids, columns=("sha2(cast(id AS string), 512) AS noise",))


def small_files(spark: SparkSession, table: str, files: int = 5, rows: int = 10) -> None:
    for number in range(files):
        append(spark, table, number * rows, rows)


def snapshot_of(lake: Lake, table: str) -> int | None:
    return lake.load(table).metadata.current_snapshot_id


Mount = Callable[[str], Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mount a small file system of its own; who may not do that skips the test."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    made = []

    def make(options: str) -> Path:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip("file systems cannot be mounted here")
        made.append(folder)
        return folder

    yield make
    for each in made:
        # Lazily: Java has let files that it could not fill stay open.
        subprocess.run(["umount", "--lazy", str(each)], check=True)


def assert_failed_alone(lake: Lake, table: str, steps: dict[str, StepReport], before: int | None) -> str:
    """See that compaction has failed, its dependents were stopped, the others taken; return the error."""
    failed = steps["rewrite data files"]
    assert failed.outcome is Outcome.FAILED
    assert failed.error is not None
    assert failed.hint is not None
    assert "\n" not in failed.error
    stopped = steps["rewrite deletes"], steps["rewrite manifests"]
    assert {step.outcome for step in stopped} == {Outcome.STOPPED}
    assert "skipped because 'rewrite data files'" in stopped[0].why
    assert steps["clean up"].outcome is not Outcome.STOPPED
    assert snapshot_of(lake, table) == before
    assert missing_files(lake, table) == []
    return failed.error


def test_a_full_disk_is_said_and_nothing_is_half_done(
    spark: SparkSession, lake: Lake, new_table: NewTable, mount: Mount
) -> None:
    table = new_table(COLUMNS)
    small_files(spark, table, 5, 2_000)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.data.path' = 'file://{mount('size=256k')}')")
    before, rows = snapshot_of(lake, table), rows_hash(spark, table)
    run = maintain_table(maintained_of(lake, table, spark))
    assert run.outcome is Outcome.FAILED
    assert "No space left on device" in assert_failed_alone(lake, table, by_step(run), before)
    assert rows_hash(spark, table) == rows
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('write.data.path')")
    assert maintain_table(maintained_of(lake, table, spark)).outcome is Outcome.DONE
    assert rows_hash(spark, table) == rows


def test_a_folder_that_may_not_be_written_is_said(
    spark: SparkSession, lake: Lake, new_table: NewTable, mount: Mount
) -> None:
    table = new_table(COLUMNS)
    small_files(spark, table)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.data.path' = 'file://{mount('ro')}')")
    before = snapshot_of(lake, table)
    run = maintain_table(maintained_of(lake, table, spark))
    error = assert_failed_alone(lake, table, by_step(run), before)
    assert "rewrite_data_files" in error


def test_a_step_that_others_overtake_is_planned_anew(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS, **{"write.delete.granularity": "file"})
    append(spark, table, 0, 10)
    append(spark, table, 10, 10)
    spark.sql(f"DELETE FROM {table} WHERE id IN (1, 11)")
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    )
    maintained = maintained_of(lake, table, spark)
    overtaken = iter([True])

    def load() -> Any:
        found = maintained.load()
        if next(overtaken, False):
            append(spark, table, 100, 1)  # after the view, before it runs
        return found

    run = maintain_table(replace(maintained, load=load), only=["rewrite deletes"])
    assert run.steps[0].outcome is Outcome.DONE, run.steps[0].error
    assert run.steps[0].attempts == 2
    assert spark.table(f"{table}.delete_files").count() == 0
    assert spark.table(table).count() == 19


def test_a_writer_that_never_rests(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    small_files(spark, table, 6)
    stop, wrote, trouble = threading.Event(), [60], []

    def write() -> None:
        while not stop.is_set():
            try:
                append(spark, table, wrote[0], 1)
                wrote[0] += 1
            except Exception as error:  # noqa: BLE001  # said below
                trouble.append(error)
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        run = maintain_table(
            maintained_of(lake, table, spark), only=["rewrite data files", "rewrite manifests"]
        )
    finally:
        stop.set()
        writer.join()
    assert trouble == []
    assert run.outcome is Outcome.DONE, run.steps
    assert spark.table(table).count() == wrote[0]


def test_a_table_that_vanishes_fails_by_itself(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    small_files(spark, table)
    asked = []

    def stop() -> bool:
        asked.append(1)
        if len(asked) == 3:
            spark.sql(f"DROP TABLE {table}")
        return False

    run = maintain_table(maintained_of(lake, table, spark), stop=stop)
    assert run.outcome is Outcome.FAILED
    assert [step.error for step in run.steps[:2]] == [None, None]
    assert run.steps[2].error is not None
    assert "there is no table" in run.steps[2].error


def test_rows_that_change_under_a_rewrite_are_found_out(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    table = new_table(COLUMNS)
    append(spark, table, 0, 10)
    append(spark, table, 10, 10)
    before = view_of(lake, table)
    java: Any = IcebergJava(spark).table(table)
    copy_of: Any = spark._jvm.org.apache.iceberg.relocated.com.google.common.collect.ImmutableList.copyOf  # type: ignore[union-attr]
    file = next(iter(copy_of(java.newScan().planFiles()))).file()
    java.newRewrite().deleteFile(file).commit()  # what no rewrite may do
    maintained = maintained_of(lake, table, spark)
    with pytest.raises(VerificationError, match="20 rows before, 10 rows after") as caught:
        same_rows(replace(before, maintained=maintained), maintained.view(survey(*maintained.load())))
    assert before.survey.snapshot is not None
    assert (
        f"rollback_to_snapshot('{'.'.join(maintained.name.identifier)}', {before.survey.snapshot.id})"
        in str(caught.value.hint)
    )


def test_a_run_that_is_told_to_stop_stops_between_steps(lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    seen: list[StepReport] = []
    run = maintain_table(maintained_of(lake, table, None), stop=lambda: len(seen) >= 2, record=seen.append)
    assert [step.outcome for step in run.steps[:3]] == [
        Outcome.NOT_NEEDED,
        Outcome.NOT_NEEDED,
        Outcome.STOPPED,
    ]
    assert tuple(seen) == run.steps
    assert run.outcome is Outcome.STOPPED


def test_what_is_unwise_is_refused(lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    policy = replace(BRISK, snapshots=Snapshots(timedelta(0), 0))
    with pytest.raises(UsageError, match=r"snapshots\.keep-for") as caught:
        maintain_table(maintained_of(lake, table, None, policy))
    assert "--yes" in str(caught.value.hint)
    assert maintain_table(maintained_of(lake, table, None, policy, forced=True)).outcome is Outcome.NOT_NEEDED


def test_quiet_hours(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    table = new_table(COLUMNS)
    small_files(spark, table)
    hours = QuietHours(frozenset(range(7)), clock_time(8), clock_time(18))
    policy = replace(BRISK, quiet_hours=(hours,), manifests=Manifests(0))
    noon = datetime.fromtimestamp(time.time(), UTC).replace(hour=12).timestamp()
    run = maintain_table(maintained_of(lake, table, None, policy, clock=lambda: noon))
    assert run.outcome is Outcome.NOT_NEEDED
    assert run.steps == ()
    assert run.note is not None
    assert "quiet hours" in run.note
    planned = maintain_table(maintained_of(lake, table, None, policy, clock=lambda: noon), dry_run=True)
    assert planned.outcome is Outcome.PLANNED


def test_a_step_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="there is no step 'dance'") as caught:
        steps_named(["dance"])
    assert all(name in str(caught.value.hint) for name in NAMES)
