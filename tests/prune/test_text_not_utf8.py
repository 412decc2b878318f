"""LIKE on text that is not UTF-8: Spark compares bytes, or text in which U+FFFD stands for such bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rookery.model import Field, Leaf
from rookery.prune.bounds import Bounds, might_match
from rookery.values.row_filter import true_values
from rookery.where.patterns import like

S = Field(1, "s", "string")
VALUES = [
    b"\xff",
    b"a\xffb",
    "\ufffd".encode(),
    "é".encode(),
    b"\xed\xa0\x80",
    "a\U0001f600b".encode(),
    b"ab",
]


@pytest.mark.parametrize(
    ("pattern", "places"),
    [
        ("_", [0, 2, 3, 4]),
        ("a_b", [1, 5]),
        ("a%b", [1, 5, 6]),
        ("%\ufffd%", [2]),
        ("%\ufffd", [2]),
        ("\ufffd", [2]),
        ("\ufffd%", [2]),
        ("\ufffd%%", [2]),
        ("%%\ufffd", [2]),
        ("\ufffd%\\\\%", []),
        ("%\ufffd%_", [1]),
        ("a\ufffd_", [1]),
        ("%é%", [3]),
    ],
)
@pytest.mark.parametrize("negated", [False, True])
def test_like(pattern: str, places: list[int], negated: bool) -> None:
    leaf = like(S, pattern, negated=negated)
    assert isinstance(leaf, Leaf)
    values = pa.array([*VALUES, None], pa.large_binary())
    expected = [(place in places) is not negated for place in range(len(VALUES))]
    assert true_values(leaf, values).tolist() == [*expected, False]
    kept = might_match(leaf, Bounds.of_values("string", values)).tolist()
    assert all(kept[place] for place, wanted in enumerate(expected) if wanted)
