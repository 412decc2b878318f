"""A catalog that does not answer, a warehouse that may not be written, a disk that is full: said, exit 1."""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from rookery.api.lake import Lake
from rookery.api.maintain import maintain
from rookery.api.watch import watch
from rookery.cli.app import run as rookery
from rookery.maintain.runs import catalog_retry
from rookery.maintain.runs.history import History
from rookery.maintain.runs.watch import Pace, Verdict
from rookery.maintain.steps.step import Outcome
from rookery.model import TableName
from tests.lakehouse import NewTable
from tests.maintain.runs.small_site import ROWS, small_lake
from tests.maintain.tending import missing_files, rows_hash
from tests.safety.maintain_needy import POLICY, kept_up

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
QUIET = "defaults:\n  quiet-hours: ['00:00-24:00']\n"  # so that nothing is done, and no Spark is started
LIMIT = 1 << 20


@pytest.fixture
def history(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'history.db'}"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "rookery.yaml").write_text(POLICY)
    return tmp_path / "rookery.yaml"


class Meanwhile(logging.Handler):
    """Does something when a line of the log says that the catalog is tried again."""

    def __init__(self, act: Callable[[int], None]) -> None:
        super().__init__()
        self._act = act
        self.tried = 0

    def emit(self, record: logging.LogRecord) -> None:
        if "trying again" in record.getMessage():
            self.tried += 1
            self._act(self.tried)


@contextmanager
def meanwhile(act: Callable[[int], None] = lambda tried: None) -> Iterator[Meanwhile]:
    handler, logger = Meanwhile(act), logging.getLogger("rookery.maintain.runs.catalog_retry")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


class TestUnreachable:
    @pytest.fixture(autouse=True)
    def in_haste(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(catalog_retry, "_FIRST_WAIT", 0.02)

    def test_waited_for_and_back_again(self, tmp_path: Path, history: str) -> None:
        place, away = tmp_path / "lake", tmp_path / "away"
        lake = small_lake(place, "orders", "items")
        (tmp_path / "quiet.yaml").write_text(QUIET)
        lake.catalog.engine.dispose()  # type: ignore[attr-defined]
        place.rename(away)
        with meanwhile(lambda tried: away.rename(place) and None if tried == 3 else None) as seen:
            report = watch(lake, once=True, policy=tmp_path / "quiet.yaml", history=history, pace=Pace())
        assert seen.tried == 3
        assert [table.verdict for table in report.tables] == [Verdict.QUIET] * 2
        assert not report.has_findings

    def test_given_up_in_one_line(self, history: str, capfd: pytest.CaptureFixture[str]) -> None:
        words = ["watch", "--once", "--catalog-timeout", "1s", "--history", history, "--output", "json"]
        with meanwhile() as seen:
            code = rookery([*words, "--uri", "http://someone:s3cret@127.0.0.1:1/"])
        out, err = capfd.readouterr()
        assert (code, json.loads(out)["tables"]) == (1, [])
        assert seen.tried >= 2
        assert "\n" not in json.loads(out)["error"]
        assert "cannot be opened" in json.loads(out)["error"]
        assert "s3cret" not in out + err

    def test_a_run_that_is_asked_for_waits_too(self, history: str, capfd: pytest.CaptureFixture[str]) -> None:
        words = ["maintain", "--catalog-timeout", "1s", "--history", history, "--uri", "http://127.0.0.1:1/"]
        with meanwhile() as seen:
            code = rookery(words)
        out, err = capfd.readouterr()
        assert (code, out) == (2, "")  # as all commands do that cannot begin
        assert seen.tried >= 2
        assert [line.partition(": ")[0] for line in err.splitlines()[-2:]] == ["error", "hint"]

    def test_an_outage_between_the_list_and_the_tables(
        self, tmp_path: Path, history: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place, away = tmp_path / "lake", tmp_path / "away"
        lake = small_lake(place, "orders", "items")
        (tmp_path / "quiet.yaml").write_text(QUIET)
        find = lake.find

        def and_then_it_is_gone(pattern: str) -> list[TableName]:
            names = find(pattern)
            lake.catalog.engine.dispose()  # type: ignore[attr-defined]
            place.rename(away)
            return names

        monkeypatch.setattr(lake, "find", and_then_it_is_gone)
        with meanwhile(lambda tried: away.rename(place) and None if tried == 2 else None) as seen:
            report = maintain(lake, ["db.*"], policy=tmp_path / "quiet.yaml", history=history)
        assert seen.tried == 2
        assert [run.outcome for run in report.tables] == [Outcome.NOT_NEEDED] * 2


def written(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder below, with its size and when it was changed."""
    found = [folder, *folder.rglob("*")]
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in found}


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Take away the bits that let anybody write."""
    bits = {path: path.stat().st_mode for path in [folder, *folder.rglob("*")]}
    try:
        for path, mode in bits.items():
            path.chmod(mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
        yield
    finally:
        for path, mode in bits.items():
            path.chmod(mode)


def test_a_warehouse_that_may_not_be_written(tmp_path: Path, policy: Path, history: str) -> None:
    lake = small_lake(tmp_path / "lake", "orders", "items")
    for _ in range(4):
        lake.load("db.orders").append(ROWS)
    warehouse = tmp_path / "lake" / "warehouse"
    before = written(warehouse)
    heads = {name: lake.load(name).metadata_location for name in ("db.orders", "db.items")}
    place = ["--uri", lake.properties["uri"], "--warehouse", lake.properties["warehouse"]]
    words = ["-m", "rookery", "maintain", "db.*", "--policy", str(policy), "--history", history, *place]
    words += ["--output", "json"]
    with read_only(warehouse):
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.safety.maintain_bound", sys.executable, *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # its JVM is of the group, and ends with it
        )
        try:
            out, err = program.communicate(timeout=300)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    assert program.returncode == 1, out + err
    assert written(warehouse) == before
    assert {name: lake.load(name).metadata_location for name in heads} == heads
    steps = [step for run in json.loads(out)["tables"] for step in run["steps"]]
    assert {step["outcome"] for step in steps} == {"not needed", "failed", "stopped"}
    for step in steps:
        if step["outcome"] == "failed":
            assert "Permission denied" in step["error"]
            assert "\n" not in step["error"]
            assert step["hint"]
    assert "Traceback" not in err
    assert {run.outcome for run in History(history).runs()} == {Outcome.FAILED}


@contextmanager
def small_disk(spark: SparkSession, most: int) -> Iterator[None]:
    """Let the JVM write no file beyond a size: what goes beyond fails, as on a disk that is full."""
    pid = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def noise(kind: int, count: int) -> pa.Table:
    """Rows that do not get smaller."""
    texts = [each.tobytes().hex() for each in np.random.default_rng(kind).integers(0, 1 << 62, (count, 32))]
    ids = pa.array(range(kind * 1_000_000, kind * 1_000_000 + count), pa.int64())
    kinds = pa.array([kind] * count, pa.int32())
    return pa.table(
        [ids, kinds, texts],
        schema=pa.schema([("id", pa.int64()), ("kind", pa.int32()), ("word", pa.string())]),
    )


def test_a_disk_that_fills_up(
    spark: SparkSession,
    lake: Lake,
    new_table: NewTable,
    policy: Path,
    history: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One partition is small enough to be rewritten; what it would take for the other is not there."""
    name = new_table("id bigint, kind int, word string", partitioned="kind")
    for number in range(3):
        lake.load(name).append(
            noise(2 * number + 1, 2000).set_column(1, "kind", pa.array([1] * 2000, pa.int32()))
        )
        lake.load(name).append(noise(2 * number, 20).set_column(1, "kind", pa.array([0] * 20, pa.int32())))
    spark.catalog.refreshTable(name)
    before, start = rows_hash(spark, name), len(lake.load(name).snapshots())
    words = ["maintain", name, "--policy", str(policy), "--history", history, "--output", "json"]
    with small_disk(spark, LIMIT):
        code = rookery([*words, "--only", "rewrite data files", "--only", "rewrite deletes"])
    out, err = capfd.readouterr()
    assert code == 1, out
    steps = {step["step"]: step for step in json.loads(out)["tables"][0]["steps"]}
    assert steps["rewrite data files"]["outcome"] == "failed"
    assert "File too large" in steps["rewrite data files"]["error"]
    assert "space" in steps["rewrite data files"]["hint"]
    assert steps["rewrite deletes"]["outcome"] == "stopped"
    assert "Traceback" not in err
    spark.catalog.refreshTable(name)
    assert rows_hash(spark, name) == before
    assert missing_files(lake, name) == []
    since = lake.load(name).snapshots()[start:]
    assert {each.summary.operation.value for each in since if each.summary} == {"replace"}
    assert len(since) == 1  # the part that could be written, whole

    (run,) = kept_up(lake, [name], policy, history).tables
    assert run.outcome is Outcome.DONE, run
    spark.catalog.refreshTable(name)
    assert rows_hash(spark, name) == before
    assert missing_files(lake, name) == []
    assert len(lake.load(name).inspect.files()) == 2
