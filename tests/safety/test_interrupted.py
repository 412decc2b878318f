"""An analysis that ends at any of its steps: the table reads as before, and the next run finishes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.sidecar import Store
from tests.lakehouse import NewTable, tables
from tests.safety.attached import gateway_of
from tests.safety.steps import STEPS, at
from tests.safety.watch import assert_right, assert_whole, folder, make_rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
KILLED = [
    "inside the segment",
    "after the segment",
    "after the state",
    "after the statistics file",
    "after the commit",
]
REGISTERED = {"after the commit", "before the garbage is collected", "after the garbage is collected"}


class EndError(BaseException):
    """Nothing in the way catches this."""


def end() -> None:
    raise EndError


def filled(spark: SparkSession, lake: Lake, new_table: NewTable, refresh: bool) -> str:
    """A table to analyse for the first time, or one that has changed since: new rows, and a file gone."""
    name = new_table("id bigint, word string")
    make_rows(spark, name, 0, 20)
    if refresh:
        make_rows(spark, name, 20, 30, modulo=9)
        rookery.analyze(spark, name, lake=lake)
        spark.sql(f"DELETE FROM {name} WHERE id < 20")  # all of the first file
        make_rows(spark, name, 30, 45)
    return name


def leave_only_what_is_named(lake: Lake, name: str) -> None:
    """With no time of grace, nothing is left but the states and what they name."""
    loaded, store = rookery.table(name, lake).load()
    store.collect_garbage(str(loaded.table.metadata.table_uuid), loaded.snapshots.keys(), grace=-1)
    named = {
        entry.name for _, state in store.newest(list(loaded.snapshots)) for entry in state.header.segments
    }
    states = {found for _, _, found in store.states()}
    assert {path.name for path in folder(lake, name).iterdir()} == states | named


@pytest.mark.parametrize("refresh", [False, True], ids=["first", "refresh"])
@pytest.mark.parametrize("step", STEPS)
def test_ended(spark: SparkSession, lake: Lake, new_table: NewTable, step: str, refresh: bool) -> None:
    name = filled(spark, lake, new_table, refresh)
    rows = rows_of(lake, name)
    before = lake.load(name).metadata
    with pytest.raises(EndError), at(STEPS[step], end):
        rookery.analyze(spark, name, lake=lake)

    assert rows_of(lake, name) == rows
    assert sorted(map(tuple, spark.table(name).collect())) == rows
    assert_whole(lake, name)
    if step not in REGISTERED:
        assert lake.load(name).metadata == before
    rookery.table(name, lake).stats()

    report = rookery.analyze(spark, name, lake=lake)
    assert report.committed == (step not in REGISTERED)
    assert_right(spark, lake, name)
    assert rookery.analyze(spark, name, lake=lake).committed is False
    leave_only_what_is_named(lake, name)
    assert_right(spark, lake, name)


@dataclass
class Killed:
    """What a killed process has left."""

    name: str
    rows: list[tuple[int, str]]
    metadata: object
    returncode: int
    said: str


@pytest.fixture(scope="module")
def killed(spark: SparkSession, lake: Lake, rookery_home: Path) -> Iterator[dict[str, Killed]]:
    """A process for each of the steps, all at once."""
    with tables(spark) as make:
        names = {step: filled(spark, lake, make, refresh=True) for step in KILLED}
        before = {step: (rows_of(lake, name), lake.load(name).metadata) for step, name in names.items()}
        home = {"PYTHONPATH": str(ROOT), "ROOKERY_HOME": str(rookery_home)}
        victims = {
            step: subprocess.Popen(
                [sys.executable, "-m", "tests.safety.victim", name, step],
                env={**os.environ, **home, **gateway_of(spark)},
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for step, name in names.items()
        }
        try:
            found = {
                step: Killed(names[step], *before[step], victim.wait(timeout=150), "")
                for step, victim in victims.items()
            }
        finally:
            for victim in victims.values():
                victim.kill()
        for step, victim in victims.items():
            found[step].said = victim.communicate()[0]
        yield found


@pytest.mark.parametrize("step", KILLED)
def test_killed(spark: SparkSession, lake: Lake, killed: dict[str, Killed], step: str) -> None:
    victim = killed[step]
    name = victim.name
    assert victim.returncode == -signal.SIGKILL, victim.said
    assert rows_of(lake, name) == victim.rows
    assert sorted(map(tuple, spark.table(name).collect())) == victim.rows
    assert_whole(lake, name)
    assert (lake.load(name).metadata == victim.metadata) == (step not in REGISTERED)
    left = {path.name for path in folder(lake, name).iterdir()}
    assert any(found.endswith(".tmp") for found in left) == step.startswith("inside")

    report = rookery.analyze(spark, name, lake=lake)
    assert report.committed == (step not in REGISTERED)
    assert_right(spark, lake, name)
    leave_only_what_is_named(lake, name)
    assert_right(spark, lake, name)


def test_what_others_are_about_to_name_is_left_alone(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    """Another run has written its segment and not yet its state when this one collects garbage."""
    name = filled(spark, lake, new_table, refresh=False)
    with pytest.raises(EndError), at(STEPS["after the segment"], end):
        rookery.analyze(spark, name, lake=lake)
    (segment,) = folder(lake, name).iterdir()
    rookery.analyze(spark, name, lake=lake)
    assert segment.exists()
    loaded, store = rookery.table(name, lake).load()
    assert isinstance(store, Store)
    assert store.collect_garbage(
        str(loaded.table.metadata.table_uuid), loaded.snapshots.keys(), grace=-1
    ) == [segment.name]
