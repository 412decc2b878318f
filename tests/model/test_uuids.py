"""Bounds of UUIDs prove no more than is so, whichever order their writer had."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.model.uuids import is_cut, proven_uuids

HALVES = st.sampled_from(
    [bytes([first]) + b"\x00" * 6 + bytes([last]) for first in (0, 0x7F, 0x80, 0xFF) for last in (0, 1)]
)
UUIDS = st.tuples(HALVES, HALVES).map(b"".join)
GROUPS = st.lists(st.lists(UUIDS, min_size=1, max_size=3), min_size=1, max_size=3)
Order = Callable[[bytes], object]


def by_bytes(value: bytes) -> bytes:
    return value


def as_java_does(value: bytes) -> tuple[int, int]:
    return int.from_bytes(value[:8], signed=True), int.from_bytes(value[8:], signed=True)


@pytest.mark.parametrize(
    ("inside", "between"), [(by_bytes, by_bytes), (by_bytes, as_java_does), (as_java_does, as_java_does)]
)
@given(groups=GROUPS)
def test_bounds_of_several(inside: Order, between: Order, groups: list[list[bytes]]) -> None:
    """Of row groups by one order, and of those by another."""
    least = min((min(group, key=inside) for group in groups), key=between)
    most = max((max(group, key=inside) for group in groups), key=between)
    lower, upper = proven_uuids(pa.array([least]), pa.array([most]), pa.array([False]))
    values = [value for group in groups for value in group]
    assert all(not lower[0].is_valid or lower[0].as_py() <= value for value in values)
    assert all(not upper[0].is_valid or upper[0].as_py() >= value for value in values)
    assert all(is_cut(end[0].as_py()) for end in (lower, upper) if end[0].is_valid)


def test_bounds_of_one() -> None:
    ends = pa.array([b"\x80" * 16, None]), pa.array([b"\x90" * 16, b"\x01" * 16])
    assert [found.to_pylist() for found in proven_uuids(*ends, pa.array([True, True]))] == [
        end.to_pylist() for end in ends
    ]
    assert not is_cut(b"\x80" * 16)
