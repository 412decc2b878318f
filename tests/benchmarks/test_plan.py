"""The benchmark of planning runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from benchmarks.harness import Effort

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_plan_runs(spark: SparkSession, tiny: Effort, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.plan import parts, rows

    monkeypatch.setattr(parts, "GROWTH", (1, 2))
    data = [row.data for row in rows(tiny)]
    assert len(data) == 14
    assert set(data) == {"25 files, 16 columns", "50 files, 16 columns"}
