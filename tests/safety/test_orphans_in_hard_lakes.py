"""Random lakes that are hard to clear up: what any table of any catalog needs stays, and true orphans go."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.safety.orphan_lakes import run_lake

LAKES = 30


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
def test_nothing_that_is_needed_is_removed() -> None:
    tally: Counter[str] = Counter()
    for number in range(LAKES):
        run_lake(f"suite/{number}", tally)
    assert tally["lakes"] == LAKES
    assert tally["true orphans gone"] > LAKES
    assert tally["refused"]
    assert tally["orphans outside gone"]
    assert tally["orphans outside left"]
