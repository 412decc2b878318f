"""The quickstart of the README, with the wheel in an empty environment: a newcomer's first five minutes."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from tests.installed_wheel import ROOT, build_wheel, install, link_packages
from tests.test_documents import blocks


def quickstart() -> list[list[str]]:
    (block,) = [text for text in blocks(ROOT / "README.md", "console") if "pip install" in text]
    return [
        shlex.split(line.removeprefix("$ ")) for line in block.splitlines() if line.startswith("$ rookery ")
    ]


def test_without_pyspark_and_then_with_it(tmp_path: Path) -> None:
    programs = install(build_wheel(tmp_path), tmp_path / "env")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
    variables |= {
        name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ
    }  # Ivy's jars
    variables |= {"ROOKERY_HOME": str(tmp_path), "PYICEBERG_HOME": str(tmp_path)}

    def call(*words: str) -> str:
        ran = subprocess.run(
            words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False, timeout=300
        )
        assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr
        return ran.stdout

    found = (
        "import importlib.util as u; print([u.find_spec(name) is not None for name in ('pyspark', 'pytest')])"
    )
    assert call("python", "-c", found) == "[False, False]\n"
    printed = [call(*words) for words in quickstart()]
    assert printed[-1].count("\n") >= 2
    counted = call("rookery", "stats", "db.orders")
    link_packages(tmp_path / "env", "rookery[spark]")
    assert call("python", "-c", found) == "[True, False]\n"
    call("rookery", "analyze", "db.orders", "--full", "--engine", "spark")
    assert call("rookery", "stats", "db.orders") == counted
