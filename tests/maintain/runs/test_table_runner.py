"""One table's maintenance by `maintain` and by `watch`, on a real catalog; tables that need no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.api.lake import Lake
from rookery.api.maintain import maintain
from rookery.api.maintenance import leases_of
from rookery.api.watch import LakeSite, watch
from rookery.maintain.pipeline import NAMES
from rookery.maintain.policies.choosing import PolicySet
from rookery.maintain.policies.policy import DEFAULT
from rookery.maintain.runs.catalog_retry import CatalogRetry
from rookery.maintain.runs.history import History, RunRecord
from rookery.maintain.runs.lake_tables import LakeTables, RunOptions
from rookery.maintain.runs.leases import Leases, LeaseTakenError
from rookery.maintain.runs.table_runner import ASKED_FOR, TableRunner, Wanted
from rookery.maintain.runs.watch import Verdict, Watcher
from rookery.maintain.steps.step import Outcome
from rookery.model import MissingTableError, TableName, UsageError
from tests.isolation import isolate
from tests.maintain.runs.small_site import ROWS, small_lake
from tests.maintain.tending import no_spark

EMPTY = TableName("lake", ("db",), "empty")
WANTED = Wanted(DEFAULT, "a test")
FROM_8_TO_18 = "defaults:\n  quiet-hours: ['08:00-18:00']\n"
NIGHT, NOON = 2 * 3600.0, 12 * 3600.0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return isolate(tmp_path, monkeypatch)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with a table of ten rows, and one without any."""
    lake = small_lake(tmp_path / "lake", "orders")
    lake.catalog.create_table("db.empty", ROWS.schema)
    return lake


@pytest.fixture
def history(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'history.db'}"


def tables_of(lake: Lake, **options: str) -> LakeTables:
    return LakeTables(
        lake,
        no_spark,
        lake.other_tables,
        CatalogRetry(lake.answers),
        options=RunOptions(**options),  # type: ignore[arg-type]
    )


def steps_of(run: RunRecord) -> list[tuple[str, Outcome, str]]:
    return [(step.step, step.outcome, step.why) for step in run.steps]


class TestOpen:
    def test_policy_and_key(self, lake: Lake) -> None:
        with lake.load("db.empty").transaction() as change:
            change.set_properties({"rookery.verify": "rows"})
        opened = tables_of(lake, trash="/trash").open(EMPTY, PolicySet())
        assert (opened.name, opened.key) == (EMPTY, str(lake.load("db.empty").metadata.table_uuid))
        assert (opened.policy.verify.value, opened.policy.orphans.trash) == ("rows", "/trash")

    def test_gone(self, lake: Lake) -> None:
        with pytest.raises(MissingTableError, match=r"no table lake\.db\.none") as caught:
            tables_of(lake).open(TableName("lake", ("db",), "none"), PolicySet())
        assert caught.value.hint is not None


class TestLeased:
    def test_recorded_step_by_step(self, lake: Lake, history: str) -> None:
        kept = History(history)
        runner = TableRunner(tables_of(lake), kept, Leases(kept.engine))
        with runner.leased(EMPTY, "key") as run:
            done = run(WANTED)
            with pytest.raises(LeaseTakenError), runner.leased(EMPTY, "key"):
                pass
        assert (done.outcome, done.cause) == (Outcome.NOT_NEEDED, "a test")
        (record,) = kept.runs()
        assert (record.table, record.cause, record.outcome) == (str(EMPTY), "a test", Outcome.NOT_NEEDED)
        assert [step.step for step in record.steps] == list(NAMES)
        with runner.leased(EMPTY, "key"):  # it was given back
            pass

    def test_what_is_not_run_is_not_recorded(self, lake: Lake, history: str) -> None:
        kept = History(history)
        with TableRunner(tables_of(lake), kept, Leases(kept.engine)).leased(EMPTY, "key"):
            pass
        assert kept.runs() == []

    def test_stopped(self, lake: Lake, history: str) -> None:
        kept = History(history)
        runner = TableRunner(tables_of(lake), kept, Leases(kept.engine))
        with runner.leased(EMPTY, "key", lambda: True) as run:
            assert run(WANTED).outcome is Outcome.STOPPED

    def test_a_lease_that_is_lost_stops_it(self, lake: Lake, history: str) -> None:
        kept, moment = History(history), [0.0]
        leases = Leases(kept.engine, clock=lambda: moment[0], beating=False)
        with TableRunner(tables_of(lake), kept, leases).leased(EMPTY, "key") as run:
            moment[0] += leases.ttl
            assert run(WANTED).outcome is Outcome.STOPPED

    def test_a_policy_that_is_refused_is_recorded(self, lake: Lake, history: str) -> None:
        kept = History(history)
        runner = TableRunner(tables_of(lake, only=("dance",)), kept, Leases(kept.engine))  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="no step 'dance'"), runner.leased(EMPTY, "key") as run:
            run(WANTED)
        assert [run.outcome for run in kept.runs()] == [Outcome.FAILED]


def test_both_commands_leave_the_same_record(lake: Lake, history: str) -> None:
    (by_watch,) = watch(lake, ["db.empty"], once=True, history=history).tables
    (by_maintain,) = maintain(lake, ["db.empty"], history=history).tables
    assert (by_watch.verdict, by_maintain.outcome) == (Verdict.WITHIN, Outcome.NOT_NEEDED)
    later, earlier = History(history).runs()
    assert (earlier.cause, later.cause) == ("orphan search every 3d", ASKED_FOR)
    assert steps_of(earlier) == steps_of(later)


def test_quiet_hours_that_begin_before_the_first_step(lake: Lake, history: str, home: Path) -> None:
    """The run does nothing, and that the table is below its policy is no failure of it."""
    (home / "rookery.yaml").write_text(FROM_8_TO_18)
    kept = History(history)
    site = LakeSite(lake, ["db.orders"], clock=lambda: NOON, spark=no_spark)
    (result,) = Watcher(site, kept, leases_of(lake, kept), clock=lambda: NIGHT).once()
    assert (result.verdict, result.breaches) == (Verdict.QUIET, ("statistics were never collected",))
    assert [(run.outcome, run.steps) for run in kept.runs()] == [(Outcome.NOT_NEEDED, ())]
