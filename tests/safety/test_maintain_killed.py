"""A run that is killed in any of its steps: nothing is lost, and the next one finishes what it began."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rookery.api.lake import Lake
from rookery.maintain.pipeline import NAMES
from rookery.maintain.runs.history import History
from rookery.maintain.runs.processes import is_gone, machine
from rookery.maintain.steps.step import Outcome
from tests.lakehouse import NewTable
from tests.maintain.tending import DAY, folder_of, make_old, missing_files, rows_hash
from tests.safety.attached import gateway_of
from tests.safety.maintain_needy import POLICY, Needy, assert_nothing_lost, kept_up, needy, rows, strays
from tests.safety.maintain_points import POINTS
from tests.safety.watch import assert_whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


class Killer:
    """The process that begets the ones that die."""

    def __init__(self, spark: SparkSession, folder: Path, home: Path) -> None:
        self.policy, self.history = folder / "rookery.yaml", f"sqlite:///{folder / 'history.db'}"
        self.policy.write_text(POLICY)
        self._said = folder / "said"
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "ROOKERY_HOME": str(home),
            **gateway_of(spark),
        }

    def __enter__(self) -> Killer:
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.safety.maintain_victim", str(self.policy), self.history],
                env=self._environment,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def kill(self, table: Needy, step: str, which: int) -> int:
        """Have a run killed, and return the process that it was."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(table.name, step, which, table.now, sep="\t", file=self._process.stdin, flush=True)
        pid, status = map(int, self._process.stdout.readline().split())
        assert status == -signal.SIGKILL, self._said.read_text()
        return pid


@pytest.fixture(scope="module")
def killer(
    spark: SparkSession, rookery_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Killer]:
    with Killer(spark, tmp_path_factory.mktemp("killed"), rookery_home) as killer:
        yield killer


@pytest.mark.parametrize("steps", [NAMES[::2], NAMES[1::2]], ids=["one", "other"])
def test_killed_in_each_step(
    spark: SparkSession, lake: Lake, new_table: NewTable, killer: Killer, steps: Sequence[str]
) -> None:
    """Run after run is killed, each further on: before what a step does is done, and before it is seen to."""
    table = needy(spark, lake, new_table)
    history = History(killer.history)
    pids = []
    for step, which in product(steps, (0, 1)):
        pids.append(killer.kill(table, step, which))
        assert_nothing_lost(spark, lake, table)
        assert_whole(lake, table.name)
        killed = history.runs(table.name)[0]
        assert (killed.outcome, killed.pid) == (Outcome.INTERRUPTED, pids[-1])
        assert [each.step for each in killed.steps] == list(NAMES[: NAMES.index(step)])

    (report,) = kept_up(lake, [table.name], killer.policy, killer.history, table.now).tables
    left = NAMES[NAMES.index(steps[-1]) + 1 :]
    assert report.outcome is (Outcome.DONE if left else Outcome.NOT_NEEDED), report
    assert tuple(each.step for each in report.steps if each.outcome is Outcome.DONE) == left
    assert_nothing_lost(spark, lake, table)
    assert_whole(lake, table.name)
    assert not any(path.exists() for path in table.planted)
    (again,) = kept_up(lake, [table.name], killer.policy, killer.history, table.now).tables
    assert {each.step: each.outcome for each in again.steps} == dict.fromkeys(NAMES, Outcome.NOT_NEEDED)

    runs = history.runs(table.name)[::-1]
    ends = [report.outcome, Outcome.NOT_NEEDED]
    assert [run.outcome for run in runs] == [Outcome.INTERRUPTED] * len(pids) + ends
    assert [run.pid for run in runs] == [*pids, os.getpid(), os.getpid()]


def test_every_step_has_its_points() -> None:
    assert tuple(POINTS) == NAMES


@pytest.mark.parametrize(
    ("module", "files", "wanted"),
    [
        ("compact", "*.parquet", "compaction: {min-files: 2}"),
        ("expire", "*.metadata.json", "snapshots: {keep-for: 1s, keep-last: 1}"),
    ],
    ids=["rewriting", "expiring"],
)
def test_killed_while_spark_is_at_work(
    spark: SparkSession,
    lake: Lake,
    new_table: NewTable,
    rookery_home: Path,
    tmp_path: Path,
    module: str,
    files: str,
    wanted: str,
) -> None:
    """With its JVM: what was not committed is unreferenced, and goes when it is old."""
    name = new_table("id bigint, kind int, word string", partitioned="kind")
    for number in range(2):
        more = [rows(1000 * number + 10_000 * kind, 1000, kind) for kind in range(4)]
        lake.load(name).append(pa.concat_tables(more))
    spark.catalog.refreshTable(name)
    spark.sql(f"DELETE FROM {name} WHERE kind = 3")  # so that the past has files of its own
    before, metadata, already = rows_hash(spark, name), lake.load(name).metadata, strays(lake, name)
    policy, history = tmp_path / "rookery.yaml", f"sqlite:///{tmp_path / 'history.db'}"
    policy.write_text(f"defaults:\n  {wanted}\n  verify: rows\n")
    words = [name, module, files, str(policy), history]
    victim = subprocess.Popen(
        [sys.executable, "-m", "tests.safety.maintain_midway", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "ROOKERY_HOME": str(rookery_home)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # its JVM is of the group, which it kills
    )
    try:
        said, _ = victim.communicate(timeout=300)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(victim.pid, signal.SIGKILL)
    assert victim.returncode == -signal.SIGKILL, said
    assert History(history).runs()[0].outcome is Outcome.INTERRUPTED
    left = strays(lake, name) - already
    if module == "compact":
        assert lake.load(name).metadata == metadata  # nothing was committed
        assert left

    now = time.time()
    _assert_same(spark, lake, name, before)
    (run,) = kept_up(lake, [name], policy, history, now).tables
    assert run.outcome is Outcome.DONE, run
    assert left <= strays(lake, name)  # they are young: somebody might be about to name them
    make_old(folder_of(lake, name), 9 * DAY)
    (run,) = kept_up(lake, [name], policy, history, now).tables
    assert run.outcome is (Outcome.DONE if left else Outcome.NOT_NEEDED), run
    assert strays(lake, name) == set()
    _assert_same(spark, lake, name, before)
    (again,) = kept_up(lake, [name], policy, history, now).tables
    assert {each.outcome for each in again.steps} == {Outcome.NOT_NEEDED}, again


def _assert_same(spark: SparkSession, lake: Lake, name: str, before: tuple[int, object]) -> None:
    spark.catalog.refreshTable(name)
    assert rows_hash(spark, name) == before
    assert missing_files(lake, name) == []


def test_a_process_that_has_ended_is_gone() -> None:
    """Even while nobody has asked how it ended, as in a container where none does."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not is_gone(machine(), process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(machine(), process.pid)
