"""The benchmark of attached queries runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from benchmarks.harness import Effort, Row

from benchmarks import harness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_attach_runs(spark: SparkSession, tiny: Effort, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.attach import parts, rows
    from benchmarks.tpch import data

    few = {table: (key, 4) for table, (key, _) in data.CLUSTERED.items()}  # files
    monkeypatch.setattr(data, "CLUSTERED", few)
    for name in ("LOOKUPS", "JOINS"):
        monkeypatch.setattr(parts, name, 1)
    for module in (harness, parts):
        monkeypatch.setattr(module, "WARMING", 1)
    what = [row.what for row in rows(tiny) if isinstance(row, Row)]
    assert {"lookup, SQL", "lookup, DataFrame", "join with three keys", "Q12", "planning, 1 table"} <= set(
        what
    )
