"""Commands that a signal ends while they work: at once, in one line, with nothing half done.

What they read is held up by a pipe in the place of a data file: whoever opens it waits for what is written
to it, which is never.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.api.maintenance import leases_of
from rookery.io import local_path
from rookery.maintain.pipeline import NAMES
from rookery.maintain.runs.history import History
from rookery.maintain.steps.step import Outcome
from rookery.spark.java import find_java
from tests.lakehouse import NewTable
from tests.safety.watch import assert_right, folder, make_rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).parent / "rookery")
SMALL = ("--conf", "spark.driver.memory=512m", "--conf", "spark.ui.enabled=false")
COMPACT = NAMES[2]


@contextmanager
def held_up(file: Path) -> Iterator[Path]:
    """Put a pipe in the place of a file."""
    aside = file.with_suffix(".aside")
    file.rename(aside)
    os.mkfifo(file)
    try:
        yield file
    finally:
        aside.rename(file)


def _waiting(process: int) -> list[str]:
    """In what functions of the kernel the threads of a process wait; "0" where they run, or it is hidden."""
    found = []
    for path in Path(f"/proc/{process}/task").glob("*/wchan"):
        with suppress(OSError):  # of a thread that has ended since
            found.append(path.read_text())
    return found


@cache
def _kernel_tells() -> bool:
    """Whether it can be seen what a thread waits for: one that is sure to wait is looked at."""
    done = threading.Event()
    waiter = threading.Thread(target=done.wait)
    waiter.start()
    tells = False
    for _ in range(100):
        tells = any(name not in ("", "0") for name in _waiting(os.getpid()))
        if tells:
            break
        threading.Event().wait(0.01)
    done.set()
    waiter.join()
    return tells


def _heed_interrupts() -> None:
    """As a shell does for a command in front: tests may run in the background, where they are ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Running:
    """A command in a group of its own, which gets signals as from a terminal."""

    def __init__(self, words: Sequence[str], home: Path, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            words,
            env={
                **os.environ,
                "ROOKERY_HOME": str(home),
                "NO_COLOR": "1",
                "PYTHONPATH": str(ROOT),
                **environment,
            },
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_heed_interrupts,
        )

    def until_it_reads(self, pipe: Path) -> int:
        """Wait until somebody reads the pipe, and return its other end: while it is open, they wait."""
        while True:
            try:
                return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
            assert self.process.poll() is None, self.process.communicate()
            threading.Event().wait(0.01)

    def until_it_opens(self, pipe: Path) -> int:
        """Wait until a thread of the process itself waits in opening the pipe; return a file to close.

        Our reader of local files reads at offsets, which a pipe refuses: if the other end is opened, it fails
        at once, and a signal may come too late. So the kernel is asked what it waits for. Where that is
        hidden, the other end is opened, and the signal has to be quick.
        """
        if not _kernel_tells():
            return self.until_it_reads(pipe)
        while "wait_for_partner" not in _waiting(self.process.pid):
            assert self.process.poll() is None, self.process.communicate()
            threading.Event().wait(0.01)
        return os.open(os.devnull, os.O_WRONLY)

    def signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def ended(self) -> tuple[int, str, list[str]]:
        """Return its exit code, and what it printed."""
        code = self.process.wait(timeout=120)
        out, said = self.kill()
        return code, out, [line for line in said.splitlines() if line.strip()]

    def kill(self) -> tuple[str, str]:
        """Kill what is left of the group, as a JVM that waits for a task, and return what was printed."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.communicate()


@contextmanager
def running(words: Sequence[str], home: Path, **environment: str) -> Iterator[Running]:
    command = Running([PROGRAM, *words] if words[0] != sys.executable else words, home, environment)
    try:
        yield command
    finally:
        if command.process.returncode is None:
            command.kill()


def filled(spark: SparkSession, new_table: NewTable, files: int = 4) -> str:
    name = new_table("id bigint, word string")
    make_rows(spark, name, 0, 10 * files, files=files)
    return name


def a_file(lake: Lake, name: str) -> Path:
    """The last of the data files to be planned."""
    paths = [task.file.file_path for task in lake.load(name).scan().plan_files()]
    return Path(local_path(sorted(paths)[0]))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_maintain_during_a_rewrite(
    spark: SparkSession, lake: Lake, new_table: NewTable, rookery_home: Path, tmp_path: Path, number: int
) -> None:
    """The step is recorded as stopped, the lease is given back, and the other table is not begun."""
    names = sorted(filled(spark, new_table) for _ in range(2))
    rows, metadata = rows_of(lake, names[0]), lake.load(names[0]).metadata
    policy, history = tmp_path / "rookery.yaml", f"sqlite:///{tmp_path / 'history.db'}"
    policy.write_text("defaults:\n  compaction: {min-files: 2}\n")
    words = ["maintain", *names, "--policy", str(policy), "--history", history, *SMALL]
    with held_up(a_file(lake, names[0])) as pipe, running(words, rookery_home) as command:
        os_end = command.until_it_reads(pipe)
        command.signal(number)
        code, out, said = command.ended()
        os.close(os_end)
    assert (code, out) == (128 + number, "")
    assert said == [f"{names[0]} (1 of 2)", "error: interrupted"]
    (run,) = History(history).runs()
    assert (run.table, run.outcome) == (names[0], Outcome.STOPPED)
    last = run.steps[-1]
    assert (last.step, last.outcome, last.why) == (COMPACT, Outcome.STOPPED, "interrupted")
    key = str(metadata.table_uuid)
    assert leases_of(lake, History(history)).row(key) is None
    assert lake.load(names[0]).metadata == metadata
    assert rows_of(lake, names[0]) == rows


def test_a_session_goes_on_without_the_jobs_of_what_was_interrupted(
    spark: SparkSession, lake: Lake, new_table: NewTable, rookery_home: Path, tmp_path: Path
) -> None:
    """Iceberg's procedure would begin a job for the next partition."""
    name = new_table("id bigint, word string", partitioned="bucket(4, id)")
    for number in range(2):
        make_rows(spark, name, 20 * number, 20 * number + 20)
    rows = rows_of(lake, name)
    policy, history = tmp_path / "rookery.yaml", f"sqlite:///{tmp_path / 'history.db'}"
    policy.write_text("defaults:\n  compaction: {min-files: 2}\n")
    words = [sys.executable, "-m", "tests.safety.interrupted_session", name, str(policy), history]
    with held_up(a_file(lake, name)) as pipe, running(words, rookery_home) as command:
        os_end = command.until_it_reads(pipe)
        command.signal(signal.SIGINT)
        code, out, said = command.ended()
        os.close(os_end)
    assert (code, said) == (0, []), said
    assert json.loads(out) == {"interrupted": True, "jobs": 0, "rows": 3}
    assert History(history).runs()[0].outcome is Outcome.STOPPED
    assert rows_of(lake, name) == rows


@pytest.mark.parametrize(("by", "number"), [("spark", signal.SIGINT), ("python", signal.SIGTERM)])
def test_analyze(
    spark: SparkSession, lake: Lake, new_table: NewTable, rookery_home: Path, by: str, number: int
) -> None:
    name = filled(spark, new_table)
    if by == "spark":
        spark.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    metadata = lake.load(name).metadata
    with (
        held_up(a_file(lake, name)) as pipe,
        running(["analyze", name, *SMALL], rookery_home) as command,
    ):
        wait = command.until_it_reads if by == "spark" else command.until_it_opens
        os_end = wait(pipe)
        command.signal(number)
        code, out, said = command.ended()
        os.close(os_end)
    assert (code, out, said) == (128 + number, "", ["error: interrupted"])
    assert lake.load(name).metadata == metadata
    beside = folder(lake, name)
    assert not beside.exists() or not list(beside.iterdir())
    rookery.analyze(spark, name, lake=lake)
    assert_right(spark, lake, name)


def test_imports(rookery_home: Path, tmp_path: Path) -> None:
    """A signal that comes before the command line itself is there."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "typer.py").write_text(f"open({str(pipe)!r}).read()\n")
    with running(["doctor"], rookery_home, PYTHONPATH=str(tmp_path)) as command:
        os_end = command.until_it_opens(pipe)
        command.signal(signal.SIGINT)
        code, out, said = command.ended()
        os.close(os_end)
    assert (code, out, said) == (130, "", ["error: interrupted"])


def test_the_start_of_spark(
    spark: SparkSession, lake: Lake, new_table: NewTable, rookery_home: Path, tmp_path: Path
) -> None:
    """The JVM that is about to start is killed."""
    name = filled(spark, new_table, 1)
    pipe, java = tmp_path / "pipe", tmp_path / "bin" / "java"
    os.mkfifo(pipe)
    java.parent.mkdir()
    java.write_text(
        f'#!/bin/sh\ncase "$*" in *launcher.Main*) ;; *SparkSubmit*) exec cat {pipe};; esac\n'
        f'exec {find_java().path} "$@"\n'
    )
    java.chmod(0o755)
    with running(["analyze", name, *SMALL], rookery_home, JAVA_HOME=str(tmp_path)) as command:
        os_end = command.until_it_reads(pipe)
        command.signal(signal.SIGINT)
        code = command.process.wait(timeout=120)
        with pytest.raises(BrokenPipeError):
            os.write(os_end, b"nobody reads")
        os.close(os_end)
        said = command.process.communicate()
    assert (code, said) == (130, ("", "error: interrupted\n"))


@pytest.mark.parametrize("files", [1, 4])  # read one behind the other, and by threads
def test_read(spark: SparkSession, lake: Lake, new_table: NewTable, rookery_home: Path, files: int) -> None:
    name = filled(spark, new_table, files)
    with held_up(a_file(lake, name)) as pipe, running(["read", name], rookery_home) as command:
        os_end = command.until_it_opens(pipe)
        command.signal(signal.SIGINT)
        code, out, said = command.ended()
        os.close(os_end)
    assert (code, out, said) == (130, "", ["error: interrupted"])


def test_puffin(rookery_home: Path) -> None:
    """A server that takes a connection, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/a.puffin"
        with running(["puffin", "inspect", url], rookery_home) as command, server.accept()[0]:
            command.signal(signal.SIGINT)
            code, out, said = command.ended()
    assert (code, out, said) == (130, "", ["error: interrupted"])


def test_watch_ends_at_once_when_it_is_told_twice(
    spark: SparkSession, lake: Lake, new_table: NewTable, rookery_home: Path, tmp_path: Path
) -> None:
    """The first signal lets the step end; its record says how the second one left it."""
    name = filled(spark, new_table)
    metadata = lake.load(name).metadata
    policy, history = tmp_path / "rookery.yaml", f"sqlite:///{tmp_path / 'history.db'}"
    policy.write_text("defaults:\n  compaction: {min-files: 2}\n")
    words = ["watch", name, "--once", "--policy", str(policy), "--history", history, *SMALL]
    with held_up(a_file(lake, name)) as pipe, running(words, rookery_home) as command:
        os_end = command.until_it_reads(pipe)
        while command.process.poll() is None:
            command.signal(signal.SIGTERM)
            threading.Event().wait(0.05)
        code, _, said = command.ended()
        os.close(os_end)
    assert code == 143
    assert said[-1] == "error: interrupted"
    assert not any("Traceback" in line for line in said), said
    assert [run.outcome for run in History(history).runs()] == [Outcome.INTERRUPTED]
    assert lake.load(name).metadata == metadata
