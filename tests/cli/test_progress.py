"""What a terminal shows while people wait: messages, and a bar with a total."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from rookery.cli import app, progress
from rookery.cli.app import run
from rookery.model.announce import LOGGER, announce
from rookery.sketch.kmv import ThetaBuilder, are_compiled
from tests.cli.conftest import Rookery
from tests.lakehouse import sqlite_lake


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A standard error that is a terminal."""
    file = io.StringIO()
    for module in ("rookery.cli.console", "rookery.cli.app", "rookery.cli.progress"):
        monkeypatch.setattr(
            f"{module}.talk", lambda: Console(file=file, force_terminal=True, color_system=None, width=100)
        )
    return file


def test_messages_are_for_terminals(terminal: io.StringIO, rookery: Rookery) -> None:
    before = logging.getLogger(LOGGER).level
    with app._logs_shown():
        announce("starting Spark")
    assert terminal.getvalue() == "starting Spark …\n"
    announce("nobody waits for this")
    assert terminal.getvalue() == "starting Spark …\n"
    assert logging.getLogger(LOGGER).level == before


def test_no_message_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with app._logs_shown():
        announce("starting Spark")
    assert capsys.readouterr() == ("", "")


def test_the_bar_has_a_total(terminal: io.StringIO) -> None:
    with progress.progress_bar("lake.db.t") as advance:
        assert advance is not None
        assert terminal.getvalue() == ""  # it is not known yet what is read
        advance(0, 12, 0, 3_000_000)
        advance(7, 12, 1_500_000, 3_000_000)
    shown = terminal.getvalue()
    assert "lake.db.t" in shown
    assert "7 of 12 files" in shown
    assert "1.5/3.0 MB" in shown


def test_kernels_that_are_not_compiled_yet(tmp_path: Path) -> None:
    script = "from rookery.sketch.kmv import are_compiled; print(are_compiled())"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=environment)
    assert ran.stdout == b"False\n"
    builder = ThetaBuilder()
    builder.add_fixed(np.arange(3, dtype=np.uint64).view(np.uint8), 0, 3, 8)
    assert are_compiled()


def test_a_dry_run_counts_the_tables(tmp_path: Path, rookery: Rookery) -> None:
    catalog = sqlite_lake(tmp_path / "a").catalog
    words = ["--uri", f"sqlite:///{tmp_path / 'a' / 'catalog.db'}", "maintain", "--dry-run"]
    for name in ("one", "two"):
        catalog.create_table(f"db.{name}", pa.schema([("id", pa.int64())]))
    err = rookery(*words)[2]
    assert [line.split(".", 1)[1] for line in err.splitlines()] == ["db.one (1 of 2)", "db.two (2 of 2)"]
    assert run(words) == 0
