"""Without PySpark, small tables are analyzed; for large ones, the error says what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from tests.lakehouse import sqlite_lake, sqlite_words

ROWS = pa.table({"id": [1, 2, 3], "word": ["a", "b", "b"]})
_PROGRAM = """
import json, sys
sys.modules["pyspark"] = None  # as if it were not installed
from rookery.cli.app import run
from rookery.collect import engine_choice
options = json.loads(sys.argv[1])
codes = [run([*options, "analyze", "db.t"])]
engine_choice.LOCAL_LIMIT = 0
codes.append(run([*options, "analyze", "db.t", "--full"]))
codes.append(run([*options, "analyze", "db.t", "db.other"]))
codes.append(run([*options, "analyze", "db.t", "--full", "--engine", "local"]))
assert not [name for name in sys.modules if name.startswith(("pyspark.", "py4j"))]
sys.exit(json.dumps(codes))
"""


def test_without_pyspark(tmp_path: Path) -> None:
    catalog = sqlite_lake(tmp_path).catalog
    for name in ("db.t", "db.other"):
        catalog.create_table(name, ROWS.schema).append(ROWS)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(sqlite_words(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stderr.splitlines()
    assert json.loads(lines.pop()) == [0, 2, 1, 0], done.stderr
    assert done.stdout.count("2  exact") == 2
    assert "db.t: nothing has changed" in done.stdout
    error, hint = [line for line in lines if line.startswith(("error:", "hint:"))][:2]
    assert error.startswith("error: the package pyspark is not installed; Spark is used, as ")
    assert hint == "hint: pip install 'rookery[spark]'; or use the engine local, which takes longer"
