"""Java is found, or missed in one sentence; with scripts that pretend to be Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.model import MachineError
from rookery.spark.java import Java, find_java, parse_version

PRINTED = {
    17: 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)',
    21: 'openjdk version "21" 2023-09-19',
    11: 'openjdk version "11.0.24" 2024-07-16',
    8: 'java version "1.8.0_402"\nJava(TM) SE Runtime Environment',
}


def _java(folder: Path, printed: str, status: int = 0) -> Path:
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\n/bin/cat >&2 <<'END'\n{printed}\nEND\nexit {status}\n")
    script.chmod(0o755)
    return script


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return monkeypatch


def _complaint() -> str:
    with pytest.raises(MachineError) as caught:
        find_java()
    assert "\n" not in caught.value.message
    assert "JAVA_HOME" in (caught.value.hint or "")
    assert "17" in (caught.value.hint or "")
    return caught.value.message


@pytest.mark.parametrize("major", [17, 21])
def test_on_the_path(major: int, tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    script = _java(tmp_path / "jdk", PRINTED[major])
    bare.setenv("PATH", str(script.parent))
    assert find_java() == Java(str(script), major)


def test_java_home_goes_before_the_path(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    bare.setenv("PATH", str(_java(tmp_path / "old", PRINTED[8]).parent))
    script = _java(tmp_path / "new", PRINTED[17])
    bare.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert find_java() == Java(str(script), 17)


def test_empty_java_home_counts_as_none(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    bare.setenv("PATH", str(_java(tmp_path / "jdk", PRINTED[17]).parent))
    bare.setenv("JAVA_HOME", "")
    assert find_java().major == 17


def test_missing(bare: pytest.MonkeyPatch) -> None:
    assert _complaint() == "Spark needs Java 17 or newer, and there is no java on the PATH"


def test_java_home_without_java(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    bare.setenv("JAVA_HOME", str(tmp_path))
    assert _complaint().endswith(f"JAVA_HOME is {tmp_path}, which has no bin/java")


@pytest.mark.parametrize("major", [8, 11])
def test_too_old(major: int, tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    script = _java(tmp_path / "jdk", PRINTED[major])
    bare.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert _complaint() == f"Spark needs Java 17 or newer, and {script} is Java {major}"


def test_silent(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    script = _java(tmp_path / "jdk", "Good day")
    bare.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert _complaint() == f"{script} does not print its version"


def test_broken(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    _java(tmp_path / "jdk", PRINTED[17], status=3)
    bare.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert "does not run" in _complaint()


def test_not_a_program(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    script = _java(tmp_path / "jdk", "")
    script.write_bytes(b"\x00\x01\x02")
    bare.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert "does not run" in _complaint()


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        *((text, major) for major, text in PRINTED.items()),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "22-ea" 2024-03-19', 22),
        ('openjdk version "17-internal"', 17),
        ("no version here", None),
        ("", None),
    ],
)
def test_parse_version(printed: str, major: int | None) -> None:
    assert parse_version(printed) == major
