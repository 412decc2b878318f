"""The parts of the benchmark, all of them in processes with no JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Effort, Measure
from benchmarks.lake import open_bench
from benchmarks.status.data import large_table, many_tables
from benchmarks.status.ways import WAYS

TITLE = "Status, from metadata alone"
PACKAGES = ("rookery", "pyiceberg", "pyarrow", "numpy")
TABLES, FILES = 1_000, 50_000
ALL_TABLES, ALL_AGAIN, WITH_STATE, WITHOUT_STATE = 6.0, 2.0, 1.0, 6.0  # seconds asked for
SCRIPT = Path(__file__).with_name("ways.py")
PEER = "PyIceberg's inspect tables"


def rows(effort: Effort) -> Iterator[Measure]:
    bench = open_bench(effort, jvm=False)
    tables, files = effort.of(TABLES), effort.of(FILES)
    many_tables(bench, tables)
    data = f"{tables:,} tables, half with a state, a third of them stale"
    theirs = _fastest(bench.folder, "inspect-all", effort)
    ours = _fastest(bench.folder, "status-all", effort)
    yield Measure("status of all tables", data, ours["seconds"], "s", ALL_TABLES, PEER, theirs["seconds"])
    whole, theirs_whole = ours["process"], theirs["process"]
    yield Measure("the same, with Python's start", data, whole, "s", None, PEER, theirs_whole)
    yield Measure("the same again, nothing has changed", data, ours["again"], "s", ALL_AGAIN)
    name = large_table(bench, files)
    data = f"{files:,} files, 16 columns, 1 % of them new since the state"
    theirs = _fastest(bench.folder, "inspect", effort, name)
    for what, way, limit in (
        ("status of one table, with its state", "status", WITH_STATE),
        ("status of one table, with no state", "status-unknown", WITHOUT_STATE),
    ):
        ours = _fastest(bench.folder, way, effort, name)
        yield Measure(
            f"{what}, first in a process", data, ours["seconds"], "s", limit, PEER, theirs["seconds"]
        )
        yield Measure(f"{what}, again", data, ours["again"], "s", None, PEER, theirs["again"])


def _fastest(folder: Path, way: str, effort: Effort, *names: str) -> dict[str, float]:
    """The best of a few processes; each is measured from inside."""
    assert way in WAYS
    # As a script: the package's other parts bring Spark's Python side along.
    words = [sys.executable, str(SCRIPT), str(folder), way, *names]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    found: list[dict[str, float]] = []
    for _ in range(min(effort.rounds, 3)):
        ran = subprocess.run(words, check=True, stdout=subprocess.PIPE, env=environment)
        found.append(json.loads(ran.stdout.splitlines()[-1]))
    return {key: min(each[key] for each in found) for key in found[0]}
