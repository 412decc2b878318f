"""Remote files that never change are read in blocks, which are cached; the bytes are those of the file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.io import ReopeningSource, reopening
from rookery.model import FormatError
from rookery.model.cache import Cache
from tests.rest.s3_server import BUCKET, S3Server

DATA = np.random.default_rng(1).bytes(5 * reopening.BLOCK + 17)
RANGE = st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 3 * reopening.BLOCK))


@pytest.fixture(scope="module")
def location(s3_server: S3Server) -> str:
    s3_server.client().put_object(Bucket=BUCKET, Key="blocks", Body=DATA)
    return f"s3://{BUCKET}/blocks"


def _source(
    s3_server: S3Server, location: str, size: int = len(DATA), cache: Cache | None = None
) -> ReopeningSource:
    return ReopeningSource(
        location, s3_server.admit("blocks-key", "blocks-secret"), size, Cache() if cache is None else cache
    )


@settings(max_examples=50)
@given(st.lists(RANGE, min_size=1, max_size=8))
def test_any_ranges(s3_server: S3Server, location: str, ranges: list[tuple[int, int]]) -> None:
    source = _source(s3_server, location)
    for offset, length in ranges:
        length = min(length, len(DATA) - offset)
        assert source.read(offset, length) == DATA[offset : offset + length]


def test_each_block_is_read_once(s3_server: S3Server, location: str) -> None:
    source = _source(s3_server, location)
    s3_server.requests.clear()
    for offset in range(0, len(DATA) - 8, 1000):
        source.read(offset, 8)
    assert len(s3_server.requests) == 5
    for _ in range(2):
        assert source.read(0, len(DATA)) == DATA
    assert len(s3_server.requests) == 6  # the last block is short, and was not asked for before


def test_the_cache_is_bounded(s3_server: S3Server, location: str) -> None:
    cache = Cache(3 * reopening.BLOCK)
    source = _source(s3_server, location, cache=cache)
    for offset in (*range(0, len(DATA) - 8, reopening.BLOCK), 0):
        assert source.read(offset, 8) == DATA[offset : offset + 8]
        assert 1 <= cache.count <= 3


def test_a_file_that_ends_early(s3_server: S3Server, location: str) -> None:
    with pytest.raises(FormatError):
        _source(s3_server, location, len(DATA) + reopening.BLOCK).read(len(DATA), 8)
