"""Frames: their content sizes, true and false, and the limits that hold whatever they claim."""

from __future__ import annotations

import struct
from collections.abc import Callable

import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.model import Place
from rookery.puffin import PuffinError, PuffinLimitError, UnsupportedPuffinError, codecs
from tests.puffin.builders import lz4_claiming, lz4_unsized, traced_memory, zstd_claiming, zstd_unsized
from tests.puffin.strategies import PAYLOADS

PLACE = Place("file", 42)
MIB = 1 << 20
CONTENT = b"some content, " * 7
SKIPPABLE = struct.pack("<II", 0x184D2A50, 4) + b"skip"

both = pytest.mark.parametrize("codec", ["zstd", "lz4"])
UNSIZED: dict[str, Callable[[bytes], bytes]] = {"zstd": zstd_unsized, "lz4": lz4_unsized}
CLAIMING: dict[str, Callable[[bytes, int], bytes]] = {"zstd": zstd_claiming, "lz4": lz4_claiming}


def fails(codec: str, frame: bytes, limit: int = MIB) -> PuffinError:
    with pytest.raises(PuffinError) as caught:
        codecs.decompress(codec, frame, PLACE, limit)
    assert caught.value.place == PLACE
    assert caught.value.expected
    assert caught.value.found
    return caught.value


@given(codec=st.sampled_from([None, "none", "zstd", "lz4"]), data=PAYLOADS)
def test_round_trip(codec: str | None, data: bytes) -> None:
    stored = codecs.compress(codec, data, PLACE)
    assert codecs.decompress(None if codec == "none" else codec, stored, PLACE, MIB) == data


@both
@given(data=PAYLOADS)
@settings(max_examples=40)
def test_frames_say_their_content_size(codec: str, data: bytes) -> None:
    frame = codecs.compress(codec, data, PLACE)
    assert codecs.CODECS[codec].content_size(frame) == len(data)


@both
@given(data=PAYLOADS)
@settings(max_examples=40)
def test_frames_of_unstated_size_are_read(codec: str, data: bytes) -> None:
    frame = UNSIZED[codec](data)
    # zstd cannot leave the size of an empty frame out.
    assert codecs.CODECS[codec].content_size(frame) in ((None,) if data else (None, 0))
    assert codecs.decompress(codec, frame, PLACE, len(data)) == data


@both
@pytest.mark.parametrize("claim", [0, 1, len(CONTENT) - 1, len(CONTENT) + 1, 255])
def test_a_lying_content_size(codec: str, claim: int) -> None:
    assert not isinstance(fails(codec, CLAIMING[codec](CONTENT, claim)), PuffinLimitError)


def test_an_lz4_frame_that_claims_all_the_memory_there_is() -> None:
    for claim in (2**63, 2**64 - 1):
        error = fails("lz4", lz4_claiming(CONTENT, claim))
        assert isinstance(error, PuffinLimitError)
        assert str(claim) in error.found


@both
def test_the_limit_is_the_last_size_allowed(codec: str) -> None:
    data = bytes(1000)
    frame = codecs.compress(codec, data, PLACE)
    assert codecs.decompress(codec, frame, PLACE, 1000) == data
    error = fails(codec, frame, 999)
    assert isinstance(error, PuffinLimitError)
    assert "999" in error.expected
    assert "1000" in error.found


@both
def test_the_limit_holds_where_no_size_is_stated(codec: str) -> None:
    frame = UNSIZED[codec](bytes(1000))
    assert codecs.decompress(codec, frame, PLACE, 1000) == bytes(1000)
    error = fails(codec, frame, 999)
    assert isinstance(error, PuffinLimitError)
    assert "999" in error.expected


@both
def test_a_bomb_of_unstated_size_stays_small(codec: str) -> None:
    bomb = UNSIZED[codec](bytes(128 * MIB))
    assert len(bomb) < MIB
    with traced_memory() as peak:
        assert isinstance(fails(codec, bomb, 4 * MIB), PuffinLimitError)
        assert peak() < 64 * MIB


@both
@pytest.mark.parametrize("frames", ["sized", "unsized"])
def test_one_frame_and_no_more(codec: str, frames: str) -> None:
    frame = codecs.compress(codec, CONTENT, PLACE) if frames == "sized" else UNSIZED[codec](CONTENT)
    for behind in (frame, b"x", SKIPPABLE):
        fails(codec, frame + behind)


@both
def test_an_empty_frame_and_no_more(codec: str) -> None:
    frame = codecs.compress(codec, b"", PLACE)
    assert codecs.decompress(codec, frame, PLACE, 0) == b""
    for behind in (frame, b"x", codecs.compress(codec, CONTENT, PLACE)):
        fails(codec, frame + behind)


@both
def test_a_skippable_frame_is_no_frame(codec: str) -> None:
    """The libraries pass over one in silence, which would make an empty blob of it."""
    fails(codec, SKIPPABLE)
    fails(codec, SKIPPABLE + codecs.compress(codec, CONTENT, PLACE))


@both
@pytest.mark.parametrize("frames", ["sized", "unsized"])
def test_a_frame_cut_short_at_every_byte(codec: str, frames: str) -> None:
    frame = codecs.compress(codec, CONTENT, PLACE) if frames == "sized" else UNSIZED[codec](CONTENT)
    for length in range(len(frame)):
        fails(codec, frame[:length])


@both
def test_a_long_frame_cut_short(codec: str) -> None:
    data = bytes(range(256)) * 8000
    for frame in (codecs.compress(codec, data, PLACE), UNSIZED[codec](data)):
        fails(codec, frame[:-1], 4 * MIB)
        fails(codec, frame[: len(frame) // 2], 4 * MIB)


def test_the_other_codecs_frame() -> None:
    fails("zstd", codecs.compress("lz4", CONTENT, PLACE))
    fails("lz4", codecs.compress("zstd", CONTENT, PLACE))


@pytest.mark.parametrize("name", ["snappy", "gzip", "ZSTD", "", "none"])
def test_an_unknown_codec(name: str) -> None:
    error = fails(name, CONTENT)
    assert isinstance(error, UnsupportedPuffinError)
    assert "zstd, lz4" in error.expected
    assert repr(name) in error.found
    assert error.hint


def test_frames_of_the_libraries_own_making() -> None:
    """Checksums, levels and long windows are the writer's business."""
    data = bytes(range(256)) * 5000
    zstd = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(data)
    lz4_frame = lz4.frame.compress(data, store_size=True, content_checksum=True, block_checksum=True)
    assert codecs.decompress("zstd", zstd, PLACE, 2 * MIB) == data
    assert codecs.decompress("lz4", lz4_frame, PLACE, 2 * MIB) == data
    fails("zstd", zstd[:-1] + bytes([zstd[-1] ^ 1]), 2 * MIB)
    fails("lz4", lz4_frame[:-1] + bytes([lz4_frame[-1] ^ 1]), 2 * MIB)
