"""The benchmark of joins runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from benchmarks.harness import Effort, Measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_joins_run(spark: SparkSession, tiny: Effort, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.joins import data, rows

    few = {table: (key, 8) for table, (key, _) in data.CLUSTERED.items()}  # files
    monkeypatch.setattr(data, "CLUSTERED", few)
    measures = [row for row in rows(tiny) if isinstance(row, Measure)]
    assert len(measures) == 6
    assert all(row.value <= row.peer_value for row in measures if row.peer_value is not None)
