"""A source whose end is kept: the same bytes, and none of the end read twice."""

from __future__ import annotations

import pytest

from rookery.io import BytesSource, TailSource

DATA = bytes(range(200))


@pytest.mark.parametrize("offset", [0, 50, 139, 140, 150, 199])
@pytest.mark.parametrize("length", [1, 40, 90, 150])
def test_the_same_bytes(offset: int, length: int) -> None:
    length = min(length, len(DATA) - offset)
    source = TailSource(BytesSource(DATA), len(DATA), 60)
    assert source.read(offset, length) == DATA[offset : offset + length]


def test_the_end_is_read_once() -> None:
    inner = BytesSource(DATA)
    source = TailSource(inner, len(DATA), 60)
    assert inner.reads == 0
    source.read(190, 10)
    source.read(140, 60)
    assert (inner.reads, inner.bytes_read) == (1, 60)
    source.read(100, 100)
    assert (inner.reads, inner.bytes_read) == (2, 100)
    source.read(0, 10)
    assert (inner.reads, inner.bytes_read) == (3, 110)


def test_a_file_shorter_than_the_end() -> None:
    inner = BytesSource(DATA)
    source = TailSource(inner, len(DATA), 1000)
    assert source.size == len(DATA)
    assert source.read(0, len(DATA)) == DATA
    assert inner.bytes_read == len(DATA)
