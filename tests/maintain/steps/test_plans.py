"""What steps plan by a survey, a policy and the time: no Spark, and no catalog once the survey is made."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.api.lake import Lake
from rookery.io import local_path
from rookery.maintain.pipeline import STEPS, maintain_table
from rookery.maintain.policies.policy import (
    DEFAULT,
    CleanUp,
    Compaction,
    Deletes,
    Manifests,
    Orphans,
    Policy,
    RunLimits,
    Snapshots,
    Statistics,
    Strategy,
    WantedIndex,
)
from rookery.maintain.steps import (
    clean_up,
    compact,
    expire,
    orphans,
    refresh,
    rewrite_deletes,
    rewrite_manifests,
)
from rookery.maintain.steps.listing import list_folders
from rookery.maintain.steps.other_tables import OtherTables
from rookery.maintain.steps.step import Idle, Outcome, Plan, PlanInput, Step
from rookery.maintain.survey import PUFFIN, Survey, survey
from rookery.model import StorageError, TableName, UsageError
from rookery.tables import FILE_SCHEMA
from rookery.tables.iceberg import IcebergTable
from tests.isolation import isolate
from tests.maintain.runs.small_site import ROWS, small_lake
from tests.maintain.tending import DAY, folder_of, maintained_of, plant

FILES = 5
NAME = "db.orders"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake whose table has five files, each of a commit and in a manifest of its own."""
    isolate(tmp_path, monkeypatch)
    lake = small_lake(tmp_path / "lake", "orders")
    for _ in range(FILES - 1):
        lake.load(NAME).append(ROWS)
    return lake


def alone() -> OtherTables:
    return OtherTables(lambda: (), lambda name: None)


def known(lake: Lake, policy: Policy = DEFAULT, *, days: float = 0.0, name: str = NAME) -> PlanInput:
    """What a step is given, so many days after the table was written."""
    found = survey(*lake.open(name))
    return PlanInput(survey=found, policy=policy, now=time.time() + days * DAY, other_tables=alone())


def planned(made: Plan | Idle) -> Plan:
    assert isinstance(made, Plan), made.why
    return made


def why_not(made: Plan | Idle) -> str:
    assert isinstance(made, Idle), made.why
    return made.why


def data_files(found: Survey) -> list[str]:
    return [local_path(path) for path in found.files["path"].to_pylist()]


class TestPure:
    @pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
    def test_no_catalog_and_no_clock(
        self, lake: Lake, tmp_path: Path, step: Step, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The catalog is gone and the clock fails; each step finds something to do all the same."""
        plant(folder_of(lake, NAME), "data/stray.parquet", 9 * DAY, b"1")
        plant(folder_of(lake, NAME), "metadata/1-old.stats", 9 * DAY)
        policy = replace(DEFAULT, snapshots=Snapshots(timedelta(days=1), 1), manifests=Manifests(1))
        view = known(lake, policy, days=2)
        view = replace(view, survey=replace(view.survey, deletes=deletes(view.survey, ["/gone.parquet"])))
        (tmp_path / "lake" / "catalog.db").unlink()
        lake.catalog.engine.dispose()  # type: ignore[attr-defined]
        for clock in ("time", "time_ns"):
            monkeypatch.delattr(time, clock)
        made = planned(step.plan(view))
        assert made.files > 0
        assert step.plan(replace(view)) == made

    def test_status_is_told_by_the_same_plans(self, lake: Lake) -> None:
        why = planned(compact.plan(known(lake))).why
        assert why in lake.status(NAME).tables[0].breaches


class TestExpire:
    POLICY = replace(DEFAULT, snapshots=Snapshots(timedelta(days=5), 2))

    def test_by_the_time(self, lake: Lake) -> None:
        assert why_not(expire.plan(known(lake, self.POLICY, days=4.9))) == (
            "no snapshot of 5 is due to expire"
        )
        made = planned(expire.plan(known(lake, self.POLICY, days=5.1)))
        assert made.why == "3 snapshots due to expire (the last 2 stay)"
        history = [entry.snapshot_id for entry in lake.load(NAME).history()]
        assert made.details["snapshots"] == tuple(history[:3])
        assert made.details["kinds"] == {
            **dict.fromkeys(("data", "position", "equality", "manifests", "statistics"), 0),
            "lists": 3,  # appended files live on in the snapshots that stay
        }

    def test_what_is_kept(self, lake: Lake) -> None:
        for_ever = replace(DEFAULT, snapshots=Snapshots(None))
        assert why_not(expire.plan(known(lake, for_ever, days=999))) == "the policy keeps all snapshots"
        with lake.load(NAME).transaction() as change:
            change.set_properties({"gc.enabled": "false"})
        assert "gc.enabled" in why_not(expire.plan(known(lake, self.POLICY, days=999)))

    def test_another_table_that_needs_a_file(self, lake: Lake) -> None:
        """It has the files of the snapshots that would go."""
        first = data_files(known(lake).survey)
        lake.catalog.create_table("db.second", ROWS.schema).add_files([f"file://{path}" for path in first])
        lake.load(NAME).overwrite(ROWS)
        view = known(lake, self.POLICY, days=6)
        assert planned(expire.plan(view)).details["kinds"]["data"] == FILES
        with pytest.raises(UsageError, match=r"db\.second needs it"):
            expire.plan(replace(view, other_tables=lake.other_tables()))


class TestOrphans:
    POLICY = replace(DEFAULT, orphans=Orphans(timedelta(days=2), max_share=1.0))

    def test_by_the_time(self, lake: Lake) -> None:
        stray = plant(folder_of(lake, NAME), "data/stray.parquet", 0)
        assert "is referenced" in why_not(orphans.plan(known(lake, self.POLICY, days=1.9)))
        made = planned(orphans.plan(known(lake, self.POLICY, days=2.1)))
        assert [local_path(file.location) for file in made.details["files"]] == [str(stray)]
        assert (made.files, made.bytes) == (1, stray.stat().st_size)

    def test_a_listing_from_before_is_taken(self, lake: Lake) -> None:
        """What came after it is not looked at; nor is a folder that was not listed."""
        folder = folder_of(lake, NAME)
        first = plant(folder, "data/first.parquet", 9 * DAY)
        table, store = lake.open(NAME)
        before = list_folders([table.location], store)
        plant(folder, "data/second.parquet", 9 * DAY)
        view = known(lake, self.POLICY)
        made = planned(orphans.plan(replace(view, listings=before)))
        assert [local_path(file.location) for file in made.details["files"]] == [str(first)]
        elsewhere = list_folders([table.location + "/metadata"], store)
        with pytest.raises(StorageError, match="is new among the folders"):
            orphans.plan(replace(view, listings=elsewhere))

    def test_a_folder_outside_that_came_after_the_listing(self, lake: Lake, tmp_path: Path) -> None:
        """Only a table that is loaded after a listing knows all that is live in the folder."""
        outside = tmp_path / "outside"
        stray = plant(outside, "stray.parquet", 9 * DAY)
        table, store = lake.open(NAME)
        before = list_folders([table.location], store)
        with lake.load(NAME).transaction() as change:
            change.set_properties({"write.data.path": f"file://{outside}"})
        policy = replace(self.POLICY, orphans=replace(self.POLICY.orphans, outside=True))
        view = known(lake, policy)
        assert "is not examined" in why_not(orphans.plan(replace(view, listings=before)))
        listed = list_folders([table.location, f"file://{outside}"], store)
        made = planned(orphans.plan(replace(view, listings=listed)))
        assert [local_path(file.location) for file in made.details["files"]] == [str(stray)]

    def test_other_tables_must_be_known(self, lake: Lake) -> None:
        plant(folder_of(lake, NAME), "data/stray.parquet", 9 * DAY)
        view = replace(known(lake, self.POLICY), other_tables=None)
        with pytest.raises(UsageError, match="other tables are not known"):
            orphans.plan(view)
        assert planned(orphans.plan(replace(view, forced=True))).files == 1

    def test_young_files_are_never_removed(self, lake: Lake) -> None:
        policy = replace(DEFAULT, orphans=Orphans(timedelta(hours=23)))
        with pytest.raises(UsageError, match="at least 24 hours"):
            orphans.plan(known(lake, policy))

    def test_the_pipeline_lists_before_it_loads(self, lake: Lake) -> None:
        """A file that comes between the listing and the load is not of the plan: no Spark is asked for."""
        maintained, loads = maintained_of(lake, NAME, None, self.POLICY), []

        def load() -> tuple[IcebergTable, object]:
            loads.append(1)
            if len(loads) == 2:
                plant(folder_of(lake, NAME), "data/stray.parquet", 9 * DAY)
            return maintained.load()

        run = maintain_table(replace(maintained, load=load), only=[orphans.NAME])  # type: ignore[arg-type]
        assert (run.outcome, len(loads)) == (Outcome.NOT_NEEDED, 2), run.steps


class TestCompact:
    def of(self, **wanted: object) -> Policy:
        return replace(DEFAULT, compaction=Compaction(**wanted))  # type: ignore[arg-type]

    def test_small_files(self, lake: Lake) -> None:
        view = known(lake)
        made = planned(compact.plan(view))
        sizes = [os.path.getsize(path) for path in data_files(view.survey)]
        assert (made.files, made.bytes, made.why) == (FILES, sum(sizes), "5 small files")
        assert (made.details["strategy"], made.details["order"]) == ("binpack", None)
        assert made.details["options"]["min-input-files"] == "5"
        few = replace(view, policy=self.of(min_files=FILES + 1))
        assert why_not(compact.plan(few)) == "5 small files, 6 needed"

    def test_what_is_not_compacted(self, lake: Lake) -> None:
        none = self.of(strategy=Strategy.NONE)
        assert why_not(compact.plan(known(lake, none))) == "compaction is off in the policy"
        lake.catalog.create_table("db.empty", ROWS.schema)
        assert why_not(compact.plan(known(lake, name="db.empty"))) == "the table has no files"

    def test_a_limit(self, lake: Lake) -> None:
        view = known(lake)
        size = int(view.survey.numbers("size").max())
        made = planned(compact.plan(replace(view, policy=replace(DEFAULT, limits=RunLimits(2 * size)))))
        assert (made.files, made.details["options"]["max-files-to-rewrite"]) == (2, "2")
        assert made.why.endswith("the limit leaves 3 for the next run")
        with pytest.raises(UsageError, match="more than the limit of a run"):
            compact.plan(replace(view, policy=replace(DEFAULT, limits=RunLimits(size - 1))))

    def test_an_order(self, lake: Lake) -> None:
        """Five files that have the same bounds: no sorting mends that, so it is by their sizes."""
        by_id = self.of(strategy=Strategy.SORT, columns=("id",))
        assert planned(compact.plan(known(lake, by_id))).details["order"] == "id ASC NULLS FIRST"
        with pytest.raises(UsageError, match="has no sort order"):
            compact.plan(known(lake, self.of(strategy=Strategy.SORT)))
        with pytest.raises(UsageError, match="z-order needs columns"):
            compact.plan(known(lake, self.of(strategy=Strategy.Z_ORDER)))

    def test_sizes_that_contradict(self, lake: Lake) -> None:
        with pytest.raises(UsageError, match="would count as small"):
            compact.plan(known(lake, self.of(target_size=1 << 20, small_size=1 << 20)))


def deletes(found: Survey, applying_to: list[str], content: int = 1, form: str = "parquet") -> pa.Table:
    """Delete files as manifests would list them, one for each data file that is named."""
    assert found.snapshot is not None
    rows = [
        {
            "path": f"/deletes/{number}",
            "content": content,
            "format": form,
            "size": 100 + number,
            "rows": 1,
            "spec_id": 0,
            "partition": "[]",
            "sequence_number": FILES + 1,
            "added_snapshot_id": found.snapshot.id,
            "referenced_data_file": path,
            "content_offset": 4 if form == PUFFIN else None,
            "content_size": 10 if form == PUFFIN else None,
        }
        for number, path in enumerate(applying_to)
    ]
    return pa.Table.from_pylist(rows, FILE_SCHEMA)


class TestRewriteDeletes:
    def plan(self, lake: Lake, made: Callable[[Survey], pa.Table], policy: Policy = DEFAULT) -> Plan | Idle:
        view = known(lake, policy)
        return rewrite_deletes.plan(replace(view, survey=replace(view.survey, deletes=made(view.survey))))

    def test_none(self, lake: Lake) -> None:
        assert why_not(rewrite_deletes.plan(known(lake))) == "there are no deletes"

    def test_of_files_that_are_gone(self, lake: Lake) -> None:
        made = planned(
            self.plan(lake, lambda found: deletes(found, ["/gone", found.files["path"][0].as_py()]))
        )
        assert (made.files, made.bytes) == (1, 100)
        assert made.details == {"dangling": (("/deletes/0", -1),), "small": 0}
        keep = replace(DEFAULT, deletes=Deletes(dangling=False))
        assert "few deletes: 1 delete file" in why_not(
            self.plan(lake, lambda found: deletes(found, ["/gone"]), keep)
        )

    def test_of_vectors_their_own_part_counts(self, lake: Lake) -> None:
        made = planned(self.plan(lake, lambda found: deletes(found, ["/gone"], form=PUFFIN)))
        assert (made.files, made.bytes, made.details["dangling"]) == (1, 10, (("/deletes/0", 4),))

    def test_small_files(self, lake: Lake) -> None:
        def all_files(found: Survey) -> pa.Table:
            return deletes(found, found.files["path"].to_pylist())

        made = planned(self.plan(lake, all_files))
        assert (made.files, made.bytes) == (FILES, sum(range(100, 100 + FILES)))
        assert made.why == "5 small position delete files"
        more = replace(DEFAULT, deletes=Deletes(min_files=FILES + 1))
        assert "few" in why_not(self.plan(lake, all_files, more))


def test_manifests(lake: Lake) -> None:
    view = known(lake, replace(DEFAULT, manifests=Manifests(FILES)))
    assert why_not(rewrite_manifests.plan(view)) == "5 small manifests, limit 5"
    made = planned(rewrite_manifests.plan(replace(view, policy=replace(DEFAULT, manifests=Manifests(4)))))
    assert (made.files, made.details) == (FILES, {"specs": (0,)})
    assert made.bytes == sum(manifest.manifest_length for manifest in view.survey.file_lists)


class TestRefresh:
    def test_never_collected(self, lake: Lake) -> None:
        view = known(lake)
        made = planned(refresh.plan(view))
        assert (made.files, made.bytes) == (FILES, int(view.survey.numbers("size").sum()))
        assert made.why == "statistics were never collected"
        assert view.survey.snapshot is not None
        assert made.details == {"indexes": (), "snapshot": view.survey.snapshot.id}

    def test_what_the_run_has_done_before(self, lake: Lake) -> None:
        view = replace(known(lake), done=(compact.NAME,))
        assert planned(refresh.plan(view)).why.endswith("; files were rewritten by this run")
        policy = replace(DEFAULT, statistics=Statistics(after_compaction=False))
        assert "rewritten" not in planned(refresh.plan(replace(view, policy=policy))).why
        other = replace(view, done=(expire.NAME, orphans.NAME))
        assert "rewritten" not in planned(refresh.plan(other)).why

    def test_indexes(self, lake: Lake) -> None:
        policy = replace(DEFAULT, indexes=(WantedIndex("bitmap", "city"),))
        made = planned(refresh.plan(known(lake, policy)))
        assert made.why.endswith("; 1 index missing")
        assert made.details["indexes"] == (("bitmap", "city"),)
        with pytest.raises(UsageError, match="nowhere"):
            refresh.plan(known(lake, replace(DEFAULT, indexes=(WantedIndex("bitmap", "nowhere"),))))

    def test_an_empty_table(self, lake: Lake) -> None:
        lake.catalog.create_table("db.empty", ROWS.schema)
        assert why_not(refresh.plan(known(lake, name="db.empty"))) == "the table has no rows"


class TestCleanUp:
    def test_statistics_files_by_the_time(self, lake: Lake) -> None:
        left = plant(folder_of(lake, NAME), "metadata/1-old.stats", 0)
        assert why_not(clean_up.plan(known(lake, days=0.9))) == "no file is left over"
        made = planned(clean_up.plan(known(lake, days=1.1)))
        assert (made.files, made.bytes) == (1, left.stat().st_size)
        assert made.why == "1 statistics file unreferenced"
        kept = replace(DEFAULT, statistics_files=CleanUp(None))
        assert why_not(clean_up.plan(known(lake, kept, days=99))) == "the policy keeps statistics files"

    def test_what_writers_left_beside_the_table_by_the_time(self, lake: Lake) -> None:
        _, store = lake.open(NAME)
        left = plant(Path(local_path(store.location)), ".segment-0.puffin.0.tmp", 0, b"half")
        assert why_not(clean_up.plan(known(lake))) == "no file is left over"
        made = planned(clean_up.plan(known(lake, days=9)))
        assert made.details["garbage"] == {left.name: 4}


def test_other_tables_are_asked_again_after_a_time(lake: Lake) -> None:
    moment, asked = [0.0], []

    def find() -> list[TableName]:
        asked.append(moment[0])
        return []

    other_tables = OtherTables(find, lambda name: None, lambda: moment[0])
    for at in (0.0, 299.0, 301.0, 400.0):
        moment[0] = at
        assert list(other_tables.tables()) == []
    assert asked == [0.0, 301.0]
