"""What a watcher decides and in which order, on a site that answers as told; history and leases are real."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rookery.maintain.policies.policy import Orphans, Statistics
from rookery.maintain.policies.times import parse_quiet_hours
from rookery.maintain.runs.alerts import Alert, Alerts
from rookery.maintain.runs.history import History
from rookery.maintain.runs.leases import Leases
from rookery.maintain.runs.watch import Pace, Verdict, Watcher, stale_on_any_change
from rookery.maintain.status import TableStatus
from rookery.maintain.steps.orphans import NAME as ORPHANS
from rookery.maintain.steps.step import Outcome
from rookery.model import CatalogError, UsageError
from tests.maintain.runs.small_site import NO_ORPHANS, SmallSite, small_lake, status_of


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> TableStatus:
    return status_of(small_lake(tmp_path_factory.mktemp("lake"), "orders"), "db.orders")


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(f"sqlite:///{tmp_path / 'history.db'}")


class Time:
    """A timer that moves only when somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.after: Callable[[int], None] = lambda count: None

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        self.after(len(self.waits))


@pytest.fixture
def timer() -> Time:
    return Time()


def watcher_of(site: SmallSite, history: History, timer: Time, **pace: float) -> Watcher:
    return Watcher(
        site,
        history,
        Leases(history.engine),
        Pace(**pace),
        timer=timer,
        wait=timer.wait,  # type: ignore[arg-type]
    )


def verdicts(watcher: Watcher) -> dict[str, Verdict]:
    return {result.table.removeprefix("lake.db."): result.verdict for result in watcher.once()}


class TestOnce:
    def test_only_what_is_due_is_maintained(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, well=0, bad=2)
        watcher = watcher_of(site, history, timer)
        results = {result.table: result for result in watcher.once()}
        assert results["lake.db.well"].verdict is Verdict.WITHIN
        assert results["lake.db.bad"].verdict is Verdict.DONE
        assert results["lake.db.bad"].cause == "breach 0; breach 1"
        (run,) = history.runs()
        assert (run.table, run.outcome, run.cause) == ("lake.db.bad", Outcome.DONE, "breach 0; breach 1")
        assert [step.outcome for step in run.steps] == [Outcome.DONE, Outcome.DONE]
        assert {status.table: len(status.breaches) for status in watcher.statuses()} == {
            "lake.db.well": 0,
            "lake.db.bad": 0,
        }
        assert verdicts(watcher) == {"well": Verdict.WITHIN, "bad": Verdict.WITHIN}
        assert len(history.runs()) == 1

    def test_a_failure_leaves_other_tables_alone(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, a=1, b=1, c=1)
        site.broken = {"a": UsageError("keep_last is 0\nat jdbc://me:pw@host"), "b": ZeroDivisionError("odd")}
        results = {result.table: result for result in watcher_of(site, history, timer).once()}
        assert [results[f"lake.db.{name}"].verdict.value for name in "abc"] == [
            "failed",
            "failed",
            "maintained",
        ]
        assert results["lake.db.a"].error == "keep_last is 0 at jdbc://host"
        assert results["lake.db.b"].error == "ZeroDivisionError: odd"
        runs = {run.table: run for run in history.runs()}
        assert {name: run.outcome for name, run in runs.items()} == {
            "lake.db.a": Outcome.FAILED,
            "lake.db.b": Outcome.FAILED,
            "lake.db.c": Outcome.DONE,
        }
        assert runs["lake.db.a"].steps[-1].error == "keep_last is 0 at jdbc://host"

    def test_failed_steps_and_what_stays_below(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, a=1)
        site.outcome = Outcome.FAILED
        (failed,) = watcher_of(site, history, timer).once()
        assert (failed.verdict, failed.error, failed.breaches) == (
            Verdict.FAILED,
            "no space left",
            ("breach 0",),
        )
        site.outcome = Outcome.NOT_NEEDED
        (below,) = watcher_of(site, history, timer).once()
        assert (below.verdict, below.breaches) == (Verdict.BELOW, ("breach 0",))

    def test_gone_before_and_during_the_run(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, before=1, during=1, stays=1)
        site.before_step = lambda table: site.breaches.pop("during", None) and None  # type: ignore[assignment]
        names = site.find()
        site.find = lambda: names  # type: ignore[method-assign]
        del site.breaches["before"]
        assert verdicts(watcher_of(site, history, timer, jobs=1)) == {
            "before": Verdict.GONE,
            "during": Verdict.GONE,
            "stays": Verdict.DONE,
        }

    def test_quiet_hours(self, template: TableStatus, history: History, timer: Time) -> None:
        site = SmallSite(template, quiet=1, awake=1, well=0)
        always, never = parse_quiet_hours("00:00-24:00"), parse_quiet_hours("Mon 00:00-00:01")
        site.policies = {name: replace(NO_ORPHANS, quiet_hours=(always,)) for name in ("quiet", "well")}
        tuesday = time.time() // (7 * 86_400) * 7 * 86_400 + 5 * 86_400  # weeks since 1970 begin on Thursday
        site.policies["awake"] = replace(NO_ORPHANS, quiet_hours=(never,))
        watcher = Watcher(site, history, Leases(history.engine), timer=timer, clock=lambda: tuesday)
        assert verdicts(watcher) == {"quiet": Verdict.QUIET, "awake": Verdict.DONE, "well": Verdict.WITHIN}

    def test_a_schedule(self, template: TableStatus, history: History, timer: Time) -> None:
        """Statistics that are stale, but within policy, are refreshed when their time has come."""
        site = SmallSite(template, a=0)
        now = [time.time()]
        site.policies["a"] = policy = replace(NO_ORPHANS, statistics=Statistics(every=timedelta(hours=6)))
        watcher = Watcher(site, history, Leases(history.engine), timer=timer, clock=lambda: now[0])
        assert verdicts(watcher) == {"a": Verdict.WITHIN}  # nothing has changed
        site.stale = True
        assert verdicts(watcher) == {"a": Verdict.DONE}
        assert site.wanted["a"] == stale_on_any_change(policy)
        assert history.runs()[0].cause == "every 6h"
        assert verdicts(watcher) == {"a": Verdict.WITHIN}
        now[0] += 6 * 3600 + 1
        assert verdicts(watcher) == {"a": Verdict.DONE}

    def test_orphans_are_looked_for_now_and_then(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        """They show in no metadata, so a table that is well otherwise is due for them."""
        site = SmallSite(template, a=0)
        now = [time.time()]
        site.policies["a"] = policy = replace(NO_ORPHANS, orphans=Orphans(timedelta(days=3)))
        site.step = ORPHANS
        watcher = Watcher(site, history, Leases(history.engine), timer=timer, clock=lambda: now[0])
        assert verdicts(watcher) == {"a": Verdict.DONE}
        assert (site.wanted["a"], history.runs()[0].cause) == (policy, "orphan search every 3d")
        assert verdicts(watcher) == {"a": Verdict.WITHIN}
        now[0] += 3 * 86_400 + 1
        assert verdicts(watcher) == {"a": Verdict.DONE}

    def test_several_at_once_within_the_limit(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, **{f"t{number}": 1 for number in range(6)})
        meet = threading.Barrier(3)
        site.before_step = lambda table: meet.wait(30) and None  # type: ignore[assignment]
        assert set(verdicts(watcher_of(site, history, timer, jobs=3)).values()) == {Verdict.DONE}
        assert site.most_at_once == 3


class TestLeases:
    def test_another_has_it(self, template: TableStatus, history: History, timer: Time) -> None:
        site = SmallSite(template, a=1, b=1)
        with Leases(history.engine).hold("a"):
            assert verdicts(watcher_of(site, history, timer)) == {"a": Verdict.TAKEN, "b": Verdict.DONE}
        assert verdicts(watcher_of(site, history, timer)) == {"a": Verdict.DONE, "b": Verdict.WITHIN}

    def test_two_watchers_maintain_each_table_once(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, **{f"t{number}": 1 for number in range(20)})
        watchers = [watcher_of(site, history, timer, jobs=4) for _ in range(3)]
        threads = [threading.Thread(target=watcher.once) for watcher in watchers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(run.table for run in history.runs()) == sorted(f"lake.db.t{n}" for n in range(20))

    def test_lost_in_the_middle(self, template: TableStatus, history: History, timer: Time) -> None:
        """What the lease guards stops after its step."""
        site = SmallSite(template, a=3)
        moment = [0.0]
        leases = Leases(history.engine, clock=lambda: moment[0], beating=False)

        def late(table: str) -> None:
            moment[0] += 40.0

        site.before_step = late
        (result,) = Watcher(site, history, leases, timer=timer).once()
        assert (result.verdict, site.breaches) == (Verdict.STOPPED, {"a": 1})
        assert history.runs()[0].outcome is Outcome.STOPPED

    def test_what_another_left_unfinished_is_closed(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        left = history.begin("lake.db.a", "begun by one that lost its lease")
        watcher_of(SmallSite(template, a=1), history, timer).once()
        assert {run.id == left: run.outcome for run in history.runs()} == {
            True: Outcome.INTERRUPTED,
            False: Outcome.DONE,
        }


class TestUnreachable:
    def test_tried_again_until_it_answers(self, template: TableStatus, history: History, timer: Time) -> None:
        site = SmallSite(template, a=1)
        site.down = 6
        assert verdicts(watcher_of(site, history, timer)) == {"a": Verdict.DONE}
        assert timer.waits == [1, 2, 4, 8, 15]

    def test_said_in_the_end(self, template: TableStatus, history: History, timer: Time) -> None:
        site = SmallSite(template, a=1)
        site.down = 1000
        with pytest.raises(CatalogError, match="does not answer"):
            watcher_of(site, history, timer, catalog_timeout=60).once()
        assert sum(timer.waits) == 60

    def test_all_tables_wait_together(self, template: TableStatus, history: History, timer: Time) -> None:
        """A catalog that goes away between the listing and the tables costs the timeout once."""
        site = SmallSite(template, **{f"t{number}": 1 for number in range(9)})
        names = site.find()
        site.find = lambda: names  # type: ignore[method-assign]
        site.down = 1000
        assert set(verdicts(watcher_of(site, history, timer, jobs=1)).values()) == {Verdict.FAILED}
        assert sum(timer.waits) == 60

    def test_a_table_that_cannot_be_loaded_is_not_an_outage(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, a=1, b=1)
        look = site.look

        def odd(name):  # type: ignore[no-untyped-def]
            if name.table == "a":
                raise CatalogError("a type that is not known")
            return look(name)

        site.look = odd  # type: ignore[method-assign]
        assert verdicts(watcher_of(site, history, timer)) == {"a": Verdict.FAILED, "b": Verdict.DONE}
        assert timer.waits == []


class Told(Alerts):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__(None)
        self.said: list[Alert | str] = []

    def trouble(self, alert: Alert) -> bool:
        self.said.append(alert)
        raise OSError("an alert that fails must not end the run")

    def well(self, table: str) -> None:
        self.said.append(table)


def test_trouble_is_told_and_its_end(template: TableStatus, history: History, timer: Time) -> None:
    site, told = SmallSite(template, a=1), Told()
    watcher = Watcher(site, history, Leases(history.engine), alerts=told, timer=timer)
    site.outcome = Outcome.FAILED
    watcher.once()
    site.outcome = Outcome.NOT_NEEDED
    watcher.once()
    site.outcome = Outcome.DONE
    watcher.once()
    assert told.said == [
        Alert("lake.db.a", "failed", ("breach 0",), "no space left"),
        Alert("lake.db.a", "below policy", ("breach 0",)),
        "lake.db.a",
    ]


KILLED = """
import sys
from pathlib import Path
from rookery.maintain.runs.history import History
from rookery.maintain.runs.leases import Leases
from rookery.maintain.runs.watch import Watcher
from tests.maintain.runs.small_site import NO_ORPHANS, SmallSite, small_lake, status_of

folder = Path(sys.argv[1])
history = History(f"sqlite:///{folder / 'history.db'}")
site = SmallSite(status_of(small_lake(folder / "lake", "orders"), "db.orders"), a=2)

def hang(table):
    print("in a step", flush=True)
    sys.stdin.read()

site.before_step = hang
Watcher(site, history, Leases(history.engine)).once()
"""


def test_killed_in_a_step(template: TableStatus, history: History, timer: Time, tmp_path: Path) -> None:
    """Its run is shown as interrupted, and another takes the table over at once."""
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    victim = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert victim.stdout is not None
    assert victim.stdout.readline() == "in a step\n"
    watcher = watcher_of(SmallSite(template, a=2), history, timer)
    assert verdicts(watcher) == {"a": Verdict.TAKEN}
    assert [run.outcome for run in history.runs()] == [None]
    victim.kill()
    victim.communicate()
    assert [run.outcome for run in history.runs()] == [Outcome.INTERRUPTED]
    assert verdicts(watcher) == {"a": Verdict.DONE}
    assert history.tally().runs == {("lake.db.a", "interrupted"): 1, ("lake.db.a", "done"): 1}


class TestLoop:
    def test_goes_on_through_an_outage(
        self, template: TableStatus, history: History, timer: Time, caplog: pytest.LogCaptureFixture
    ) -> None:
        site = SmallSite(template, a=1)
        watcher = watcher_of(site, history, timer, catalog_timeout=0, interval=100)
        site.down = 2
        began = threading.Event()
        site.before_step = lambda table: began.set()

        def after(count: int) -> None:
            if count == 2:
                assert began.wait(30)
                watcher.stop()

        timer.after = after
        watcher.run()
        assert caplog.messages.count("catalog 'lake' does not answer") == 1
        assert site.prepared == 2
        assert [run.outcome for run in history.runs()] == [Outcome.DONE]

    def test_stops_after_the_step_and_begins_no_table(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, a=3, b=3, c=3)
        watcher = watcher_of(site, history, timer, jobs=1)
        site.before_step = lambda table: watcher.stop()
        watcher.run()
        assert site.breaches == {"a": 2, "b": 3, "c": 3}
        (run,) = history.runs()
        assert run.outcome is Outcome.STOPPED
        with Leases(history.engine).hold("a"):  # given back
            pass

    def test_a_table_at_work_is_not_begun_again(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, slow=1, quick=1)
        watcher = watcher_of(site, history, timer, jobs=2)
        began, go = threading.Event(), threading.Event()

        def step(table: str) -> None:
            if table == "slow":
                began.set()
                assert go.wait(30)

        def after(count: int) -> None:
            assert began.wait(30)
            if count == 5:
                go.set()
                watcher.stop()

        site.before_step = step
        timer.after = after
        watcher.run()
        assert len([run for run in history.runs() if run.table == "lake.db.slow"]) == 1
        assert site.most_at_once <= 2

    def test_rests_for_longer_and_longer_when_runs_do_nothing(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, a=1)
        site.outcome = Outcome.NOT_NEEDED
        watcher = watcher_of(site, history, timer, interval=300)
        (name,) = site.find()
        ran: list[float] = []
        for _ in range(400):
            if watcher._table(name, looping=True).verdict is Verdict.BELOW:
                ran.append(timer.now)
            timer.now += 300
        gaps = [later - earlier for earlier, later in itertools.pairwise(ran)]
        assert gaps[:7] == [600, 1200, 2400, 4800, 9600, 19200, 21600]
        site.outcome = Outcome.DONE
        timer.now += 21600
        assert watcher._table(name, looping=True).verdict is Verdict.DONE

    def test_a_run_that_cannot_begin_rests_too(
        self, template: TableStatus, history: History, timer: Time
    ) -> None:
        site = SmallSite(template, a=1)
        site.broken["a"] = UsageError("refused")
        watcher = watcher_of(site, history, timer, interval=300)
        (name,) = site.find()
        found = [watcher._table(name, looping=True).verdict for _ in range(2)]
        assert found == [Verdict.FAILED, Verdict.RESTING]

    def test_health_is_that_of_the_loop(self, template: TableStatus, history: History, timer: Time) -> None:
        watcher = watcher_of(SmallSite(template), history, timer, interval=100, catalog_timeout=10)
        watcher.once()
        timer.now += 260
        assert watcher.healthy
        timer.now += 10
        assert not watcher.healthy

    def test_history_that_fails_during_a_run_is_said_and_the_run_goes_on(
        self, template: TableStatus, history: History, timer: Time, caplog: pytest.LogCaptureFixture
    ) -> None:
        site = SmallSite(template, a=1)

        def drop(table: str) -> None:
            with history.engine.begin() as connection:
                connection.exec_driver_sql("DROP TABLE rookery_steps")

        site.before_step = drop
        (result,) = watcher_of(site, history, timer).once()
        assert result.verdict is Verdict.DONE
        assert "history could not be written" in caplog.text
