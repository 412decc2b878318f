"""Building an inverted theta file by file gives what merging the files' own gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.sketch import MAX_THETA, InvertedTheta, InvertedThetaBuilder, ThetaSketch
from tests.sketch.reference import random_hashes


def _built(files: int, parts: list[tuple[int, ThetaSketch]]) -> InvertedTheta:
    builder = InvertedThetaBuilder(files)
    for ordinal, sketch in parts:
        builder.add(sketch, ordinal)
    return builder.result()


def _merged(files: int, parts: list[tuple[int, ThetaSketch]]) -> InvertedTheta:
    return InvertedTheta.merge([InvertedTheta.of(sketch, ordinal, files) for ordinal, sketch in parts])


@st.composite
def _sketches(draw: st.DrawFn) -> ThetaSketch:
    theta = draw(st.sampled_from([MAX_THETA, 40, 25]))
    hashes = sorted(draw(st.sets(st.integers(1, theta - 1 if theta < 50 else 50), max_size=20)))
    return ThetaSketch(np.array(hashes, np.uint64), theta)


@given(st.lists(st.tuples(st.integers(0, 19), _sketches()), min_size=1, max_size=8))
def test_small_sketches_are_joined_as_by_merge(parts: list[tuple[int, ThetaSketch]]) -> None:
    assert _built(20, parts) == _merged(20, parts)


@pytest.mark.parametrize("files", [9, 1024])
def test_many_hashes(files: int) -> None:
    parts = [(n, ThetaSketch(random_hashes(5_000, MAX_THETA, n), MAX_THETA)) for n in range(9)]
    built, merged = _built(files, parts), _merged(files, parts)
    theta = min(built.theta, merged.theta)
    assert built.below(theta) == merged.below(theta)
    assert theta < MAX_THETA


def test_theta_falls_while_files_come() -> None:
    builder = InvertedThetaBuilder(8)
    for number in range(4):
        builder.add(ThetaSketch(random_hashes(5_000, MAX_THETA, number), MAX_THETA), number)
    assert builder.theta < MAX_THETA


def test_nothing() -> None:
    assert InvertedThetaBuilder(3).result() == InvertedTheta.empty(3)
