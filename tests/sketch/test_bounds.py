"""Confidence bounds: as the reference has them, in order, and true to their promise."""

from __future__ import annotations

import math

import datasketches
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.sketch import MAX_THETA, ThetaSketch
from rookery.sketch.bounds import sampled_bounds
from tests.sketch.reference import random_hashes, reference

COUNTS = [0, 1, 2, 3, 5, 10, 30, 60, 100, 119, 120, 121, 122, 150, 300, 1000, 4096]
SHARES = [0.999, 0.99, 0.9, 0.75, 0.5, 0.34, 0.33, 0.2, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-6]

# Of the distance between the bounds; below 121 samples the reference interpolates in tables, in places
# coarsely, and gives fractions where we give whole numbers.
TOLERANCE = 0.02


@pytest.mark.parametrize("deviations", [1, 2, 3])
@pytest.mark.parametrize("count", COUNTS)
def test_the_references_bounds(count: int, deviations: int) -> None:
    for share in SHARES:
        theta = int(MAX_THETA * share)
        ours = ThetaSketch(random_hashes(count, theta, seed=count), theta)
        theirs = datasketches.compact_theta_sketch.deserialize(ours.encode())
        low, high = theirs.get_lower_bound(deviations), theirs.get_upper_bound(deviations)
        allowed = TOLERANCE * (high - low) + 1.5
        found = ours.estimate(deviations)
        assert abs(found.low - low) <= allowed, (share, found, low)
        assert abs(found.high - high) <= allowed, (share, found, high)


@pytest.mark.parametrize("values", [40, 100, 1000, 10_000])
@pytest.mark.parametrize("lg_k", [5, 8, 12])
def test_the_references_bounds_of_real_sketches(values: int, lg_k: int) -> None:
    theirs = reference(range(values), lg_k)
    ours = ThetaSketch.decode(theirs.serialize())
    for deviations in (1, 2, 3):
        found = ours.estimate(deviations)
        low, high = theirs.get_lower_bound(deviations), theirs.get_upper_bound(deviations)
        allowed = TOLERANCE * (high - low) + 1.5
        assert abs(found.low - low) <= allowed
        assert abs(found.high - high) <= allowed


@given(
    samples=st.integers(0, 200),
    share=st.floats(1e-18, 1.0) | st.integers(1, MAX_THETA).map(lambda theta: theta / MAX_THETA),
)
@settings(max_examples=200)
def test_bounds_are_in_order(samples: int, share: float) -> None:
    before = None
    for deviations in (1, 2, 3):
        low, high = sampled_bounds(samples, share, deviations)
        assert samples <= low <= samples / share <= high < math.inf
        if before is not None:
            assert low <= before[0]
            assert before[1] <= high
        before = (low, high)


@given(samples=st.integers(0, 150), exponent=st.integers(0, 40))
def test_bounds_scale_with_a_small_share(samples: int, exponent: int) -> None:
    """Half the share speaks for twice the population: no rounding error may grow into the answer."""
    share = 2.0**-22
    low, high = sampled_bounds(samples, share)
    far_low, far_high = sampled_bounds(samples, share / 2**exponent)
    assert far_low == pytest.approx(low * 2**exponent, rel=1e-4, abs=2.0 ** (exponent + 1))
    assert far_high == pytest.approx(high * 2**exponent, rel=1e-4, abs=2.0 ** (exponent + 1))


@pytest.mark.parametrize("theta", [1, 2, 3, 1000, 2**20])
@pytest.mark.parametrize("count", [0, 1, 120, 121])
def test_the_smallest_shares_there_are(theta: int, count: int) -> None:
    """A sketch may claim any θ; its estimate must not fail over it."""
    share = theta / MAX_THETA
    low, high = sampled_bounds(count, share)
    assert count <= low <= count / share <= high
    assert high >= 1 / share


def test_a_whole_share_is_exact() -> None:
    for deviations in (1, 2, 3):
        assert sampled_bounds(7, 1.0, deviations) == (7.0, 7.0)
        assert sampled_bounds(0, 1.0, deviations) == (0.0, 0.0)


@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("population", [40, 400, 4000])
def test_the_truth_lies_between_as_often_as_promised(share: float, population: int) -> None:
    """Two deviations hold at least 95 % of the time; a draw of 1,000 leaves room for chance."""
    drawn = np.random.default_rng(7).binomial(population, share, 1000)
    held = sum(low <= population <= high for low, high in (sampled_bounds(int(n), share) for n in drawn))
    assert held >= 935
