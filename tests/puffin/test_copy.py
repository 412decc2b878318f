"""Copies: what is selected, what is recompressed, and what must stay to the byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.io import BytesSink
from rookery.model import UsageError
from rookery.puffin import (
    KEEP,
    Blob,
    BlobMetadata,
    DeletionVector,
    PuffinError,
    Reader,
    Writer,
    copy_blobs,
    open_puffin,
    selection,
)
from tests.puffin.builders import lz4_unsized, puffin, source, with_stored
from tests.puffin.strategies import BLOBS

Wanted = Callable[[int, BlobMetadata], bool]


def everything(index: int, blob: BlobMetadata) -> bool:
    return True


def copied(data: bytes, wanted: Wanted = everything, codec: str = KEEP, **options: Any) -> Reader:
    sink = BytesSink()
    with Writer(sink, **options) as writer:
        copy_blobs(open_puffin(source(data)), writer, wanted, codec)
    assert sink.data is not None
    return open_puffin(sink.data)


def stored(reader: Reader) -> list[bytes]:
    return [reader.read_stored(blob) for blob in reader.metadata.blobs]


def described(blob: BlobMetadata) -> tuple[object, ...]:
    """A description without what a copy may change."""
    return blob.type, blob.fields, blob.snapshot_id, blob.sequence_number, blob.properties, blob.extra


@given(blobs=st.lists(BLOBS, max_size=5), codec=st.sampled_from([KEEP, "none", "zstd", "lz4"]))
@settings(max_examples=60)
def test_a_copy_says_the_same(blobs: list[Blob], codec: str) -> None:
    original = open_puffin(puffin(*blobs))
    copy = copied(puffin(*blobs), codec=codec)
    for before, after in zip(original.metadata.blobs, copy.metadata.blobs, strict=True):
        assert described(after) == described(before)
        assert copy.read(after) == original.read(before)
        expected = before.codec if codec == KEEP else None if codec == "none" else codec
        assert after.codec == expected


@given(blobs=st.lists(BLOBS, max_size=5))
@settings(max_examples=40)
def test_keeping_keeps_every_byte(blobs: list[Blob]) -> None:
    data = puffin(*blobs)
    assert stored(copied(data)) == stored(open_puffin(data))


def test_what_is_not_known_passes_through() -> None:
    """A blob of a future type, in a codec from the future: copied without a look inside."""
    data = with_stored(
        (b"who knows", {"type": "from-the-future", "compression_codec": "brotli", "new": {"a": [1]}}),
        (b"\xff" * 9, {"type": "", "fields": []}),
    )
    copy = copied(data)
    assert stored(copy) == [b"who knows", b"\xff" * 9]
    assert copy.metadata.blobs == open_puffin(data).metadata.blobs
    assert copy.metadata.blobs[0].codec == "brotli"
    assert copy.metadata.blobs[0].extra == {"new": {"a": [1]}}


def test_a_blob_already_in_that_codec_is_not_touched() -> None:
    frame = zstandard.ZstdCompressor(level=19, write_checksum=True).compress(b"x" * 1000)
    data = with_stored((frame, {"compression_codec": "zstd"}), (b"plain", {}))
    copy = copied(data, codec="zstd")
    assert stored(copy)[0] == frame
    assert [blob.codec for blob in copy.metadata.blobs] == ["zstd", "zstd"]
    assert stored(copied(data, codec="none"))[1] == b"plain"


def test_recompressing_gives_a_frame_its_size() -> None:
    data = with_stored((lz4_unsized(b"x" * 1000), {"compression_codec": "lz4"}))
    copy = copied(data, codec="zstd")
    assert zstandard.frame_content_size(stored(copy)[0]) == 1000


def test_a_deletion_vector_stays_as_it_is() -> None:
    vector = DeletionVector.of_range(0, 5000).blob("s3://bucket/data.parquet")
    copy = copied(puffin(vector, Blob("a", b"x" * 100)), codec="lz4")
    assert [blob.codec for blob in copy.metadata.blobs] == [None, "lz4"]
    assert stored(copy)[0] == vector.payload


def test_a_blob_that_cannot_be_read_cannot_be_recompressed() -> None:
    data = with_stored((b"no frame", {"compression_codec": "zstd"}))
    assert stored(copied(data)) == [b"no frame"]
    with pytest.raises(PuffinError):
        copied(data, codec="lz4")


@pytest.mark.parametrize(
    ("numbers", "types", "dropped", "left"),
    [
        ([], [], [], "abca"),
        ([0, 2], [], [], "ac"),
        ([2, 2, 0], [], [], "ac"),
        ([], ["a"], [], "aa"),
        ([], ["a", "b"], [], "aba"),
        ([], [], ["a"], "bc"),
        ([0, 1], ["a"], [], "a"),
        ([0, 1], [], ["a"], "b"),
        ([], ["a"], ["a"], ""),
        ([], ["z"], [], ""),
    ],
)
def test_selecting_and_dropping(numbers: list[int], types: list[str], dropped: list[str], left: str) -> None:
    data = puffin(*(Blob(name, name.encode()) for name in "abca"))
    copy = copied(data, selection(4, numbers, types, dropped))
    assert "".join(blob.type for blob in copy.metadata.blobs) == left
    assert [copy.read(blob) for blob in copy.metadata.blobs] == [name.encode() for name in left]


@pytest.mark.parametrize("number", [-1, 4])
def test_a_number_that_is_not_there(number: int) -> None:
    with pytest.raises(UsageError, match=f"no blob {number}") as caught:
        selection(4, [0, number], [], [])
    assert caught.value.hint == "the file has 4: 0 to 3"


def test_a_number_in_a_file_without_blobs() -> None:
    with pytest.raises(UsageError) as caught:
        selection(0, [0], [], [])
    assert caught.value.hint == "the file has 0"
