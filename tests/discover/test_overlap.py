"""Counts of common hashes against sets, also where many columns share one."""

from __future__ import annotations

import numpy as np
import pytest

from rookery.discover import ColumnFacts, overlap, overlaps
from rookery.sketch import MAX_THETA, ThetaSketch


@pytest.mark.parametrize("many", [0, 3, 64])
@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_sets(seed: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "_MANY", many)
    monkeypatch.setattr(overlap, "_BLOCK", 7)
    random = np.random.default_rng(seed)
    columns, sets = [], []
    for number in range(9):
        theta = MAX_THETA if random.integers(2) else int(random.integers(20, 60))
        hashes = np.unique(random.integers(1, min(theta, 60), random.integers(1, 30), np.uint64))
        sets.append((set(hashes.tolist()), theta))
        columns.append(ColumnFacts("t", (f"c{number}",), ("long",), ThetaSketch(hashes, theta), 100))
    (found,) = overlaps(columns)
    for i, (own, own_theta) in enumerate(sets):
        for j, (other, theta) in enumerate(sets):
            assert found.common[i, j] == len(own & other)
            assert found.sampled[i, j] == sum(each < theta for each in own)
            assert found.shares[i, j] == min(own_theta, theta) / MAX_THETA


def test_columns_of_other_types_and_without_values_are_not_compared() -> None:
    whole = ThetaSketch(np.array([1, 2], np.uint64))
    none = ThetaSketch(np.empty(0, np.uint64))
    facts = [
        ColumnFacts("t", ("c",), (kind,), sketch, 2)
        for kind, sketch in (("int", whole), ("long", whole), ("date", whole), ("int", none))
    ]
    assert overlaps(facts) == []
    assert overlaps([]) == []
