"""Where a serialized 32-bit bitmap ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from rookery.puffin.roaring import bitmap32_size

PARTS = st.lists(
    st.sets(st.integers(0, 2**32 - 1), max_size=30)
    | st.builds(
        lambda start, step, count: set(range(start, start + step * count, step)),
        st.integers(0, 2**31),
        st.integers(1, 5),
        st.integers(1, 9000),
    ),
    max_size=4,
)

# One of each kind of container, and enough of them for the offset header that runs need from four on.
SHAPES = {
    "empty": BitMap(),
    "one": BitMap([7]),
    "array": BitMap(range(0, 8192, 2)),
    "bitset": BitMap(range(0, 8194, 2)),
    "run": BitMap(range(5000)),
    "whole container": BitMap(range(1 << 16)),
    "three runs": BitMap(n + (k << 16) for k in range(3) for n in range(100)),
    "four runs": BitMap(n + (k << 16) for k in range(4) for n in range(100)),
    "nine runs": BitMap(n + (k << 16) for k in range(9) for n in range(100)),
    "a mix": BitMap([1, 2, *range(1 << 16, 1 << 17), *range(1 << 17, (1 << 17) + 20_000, 3)]),
}


def serialized(bitmap: BitMap, runs: bool) -> bytes:
    bitmap = bitmap.copy()
    if runs:
        bitmap.run_optimize()
    return bitmap.serialize()


@given(parts=PARTS, runs=st.booleans(), behind=st.binary(max_size=20))
def test_the_size_of_any_bitmap(parts: list[set[int]], runs: bool, behind: bytes) -> None:
    data = serialized(BitMap(set().union(*parts)), runs)
    assert bitmap32_size(memoryview(data + behind)) == len(data)


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_kind_of_container(shape: str, runs: bool) -> None:
    data = serialized(SHAPES[shape], runs)
    assert bitmap32_size(memoryview(data)) == len(data)
    assert bitmap32_size(memoryview(data + bytes(9))) == len(data)
    # Every cut in the headers, and some in the containers.
    for length in {*range(min(len(data), 200)), *range(0, len(data), 97), len(data) - 1}:
        assert bitmap32_size(memoryview(data)[:length]) is None


@pytest.mark.parametrize("cookie", [0, 12345, 12348, 0xFFFFFFFF])
def test_an_unknown_cookie_has_no_size(cookie: int) -> None:
    assert bitmap32_size(memoryview(cookie.to_bytes(4, "little") + bytes(100))) is None


def test_more_containers_than_there_can_be() -> None:
    count = (1 << 16) + 1
    data = (12346).to_bytes(4, "little") + count.to_bytes(4, "little") + bytes(10 * count)
    assert bitmap32_size(memoryview(data)) is None
