from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.cli.app import run
from tests.isolation import isolate
from tests.samples import write_sample

Rookery = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, and no word from the environment on how to print."""
    for variable in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "JAVA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return isolate(tmp_path_factory.mktemp("isolated"), monkeypatch)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return write_sample(tmp_path / "sample.puffin")


@pytest.fixture
def rookery(capsys: pytest.CaptureFixture[str]) -> Rookery:
    """Run a command in this process; return the exit code, standard output and standard error."""

    def call(*words: object) -> tuple[int, str, str]:
        code = run([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def program() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run `python -m rookery` as a program of its own."""

    def call(*words: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "rookery", *map(str, words)],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )

    return call
