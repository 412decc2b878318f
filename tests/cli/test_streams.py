"""Streams that are closed or full, and how the process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tests.lakehouse import sqlite_lake, sqlite_words
from tests.samples import UNKNOWN_PAYLOAD

ENDS = """
import atexit, ctypes, threading, time, tempfile, sys
from concurrent.futures import ThreadPoolExecutor
from rookery.cli.entry import main

libc = ctypes.CDLL(None)  # a native library whose threads are not joined aborts when it is torn down
getattr(libc, "__cxa_atexit")(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
pool = ThreadPoolExecutor(1)  # never shut down
pool.submit(time.sleep, 0)
folder = tempfile.TemporaryDirectory(dir=sys.argv.pop(1))
threading.Thread(target=lambda: (time.sleep(0.3), print("thread"))).start()
atexit.register(print, "exit function")
main()
"""


def _ran(*words: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, *map(str, words)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, check=False, timeout=120, **streams)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    ("words", "code", "printed"), [(["--version"], 0, b"Rookery "), (["nosuch"], 2, b""), ([], 2, b"")]
)
def test_the_end_is_no_abort(tmp_path: Path, words: list[str], code: int, printed: bytes) -> None:
    ran = _ran("-c", ENDS, tmp_path, *words)
    assert ran.returncode == code, ran.stderr
    assert printed in ran.stdout
    assert b"thread\n" in ran.stdout
    assert ran.stdout.endswith(b"exit function\n")
    assert list(tmp_path.iterdir()) == []  # what exit functions remove is gone


def test_a_signal_ends_the_wait_for_threads() -> None:
    code = (
        "import threading, time\n"
        "from rookery.cli.entry import main\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "main(['--version'])\n"
    )
    with subprocess.Popen([sys.executable, "-uc", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"Rookery")
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The options that name a catalog with the table db.t."""
    folder = tmp_path_factory.mktemp("lake")
    catalog = sqlite_lake(folder).catalog
    rows = pa.table({"id": [1, 2], "s": ["a", "b"]})
    catalog.create_table("db.t", rows.schema).append(rows)
    return sqlite_words(folder)


COMMANDS = [
    *(["read", "db.t", "--output", output] for output in ("text", "json", "arrow", "parquet")),
    ["count", "db.t"],
    ["stats", "db.t", "--output", "json"],
    ["status", "db.t", "--output", "prometheus"],
    ["doctor", "--only", "python"],
    ["puffin", "cat", "FILE", "--blob", "2"],
    ["puffin", "inspect", "FILE", "--output", "json"],
    ["--version"],
    ["--help"],
]


def _refused(ran: subprocess.CompletedProcess[bytes], why: str) -> None:
    error, hint = ran.stderr.decode().splitlines()
    assert ran.returncode == 2
    assert error == f"error: standard output cannot be written: {why}"
    assert hint.startswith("hint: ")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_output_that_cannot_be_printed(lake: list[str], sample: Path, words: list[str]) -> None:
    command = ["-m", "rookery", *lake, *(str(sample) if word == "FILE" else word for word in words)]
    with open("/dev/full", "wb") as full:
        _refused(_ran(*command, stdout=full), "No space left on device")
    _refused(_ran(*command, stdout=None, preexec_fn=lambda: os.close(1)), "Bad file descriptor")


@pytest.mark.parametrize("words", [["inspect"], ["cat", "--blob", "2"]], ids=" ".join)
def test_output_without_a_buffer(sample: Path, words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        ran = _ran("-u", "-m", "rookery", "puffin", words[0], sample, *words[1:], stdout=full)
    _refused(ran, "No space left on device")


@pytest.mark.parametrize("words", [["nosuch"], ["puffin", "inspect", "missing"]])
def test_nobody_to_talk_to(words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        ran = _ran("-m", "rookery", *words, stderr=full)
    assert (ran.returncode, ran.stdout) == (2, b"")
    ran = _ran("-m", "rookery", *words, stderr=None, preexec_fn=lambda: os.close(2))
    assert (ran.returncode, ran.stdout) == (2, b"")


def test_data_is_printed_without_the_other_streams(sample: Path) -> None:
    def close() -> None:
        os.close(0)
        os.close(2)

    command = ["-m", "rookery", "puffin", "cat", sample, "--blob", "2"]
    ran = _ran(*command, stdin=None, stderr=None, preexec_fn=close)
    assert (ran.returncode, ran.stdout) == (0, UNKNOWN_PAYLOAD)
