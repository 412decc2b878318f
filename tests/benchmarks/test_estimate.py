"""The benchmark of estimates runs, and its filters are the same in each run."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
from benchmarks.harness import Effort

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_estimates_run(spark: SparkSession, tiny: Effort) -> None:
    from benchmarks.estimate import rows

    measures = list(rows(tiny))
    assert len(measures) == 4 * 3 + 2 * 2
    assert all(measure.value >= 1 for measure in measures if measure.unit == "×")


def test_filters_are_reproducible_and_about_values_that_occur() -> None:
    from benchmarks.estimate.filters import Filtered, filters, pairs

    rows = pa.table({"a": [1, 2, 3, None], "b": ["x", "it's", "z", "z"]})
    table = Filtered("t", rows, ("a", "b"))
    first, again = (filters(table, random.Random(3), 30) for _ in range(2))
    assert first == again
    assert len(set(first)) == 30
    assert set(pairs(table, random.Random(3), ("a", "b"), 3)) == {
        "a = 1 AND b = 'x'",
        "a = 2 AND b = 'it''s'",
        "a = 3 AND b = 'z'",
    }


def test_q_error_is_the_same_both_ways_and_never_below_one() -> None:
    from benchmarks.estimate.errors import q_errors, quantile

    assert q_errors([10, 40, 0, 0.2], [40, 10, 0, 5]) == [4, 4, 1, 5]
    assert quantile([1, 2, 3, 4], 0.95) == 4
