"""Histograms from bounds and sketches, against the values that they describe."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rookery.sketch.quantiles import Quantiles
from rookery.spark.attach.histograms import BINS, Histogram, histogram

Floats = NDArray[np.float64]
RANK_ERROR = 0.03  # of the sketch, twice, and of one bin


def share_below(found: Histogram, value: float) -> float:
    """The share of rows below a value, as Spark computes it: even within a bin."""
    low, high = found.edges[:-1], found.edges[1:]
    width = high - low
    inside = np.divide(value - low, width, out=(low < value).astype(float), where=width > 0)
    return float(np.clip(inside, 0, 1).mean())


def described(files: list[Floats], *, sketched: bool) -> Histogram | None:
    values = np.concatenate(files)
    sketch = Quantiles.empty("double").with_values(pa.array(values)) if sketched else None
    lower, upper = (np.array([end(file) for file in files]) for end in (np.min, np.max))
    rows = np.array([len(file) for file in files], float)
    return histogram(lower, upper, rows, sketch, ndv=len(np.unique(values)), whole=False)


@pytest.mark.parametrize("clustered", [True, False])
@pytest.mark.parametrize("power", [1.0, 4.0])
def test_ranges_are_estimated(clustered: bool, power: float) -> None:
    values = np.random.default_rng(5).random(20_000) ** power * 1000
    files = np.array_split(np.sort(values) if clustered else values, 20)
    found = described(files, sketched=True)
    assert found is not None
    for limit in np.quantile(values, [0.01, 0.1, 0.5, 0.9, 0.99]):
        assert share_below(found, limit) == pytest.approx((values < limit).mean(), abs=RANK_ERROR)


def test_bounds_of_clustered_files_show_skew_without_a_sketch() -> None:
    values = np.sort(np.random.default_rng(6).random(20_000) ** 4 * 1000)
    found = described(np.array_split(values, 50), sketched=False)
    assert found is not None
    for limit in np.quantile(values, [0.1, 0.5, 0.9]):
        assert share_below(found, limit) == pytest.approx((values < limit).mean(), abs=RANK_ERROR)


def test_an_even_distribution_needs_no_histogram() -> None:
    values = np.random.default_rng(7).random(10_000)
    assert described(np.array_split(values, 10), sketched=False) is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sketched", [True, False])
def test_a_range_whose_width_is_infinite_has_no_histogram(sketched: bool) -> None:
    assert (
        described([np.array([-1.7e308, 0.0, 1.0]), np.array([2.0, 3.0, 1.7e308])], sketched=sketched) is None
    )


def test_a_frequent_value_has_bins_of_its_own() -> None:
    values = np.concatenate([np.full(6000, 7.0), np.random.default_rng(8).random(4000) * 100])
    found = described([values], sketched=True)
    assert found is not None
    alone = (found.edges[:-1] == 7) & (found.edges[1:] == 7)
    assert alone.mean() == pytest.approx(0.6, abs=RANK_ERROR)
    assert (found.ndvs[alone] == 1).all()


def test_only_the_files_that_are_left_count() -> None:
    values = np.sort(np.random.default_rng(9).random(20_000) ** 3)
    whole = Quantiles.empty("double").with_values(pa.array(values))
    last = values[15_000:]
    found = histogram(last[:1], last[-1:], np.array([5000.0]), whole, ndv=len(np.unique(last)), whole=False)
    assert found is not None
    assert found.edges[0] == last[0]
    assert share_below(found, float(np.median(last))) == pytest.approx(0.5, abs=RANK_ERROR)


@given(
    st.lists(
        st.lists(st.integers(-1000, 1000), min_size=1, max_size=20).map(lambda each: np.array(each, float)),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)
def test_bins_ascend_between_the_bounds(files: list[Floats], sketched: bool) -> None:
    found = described(files, sketched=sketched)
    if found is None:
        return
    values = np.concatenate(files)
    assert (np.diff(found.edges) >= 0).all()
    assert (found.edges[0], found.edges[-1]) == (values.min(), values.max())
    assert len(found.ndvs) == len(found.edges) - 1 <= BINS
    assert (found.ndvs >= 1).all()
