"""The benchmark of estimates runs, and its filters are the same in each run."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from benchmarks.harness import Effort

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]


def test_estimates_run(spark: SparkSession, tiny: Effort, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.estimate import attached, joins, parts
    from benchmarks.tpch import data

    few = {table: (key, 4) for table, (key, _) in data.CLUSTERED.items()}  # files
    monkeypatch.setattr(data, "CLUSTERED", few)
    monkeypatch.setattr(parts, "FILTERS", 20)
    for module in (parts, attached):
        monkeypatch.setattr(module, "PAIRS", 5)
    monkeypatch.setattr(joins, "QUERIES", {name: joins.QUERIES[name] for name in ("Q3", "Q5")})
    measures = list(parts.rows(tiny))
    own, by_spark, by_joins = 4 * 3 + 2 * 2, 4 * 4 + 3 + 1 + 3 + 2, 2
    assert len(measures) == own + by_spark + by_joins
    assert all(measure.value >= 1 for measure in measures if measure.unit == "×")
    curves = [measure.series for measure in measures if measure.series]
    assert [len(curve) for curve in curves] == [99] * 3
    assert all(list(curve) == sorted(curve) for curve in curves)


def test_the_copy_of_a_table_has_its_files_and_no_state(spark: SparkSession, tiny: Effort) -> None:
    from benchmarks.estimate.data import skewed
    from benchmarks.estimate.peers import copy_of, make_copies
    from benchmarks.lake import beside, open_bench, sizes

    bench = open_bench(tiny)
    name = skewed(bench, tiny).name
    make_copies(bench, [name])
    copy = copy_of(name)
    assert sizes(bench.table(copy)) == sizes(bench.table(name))
    assert len(bench.table(copy).metadata.statistics) == 1
    assert beside(bench, name).exists()
    assert not beside(bench, copy).exists()


def test_estimators_are_compared_by_percentile() -> None:
    from benchmarks.estimate.errors import empty_estimates, percentiles, worse_percentiles

    assert percentiles(list(range(1, 101)))[:3] == [2, 3, 4]
    assert worse_percentiles([1, 1, 2, 2], [1, 1.5, 2, 1.9]) == 25
    assert worse_percentiles([1.0001] * 4, [1] * 4) == 0
    assert empty_estimates([0, 0, 5, 1], [3, 0, 5, 1]) == 1


def test_the_figure_has_a_line_for_each_estimator() -> None:
    spec = importlib.util.spec_from_file_location("draw_estimates", ROOT / "tools" / "draw_estimates.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    rows = [
        {"what": f"{tool.BY_PERCENTILE}{name}: the greatest shown", "series": [1.0] * 98 + [5e4]}
        for name in tool.COLOURS
    ]
    figure = ElementTree.fromstring(tool.drawn([{"what": "q-error, median"}, *rows]))
    lines = figure.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 3
    assert {len(line.attrib["points"].split()) for line in lines} == {99}


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
