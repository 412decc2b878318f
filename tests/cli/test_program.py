"""Rookery as a program of its own: streams, terminals, start-up."""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rookery.puffin import Blob, Writer
from rookery.version import __version__
from tests.samples import UNKNOWN_PAYLOAD

Program = Callable[..., "subprocess.CompletedProcess[bytes]"]


def test_data_on_stdout_and_talk_on_stderr(program: Program, sample: Path) -> None:
    good = program("puffin", "cat", sample, "--blob", 2)
    assert (good.returncode, good.stdout, good.stderr) == (0, UNKNOWN_PAYLOAD, b"")
    bad = program("puffin", "cat", sample, "--blob", 3)
    assert (bad.returncode, bad.stdout) == (2, b"")
    assert bad.stderr.decode().splitlines() == [f"error: {sample} has no blob 3", "hint: it has 3: 0 to 2"]


def test_script_is_installed() -> None:
    script = Path(sys.executable).parent / "rookery"
    ran = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"Rookery {__version__}\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_closed_pipe_is_no_drama(tmp_path: Path, unbuffered: str) -> None:
    with Writer(tmp_path / "big.puffin", codec="none") as writer:
        writer.add(Blob("big", bytes(4 << 20)))  # more than any pipe holds
    process = subprocess.Popen(
        [sys.executable, "-m", "rookery", "puffin", "cat", str(tmp_path / "big.puffin"), "--blob", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    with process:
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_does_not_fit_is_an_error(sample: Path, tmp_path: Path, unbuffered: str) -> None:
    limit = len(UNKNOWN_PAYLOAD) // 2  # the first write takes this much, the next one fails
    with open(tmp_path / "out", "wb") as out:
        ran = subprocess.run(
            [sys.executable, "-m", "rookery", "puffin", "cat", str(sample), "--blob", "2"],
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
    assert ran.returncode == 2
    assert b"File too large" in ran.stderr


def _on_a_terminal(words: list[str], environment: dict[str, str]) -> bytes:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "rookery", *words], environment)
    seen = b""
    try:
        while more := os.read(terminal, 1 << 16):
            seen += more
    except OSError:  # how Linux says that the other side has gone
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    return seen


def test_terminals_get_colour_unless_told_otherwise(sample: Path) -> None:
    words = ["puffin", "inspect", str(sample)]
    environment = {**os.environ, "TERM": "xterm-256color"}
    assert b"\x1b[" in _on_a_terminal(words, environment)
    assert b"\x1b" not in _on_a_terminal(words, {**environment, "NO_COLOR": "1"})


def test_terminal_that_cannot_show_everything(program: Program, sample: Path) -> None:
    odd = sample.rename(sample.parent / "ärger.puffin")
    ran = program("puffin", "verify", odd, PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"\\xe4rger.puffin" in ran.stdout


def test_local_file_costs_no_heavy_imports(sample: Path) -> None:
    code = (
        "import sys\n"
        "from rookery.cli.app import run\n"
        f"assert run(['puffin', 'inspect', {str(sample)!r}]) == 0\n"
        "heavy = {'pyspark', 'pyiceberg', 'pyarrow', 'fsspec', 'pandas', 'sqlalchemy'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.fixture
def without_spark(tmp_path: Path) -> dict[str, str]:
    """The environment of a Python that has every package but pyspark."""
    site = tmp_path / "site"
    site.mkdir()
    for package in Path(pytest.__file__).parents[1].iterdir():
        if not package.name.startswith(("pyspark", "__pycache__")):
            (site / package.name).symlink_to(package)
    source = Path(__file__).parents[2] / "src"
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{source}"}


def test_doctor_without_pyspark(without_spark: dict[str, str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-S", "-m", "rookery", "doctor", "--only", "spark", "--only", "python"],
        capture_output=True,
        text=True,
        check=False,
        env=without_spark,
    )
    assert (ran.returncode, ran.stderr) == (0, "")  # it is optional
    assert "·  spark" in ran.stdout
    assert "not installed" in ran.stdout
    assert "hint: spark: pip install 'rookery[spark]'" in ran.stdout


def test_session_without_pyspark(without_spark: dict[str, str]) -> None:
    code = (
        "import rookery\n"
        "try:\n"
        "    rookery.connect('lake').spark()\n"
        "except rookery.RookeryError as error:\n"
        "    print(type(error).__name__, error.message, error.hint, sep='|')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False, env=without_spark
    )
    assert ran.stdout == "MachineError|the package pyspark is not installed|pip install 'rookery[spark]'\n"
