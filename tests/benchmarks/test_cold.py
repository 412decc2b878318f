"""The benchmark of cold commands measures the commands alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from benchmarks.cold.parts import launched

MOST = 64 << 20


def python(program: str) -> tuple[str, ...]:
    return sys.executable, "-S", "-c", program


def test_memory_is_that_of_the_program() -> None:
    ours = bytearray(b"x" * 2 * MOST)  # which the program does not begin with
    assert launched(python("pass"))[1] < MOST < len(ours)
    assert launched(python(f"bytearray(b'x' * {MOST})"))[1] > MOST


def test_time_is_that_of_the_program() -> None:
    idle, busy = launched(python("pass"))[0], launched(python("sum(range(10_000_000))"))[0]
    assert idle < busy


def test_programs_that_fail() -> None:
    launched(python("raise SystemExit(1)"))
    with pytest.raises(subprocess.CalledProcessError):
        launched(python("raise SystemExit(2)"))
