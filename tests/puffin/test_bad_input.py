"""Bad files: each is an error that says where, what was expected and what was found."""

from __future__ import annotations

from typing import Any

import datasketches
import lz4.frame
import pytest

from rookery.model import FormatError
from rookery.puffin import (
    THETA_V1,
    Blob,
    DeletionVector,
    Limits,
    PuffinError,
    PuffinLimitError,
    UnsupportedPuffinError,
    open_puffin,
)
from tests.puffin.builders import (
    NAME,
    assemble,
    described,
    fails,
    lz4_claiming,
    lz4_unsized,
    puffin,
    read_everything,
    replace_tail,
    source,
    with_stored,
    zstd_claiming,
    zstd_unsized,
)


def sketch(count: int) -> datasketches.compact_theta_sketch:
    made = datasketches.update_theta_sketch(5)
    for value in range(count):
        made.update(value)
    return made.compact()


def several(**options: Any) -> bytes:
    """A small file that has something of everything."""
    return puffin(
        Blob("text", b"some text " * 4, (1,), 2, 3, "zstd", {"a": "b"}, {"x": [1, {"y": None}]}),
        Blob("text", b"other text " * 4, codec="lz4"),
        Blob("bytes", b"\x00\x01\x02", codec="none"),
        DeletionVector.of([1, 2, 2**40]).blob("data.parquet"),
        Blob(THETA_V1, sketch(3).serialize(), codec="none"),
        Blob(THETA_V1, sketch(40).serialize(compress=True), codec="none"),
        **options,
    )


# -- everywhere


@pytest.mark.parametrize("compress_footer", [False, True])
def test_a_cut_at_every_byte(compress_footer: bool) -> None:
    data = several(compress_footer=compress_footer)
    assert isinstance(read_everything(data), list)
    for length in range(len(data)):
        fails(data[:length])


@pytest.mark.parametrize("compress_footer", [False, True])
def test_a_start_missing_at_every_byte(compress_footer: bool) -> None:
    data = several(compress_footer=compress_footer)
    for start in range(1, len(data) + 1):
        fails(data[start:])


@pytest.mark.parametrize("compress_footer", [False, True])
def test_a_flip_of_every_bit(compress_footer: bool) -> None:
    """An error that says where, or, for bits that nothing vouches for, some other answer."""
    data = several(compress_footer=compress_footer)
    opened = open_puffin(data)
    errors = 0
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        errors += isinstance(read_everything(bytes(flipped)), FormatError)
    # Magic, tail, frames, vectors and much of the JSON are vouched for.
    assert errors > 8 * len(data) // 3
    vector = opened.blob(3)
    for offset in (0, *range(vector.offset, vector.end), opened.footer_start, len(data) - 1):
        flipped = bytearray(data)
        flipped[offset] ^= 0x10
        fails(bytes(flipped))


def test_a_changed_payload_that_nothing_vouches_for_is_read() -> None:
    data = bytearray(several())
    blob = open_puffin(bytes(data)).blob(2)
    data[blob.offset] ^= 0xFF
    found = read_everything(bytes(data))
    assert isinstance(found, list)
    assert found[2][1] == b"\xff\x01\x02"


# -- the frame of the file

HELLO = assemble({"blobs": [described(4, 5)]}, b"hello")
SIZE = len(HELLO)


@pytest.mark.parametrize(
    ("data", "offset", "expected", "found"),
    [
        (b"", 0, "at least 20 bytes", "0"),
        (b"PFA1" * 4, 0, "at least 20 bytes", "16"),
        (b"XFA1" + HELLO[4:], 0, "PFA1", "XFA1"),
        (HELLO[:9] + b"PFA2" + HELLO[13:], 9, "PFA1", "PFA2"),
        (HELLO[:-4] + b"PAR1", SIZE - 4, "PFA1", "PAR1"),
        (HELLO + b"\n", SIZE - 3, "PFA1", "FA1"),
        (replace_tail(HELLO, payload_size=-1), SIZE - 12, "at most", "-1"),
        (replace_tail(HELLO, payload_size=-(2**31)), SIZE - 12, "at most", str(-(2**31))),
        (replace_tail(HELLO, payload_size=2**31 - 1), SIZE - 12, "at most", str(2**31 - 1)),
        (replace_tail(HELLO, payload_size=SIZE - 19), SIZE - 12, f"{SIZE - 20} bytes", str(SIZE - 19)),
        (replace_tail(HELLO, payload_size=SIZE - 20), 4, "before the footer", "hell"),
        (replace_tail(HELLO, payload_size=0), SIZE - 16, "before the footer", "'"),
        (assemble(b""), 8, "JSON", "truncated"),
    ],
    ids=str,
)
def test_the_frame(data: bytes, offset: int, expected: str, found: str) -> None:
    error = fails(data)
    assert isinstance(error, PuffinError)
    assert error.place.offset == offset
    assert expected in error.expected
    assert found in error.found
    assert str(error) == f"{NAME}, byte {offset}: expected {error.expected}, found {error.found}"


@pytest.mark.parametrize("bit", range(1, 32))
def test_unknown_flags(bit: int) -> None:
    error = fails(replace_tail(HELLO, flags=1 << bit))
    assert isinstance(error, UnsupportedPuffinError)
    assert error.place.offset == SIZE - 8
    assert error.found == f"{1 << bit:#010x}"


# -- where blobs lie


@pytest.mark.parametrize(
    ("offset", "length"),
    [(0, 0), (3, 1), (4, 6), (9, 1), (10, 0), (4, 2**63 - 1), (2**63 - 1, 2**63 - 1), (2**63 - 1, 0), (5, 5)],
)
def test_a_blob_outside_its_bounds(offset: int, length: int) -> None:
    data = assemble({"blobs": [described(4, 1), described(offset, length)]}, b"hello")
    with pytest.raises(PuffinError) as caught:
        open_puffin(source(data))
    assert (caught.value.place.file, caught.value.place.offset) == (NAME, offset)
    assert "blob 1 between bytes 4 and 9" in caught.value.expected
    assert f"offset {offset}, length {length}" in caught.value.found


@pytest.mark.parametrize(
    ("extents", "second", "first"),
    [
        ([(4, 3), (6, 3)], 1, 0),
        ([(6, 3), (4, 3)], 0, 1),
        ([(4, 5), (4, 5)], 1, 0),
        ([(4, 5), (5, 1)], 1, 0),
        ([(4, 1), (5, 2), (5, 0), (6, 3)], 3, 1),
    ],
)
def test_blobs_that_overlap(extents: list[tuple[int, int]], second: int, first: int) -> None:
    error = fails(assemble({"blobs": [described(*extent) for extent in extents]}, b"hello"))
    assert error.place.offset == extents[second][0]
    assert f"blob {second} after blob {first}" in error.expected
    assert "overlap" in error.found


# -- frames


def one(stored: bytes, codec: str) -> bytes:
    return with_stored((b"before", {}), (stored, {"compression_codec": codec}))


CONTENT = b"some content, " * 7
FRAMES = {
    "zstd claims more": one(zstd_claiming(CONTENT, len(CONTENT) + 1), "zstd"),
    "zstd claims less": one(zstd_claiming(CONTENT, len(CONTENT) - 1), "zstd"),
    "zstd claims nothing": one(zstd_claiming(CONTENT, 0), "zstd"),
    "lz4 claims more": one(lz4_claiming(CONTENT, len(CONTENT) + 1), "lz4"),
    "lz4 claims less": one(lz4_claiming(CONTENT, len(CONTENT) - 1), "lz4"),
    "lz4 claims nothing": one(lz4_claiming(CONTENT, 0), "lz4"),
    "two zstd frames": one(zstd_unsized(CONTENT) * 2, "zstd"),
    "two lz4 frames": one(lz4_unsized(CONTENT) * 2, "lz4"),
    "no bytes for zstd": one(b"", "zstd"),
    "no bytes for lz4": one(b"", "lz4"),
    "an unknown codec": one(CONTENT, "brotli"),
}


@pytest.mark.parametrize("wrong", FRAMES)
def test_a_frame(wrong: str) -> None:
    error = fails(FRAMES[wrong])
    assert error.place.offset == 4 + len(b"before")
    assert isinstance(error, UnsupportedPuffinError) == (wrong == "an unknown codec")


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_frame_of_unstated_size_is_read(codec: str) -> None:
    unsized = zstd_unsized if codec == "zstd" else lz4_unsized
    found = read_everything(one(unsized(CONTENT), codec))
    assert isinstance(found, list)
    assert found[1][1] == CONTENT


@pytest.mark.parametrize("make", [zstd_unsized, lz4_unsized, None], ids=["zstd", "lz4", "sized"])
def test_a_bomb_stops_at_the_limit(make: Any) -> None:
    content = bytes(32 << 20)
    if make is None:
        data = puffin(Blob("bomb", content, codec="lz4"), codec="lz4")
    else:
        data = one(make(content), "zstd" if make is zstd_unsized else "lz4")
    limits = Limits(blob=1 << 20)
    error = fails(data, limits)
    assert isinstance(error, PuffinLimitError)
    assert str(limits.blob) in error.expected


def test_a_stored_blob_beyond_the_limit() -> None:
    error = fails(with_stored((bytes(1001), {})), Limits(blob=1000))
    assert isinstance(error, PuffinLimitError)
    assert error.place.offset == 4
    assert "1001" in error.found


# -- a compressed footer


def lz4_footer(payload: bytes) -> bytes:
    return assemble(payload, flags=1)


JSON = b'{"blobs":[],"later":"' + b"x" * 100 + b'"}'


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        JSON,
        lz4.frame.compress(JSON)[:-1],
        lz4.frame.compress(JSON) * 2,
        lz4_claiming(JSON, len(JSON) + 1),
        lz4_claiming(JSON, len(JSON) - 1),
        lz4_claiming(JSON, 2**63),
        lz4.frame.compress(b"no JSON"),
        lz4.frame.compress(b""),
    ],
    ids=[
        "nothing",
        "plain",
        "cut",
        "two frames",
        "claims more",
        "claims less",
        "claims all",
        "no JSON",
        "empty",
    ],
)
def test_a_compressed_footer(payload: bytes) -> None:
    error = fails(lz4_footer(payload))
    assert error.place.offset == 8


def test_a_compressed_footer_that_is_not_flagged() -> None:
    assert "JSON" in fails(assemble(lz4.frame.compress(JSON))).expected


def test_footers_beyond_the_limit() -> None:
    limits = Limits(footer=1000)
    long = b'{"blobs":[],"later":"' + b"x" * 10_000 + b'"}'
    for data in (assemble(long), lz4_footer(lz4.frame.compress(long)), lz4_footer(lz4_unsized(long))):
        error = fails(data, limits)
        assert isinstance(error, PuffinLimitError)
        assert "1000" in error.expected
        assert isinstance(read_everything(data), list)
