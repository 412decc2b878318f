"""Round trips, and what they cost in reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.model import FormatError, RookeryError, UsageError
from rookery.puffin import Blob, PuffinError, Reader, open_puffin
from rookery.puffin.layout import HEADER_SIZE
from rookery.puffin.reader import FIRST_READ, MAX_GAP, MAX_SPAN
from tests.puffin.builders import NAME, assemble, described, puffin, read_everything, source
from tests.puffin.strategies import BLOBS, EXTRA, PROPERTIES

KIB = 1 << 10


@given(
    blobs=st.lists(BLOBS, max_size=6),
    codec=st.sampled_from(["none", "zstd", "lz4"]),
    compress_footer=st.booleans(),
    properties=PROPERTIES,
    extra=EXTRA,
)
@settings(max_examples=150)
def test_what_was_written_is_read(
    blobs: list[Blob], codec: str, compress_footer: bool, properties: dict[str, str], extra: dict[str, object]
) -> None:
    options = {"codec": codec, "properties": properties, "extra": extra, "created_by": None}
    reader = open_puffin(puffin(*blobs, compress_footer=compress_footer, **options))
    assert reader.metadata.properties == properties
    assert reader.metadata.extra == extra
    assert len(reader.metadata.blobs) == len(blobs)
    for written, found in zip(blobs, reader.metadata.blobs, strict=True):
        used = written.codec or codec
        assert (found.type, found.fields) == (written.type, written.fields)
        assert (found.snapshot_id, found.sequence_number) == (written.snapshot_id, written.sequence_number)
        assert (found.properties, found.extra) == (written.properties, written.extra)
        assert found.codec == (None if used == "none" else used)
        assert reader.read(found) == written.payload
    read = sorted(payload for _, payload in reader.read_many(reader.metadata.blobs))
    assert read == sorted(blob.payload for blob in blobs)


# -- opening


def test_a_small_file_is_one_read() -> None:
    data = puffin(Blob("a", b"one"), Blob("b", b"two" * 1000))
    counted = source(data)
    reader = Reader(counted, limits=open_puffin(data).limits)
    assert [payload for _, payload in reader.read_many(reader.metadata.blobs)] == [b"one", b"two" * 1000]
    reader.check_header()
    assert (counted.reads, counted.bytes_read) == (1, len(data))


def test_a_large_file_opens_with_one_read_of_its_tail() -> None:
    counted = source(puffin(Blob("a", bytes(1 << 20), codec="none")))
    open_puffin(counted)
    assert (counted.reads, counted.bytes_read) == (1, FIRST_READ)


@pytest.fixture(scope="module")
def long_footer() -> bytes:
    blob = Blob("a", bytes(200 * KIB), codec="none", properties={"long": "x" * 100 * KIB})
    return puffin(blob, Blob("b", b"last", codec="none"))


def test_a_long_footer_takes_two_reads_and_no_byte_twice(long_footer: bytes) -> None:
    counted = source(long_footer)
    reader = open_puffin(counted)
    assert reader.footer_size > FIRST_READ
    assert (counted.reads, counted.bytes_read) == (2, reader.footer_size)


def test_a_long_footer_of_known_size_takes_one_read(long_footer: bytes) -> None:
    footer_size = open_puffin(long_footer).footer_size
    counted = source(long_footer)
    reader = open_puffin(counted, file_size=len(long_footer), footer_size=footer_size)
    assert (counted.reads, counted.bytes_read) == (1, footer_size)
    assert reader.metadata.blobs[0].properties["long"] == "x" * 100 * KIB


@pytest.mark.parametrize("claimed", [0, 1, 12, 100, 10**9])
def test_a_wrong_footer_size_costs_reads_but_no_answer(long_footer: bytes, claimed: int) -> None:
    counted = source(long_footer)
    reader = open_puffin(counted, footer_size=claimed)
    assert [blob.type for blob in reader.metadata.blobs] == ["a", "b"]
    assert counted.reads <= 2


@pytest.mark.parametrize("delta", [-100, -1, 1, 100])
def test_a_wrong_file_size_is_an_error(long_footer: bytes, delta: int) -> None:
    with pytest.raises(FormatError) as caught:
        open_puffin(source(long_footer), file_size=len(long_footer) + delta)
    assert caught.value.place.file == NAME


def test_a_path_is_read_as_bytes_are(tmp_path: Path, long_footer: bytes) -> None:
    path = tmp_path / "a.puffin"
    path.write_bytes(long_footer)
    with open_puffin(path) as reader:
        assert reader.source.reads == 2
        assert reader.read(reader.blob(1)) == b"last"
        assert reader.source.name == str(path)


# -- blobs


@pytest.fixture(scope="module")
def hundred() -> bytes:
    """A hundred neighbours of 10 KiB."""
    return puffin(*(Blob(f"b{n}", bytes([n]) * 10 * KIB, codec="none") for n in range(100)))


def test_neighbours_share_one_read(hundred: bytes) -> None:
    counted = source(hundred)
    reader = open_puffin(counted)
    wanted = reader.metadata.blobs[:90]
    before = counted.bytes_read
    read = list(reader.read_many(reversed(wanted)))
    assert [blob for blob, _ in read] == list(wanted)
    assert all(payload == bytes([n]) * 10 * KIB for n, (_, payload) in enumerate(read))
    assert counted.reads == 2
    assert counted.bytes_read - before == HEADER_SIZE + 90 * 10 * KIB


def test_near_neighbours_share_a_read_and_far_ones_do_not(hundred: bytes) -> None:
    counted = source(hundred)
    reader = open_puffin(counted)
    blobs = reader.metadata.blobs
    near = MAX_GAP // (10 * KIB)
    list(reader.read_many([blobs[10], blobs[10 + near + 1]]))  # exactly `near` blobs lie between
    assert counted.reads == 2
    list(reader.read_many([blobs[30], blobs[30 + near + 2]]))
    assert counted.reads == 4


def test_far_blobs_cost_only_their_own_bytes(hundred: bytes) -> None:
    counted = source(hundred)
    reader = open_puffin(counted)
    before = counted.bytes_read
    list(reader.read_many([reader.blob(20), reader.blob(50), reader.blob(80)]))
    assert counted.reads == 4
    assert counted.bytes_read - before == 3 * 10 * KIB


def test_blobs_in_the_first_read_cost_nothing_more(hundred: bytes) -> None:
    counted = source(hundred)
    reader = open_puffin(counted)
    assert reader.read(reader.blob(99)) == bytes([99]) * 10 * KIB
    assert [payload[0] for _, payload in reader.read_many(reader.metadata.blobs[96:])] == [96, 97, 98, 99]
    assert counted.reads == 1


def test_no_read_grows_without_bound() -> None:
    third = MAX_SPAN // 3
    counted = source(puffin(*(Blob("big", bytes(third), codec="none") for _ in range(6))))
    reader = open_puffin(counted)
    assert sum(len(payload) for _, payload in reader.read_many(reader.metadata.blobs)) == 6 * third
    assert counted.reads == 1 + 2


def test_empty_blobs_cost_nothing() -> None:
    counted = source(puffin(*(Blob("none", b"", codec="none") for _ in range(3))))
    reader = open_puffin(counted)
    assert [payload for _, payload in reader.read_many(reader.metadata.blobs)] == [b"", b"", b""]
    assert list(reader.read_many([])) == []
    assert counted.reads == 1


def test_read_stored_gives_the_frame(hundred: bytes) -> None:
    reader = open_puffin(puffin(Blob("a", b"x" * 999, codec="lz4")))
    (blob,) = reader.metadata.blobs
    stored = reader.read_stored(blob)
    assert len(stored) == blob.length
    assert reader.decompress(blob, stored) == b"x" * 999
    assert [*reader.read_many_stored([blob])] == [(blob, stored)]


# -- the header, which no read is spent on


def test_the_header_is_checked_by_the_first_read_near_it(hundred: bytes) -> None:
    reader = open_puffin(source(b"XXXX" + hundred[4:]))
    assert reader.read(reader.blob(50))[0] == 50
    with pytest.raises(PuffinError) as caught:
        reader.read(reader.blob(0))
    assert (caught.value.place.file, caught.value.place.offset) == (NAME, 0)
    assert "PFA1" in caught.value.expected
    assert "XXXX" in caught.value.found


def test_the_header_can_be_checked_for_four_bytes(hundred: bytes) -> None:
    counted = source(hundred)
    reader = open_puffin(counted)
    before = counted.bytes_read
    reader.check_header()
    reader.check_header()
    assert (counted.reads, counted.bytes_read - before) == (2, HEADER_SIZE)
    with pytest.raises(PuffinError):
        open_puffin(source(b"XXXX" + hundred[4:])).check_header()


# -- how it is used


@pytest.mark.parametrize("index", [-1, 2, 10**20])
def test_a_blob_that_is_not_there(index: int) -> None:
    reader = open_puffin(puffin(Blob("a", b""), Blob("b", b"")))
    with pytest.raises(UsageError, match="no blob") as caught:
        reader.blob(index)
    assert caught.value.hint == "it has 2: 0 to 1"


def test_a_file_without_blobs_says_so() -> None:
    with pytest.raises(UsageError) as caught:
        open_puffin(puffin()).blob(0)
    assert caught.value.hint == "it has none"


def test_blobs_in_another_order_than_the_files() -> None:
    data = assemble({"blobs": [described(7, 3, type="second"), described(4, 3, type="first")]}, b"onetwo")
    reader = open_puffin(source(data))
    assert [blob.type for blob in reader.metadata.blobs] == ["second", "first"]
    assert [(blob.type, payload) for blob, payload in reader.read_many(reader.metadata.blobs)] == [
        ("first", b"one"),
        ("second", b"two"),
    ]
    assert isinstance(read_everything(data), list)


def test_a_missing_file_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(RookeryError, match="No such file") as caught:
        open_puffin(tmp_path / "absent.puffin")
    assert caught.value.hint
    assert isinstance(caught.value, OSError)


def test_a_file_that_does_not_open_is_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "a.puffin"
    path.write_bytes(b"PFA1 but nothing more of it")
    counted = source(path.read_bytes())
    closed = []
    counted.close = lambda: closed.append(True)  # type: ignore[method-assign]
    with pytest.raises(PuffinError):
        open_puffin(counted)
    assert closed == [True]
