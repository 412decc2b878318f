"""What attached sessions take does not grow with their queries, nor with sessions that are dropped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.attach.soaked import FEW
from tests.spark_home import DEFAULTS, with_archive

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
MOST_MORE = {
    "python threads": 4,
    "python files": 4,
    "python resident": 64 * MIB,
    "java threads": 4,
    "java files": 4,
    "java heap": 32 * MIB,
    "java resident": 64 * MIB,
}


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="what a process takes is read from /proc")
def test_queries_and_sessions_leave_nothing(tmp_path: Path) -> None:
    defaults = with_archive(DEFAULTS.read_text())
    # The heap is resident from the start, so that what else is resident is seen.
    text = defaults.replace("-XX:+UseSerialGC", "-XX:+UseSerialGC -Xms512m -XX:+AlwaysPreTouch")
    (tmp_path / DEFAULTS.name).write_text(text)
    environment = {
        "ROOKERY_HOME": str(tmp_path / "home"),
        "PYICEBERG_HOME": str(tmp_path / "home"),
        "SPARK_CONF_DIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.attach.soaked"],
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    more = {name: told["after"][name] - told["before"][name] for name in MOST_MORE}
    assert {name: (more[name], most) for name, most in MOST_MORE.items() if more[name] > most} == {}
    assert told["planners"] <= FEW, told
    assert told["again"] == "1 of 8"
