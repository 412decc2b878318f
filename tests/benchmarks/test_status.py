"""The benchmark of status runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.harness import Effort


def test_status_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way, in this process: that theirs are timed in others is not the point here."""
    from benchmarks.lake import open_bench
    from benchmarks.status.data import large_table, many_tables
    from benchmarks.status.ways import WAYS

    monkeypatch.setenv("ROOKERY_HOME", str(tmp_path))
    bench = open_bench(Effort(rounds=1, seconds=0, scale=1, data=tmp_path), jvm=False)
    many_tables(bench, 4)
    name = large_table(bench, 200)
    for way in WAYS.values():
        way(bench.lake, name)
