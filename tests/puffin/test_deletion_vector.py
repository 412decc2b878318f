"""Deletion vectors: round trips, unions, and every way in which the bytes can be wrong."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from rookery.model import Place, UsageError
from rookery.puffin import (
    DELETION_VECTOR_V1,
    BlobMetadata,
    DeletionVector,
    DeletionVectorError,
    open_puffin,
)
from rookery.puffin.deletion_vector import MAX_POSITION, MIN_SIZE, VECTOR_OFFSET
from tests.puffin.builders import bitmap32, puffin, sealed, vector_of
from tests.puffin.strategies import POSITIONS

PLACE = Place("file", 100)
EMPTY32 = bitmap32()


def vector(positions: set[int]) -> DeletionVector:
    return DeletionVector.of(np.array(sorted(positions), dtype=np.uint64))


def fails(payload: bytes, cardinality: int | None = None) -> DeletionVectorError:
    with pytest.raises(DeletionVectorError) as caught:
        DeletionVector.decode(payload, cardinality=cardinality, place=PLACE)
    error = caught.value
    assert error.place.file == "file"
    assert PLACE.offset <= error.place.offset <= PLACE.offset + len(payload)
    assert error.expected
    assert error.found
    return error


# -- what is right


@given(positions=POSITIONS)
@settings(max_examples=60)
def test_round_trip(positions: set[int]) -> None:
    made = vector(positions)
    payload = made.encode()
    read = DeletionVector.decode(payload, cardinality=len(positions))
    assert read == made
    assert read.positions().tolist() == sorted(positions)
    assert read.positions().dtype == np.int64
    assert (read.cardinality, len(read), set(read)) == (len(positions), len(positions), positions)
    assert read.encode() == payload


@given(sets=st.lists(POSITIONS, max_size=4))
@settings(max_examples=40)
def test_merging_is_the_union_of_sets(sets: list[set[int]]) -> None:
    merged = DeletionVector.merge(map(vector, sets))
    assert merged.positions().tolist() == sorted(set().union(*sets))
    assert DeletionVector.merge(map(vector, reversed(sets))) == merged
    assert DeletionVector.merge([merged, *map(vector, sets)]) == merged
    if len(sets) == 2:
        assert vector(sets[0]) | vector(sets[1]) == merged


@pytest.mark.parametrize(
    "positions",
    [
        set(),
        {0},
        {MAX_POSITION},
        {0, 2**32 - 1, 2**32, MAX_POSITION},
        set(range(70_000)),
        set(range(0, 70_000, 2)),
        {(key << 32) + 5 for key in range(50)},
    ],
    ids=["empty", "zero", "last", "edges", "run", "dense", "keys"],
)
def test_round_trip_of_edges(positions: set[int]) -> None:
    made = vector(positions)
    assert DeletionVector.decode(made.encode(), cardinality=len(positions)) == made
    assert made.positions().tolist() == sorted(positions)


def test_runs_make_it_small() -> None:
    assert len(DeletionVector.of_range(0, 1_000_000).encode()) < 400
    assert len(DeletionVector.of(np.arange(1_000_000)).encode()) < 400


@given(start=st.integers(0, 2**20) | st.integers(0, MAX_POSITION - 300_000), length=st.integers(0, 200_000))
@settings(max_examples=40)
def test_a_range(start: int, length: int) -> None:
    made = DeletionVector.of_range(start, start + length)
    assert made.cardinality == length
    assert (start in made) == (length > 0)
    assert start + length not in made
    if length:
        positions = made.positions()
        assert (positions[0], positions[-1]) == (start, start + length - 1)
    assert DeletionVector.decode(made.encode()) == made


def test_a_range_up_to_the_last_position() -> None:
    made = DeletionVector.of_range(MAX_POSITION - 9, MAX_POSITION + 1)
    assert made.positions().tolist() == list(range(MAX_POSITION - 9, MAX_POSITION + 1))


def test_the_empty_vector_to_the_byte() -> None:
    payload = DeletionVector.of([]).encode()
    assert payload[:16] == bytes.fromhex("0000000c d1d33964 0000000000000000")
    assert len(payload) == MIN_SIZE
    assert DeletionVector.decode(payload, cardinality=0).positions().tolist() == []


def test_any_order_and_repetition() -> None:
    assert DeletionVector.of([5, 1, 5, 2**40, 1]).positions().tolist() == [1, 5, 2**40]
    assert DeletionVector.of(np.array([3, 1], dtype=np.int8)).positions().tolist() == [1, 3]


def test_membership() -> None:
    made = DeletionVector.of([0, 7, MAX_POSITION])
    assert 7 in made
    assert MAX_POSITION in made
    for absent in (-1, 8, MAX_POSITION + 1, 2**70):
        assert absent not in made


def test_equality_is_that_of_sets() -> None:
    assert DeletionVector.of([1]) != DeletionVector.of([2])
    assert DeletionVector.of([1]) != {1}
    with pytest.raises(TypeError):
        hash(DeletionVector.of([1]))


@pytest.mark.parametrize("bad", [[-1], [2**63], [1.5], [True], ["1"], [2**70], [-1, 2**63]])
def test_what_is_no_position(bad: list[object]) -> None:
    with pytest.raises(UsageError, match="out of range") as caught:
        DeletionVector.of(bad)  # type: ignore[arg-type]
    assert caught.value.hint


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 4), (0, 2**63 + 1)])
def test_what_is_no_range(start: int, stop: int) -> None:
    with pytest.raises(UsageError):
        DeletionVector.of_range(start, stop)


# -- as other writers write


def test_keys_without_a_gap_as_iceberg_java_writes_them() -> None:
    """It writes a bitmap for every key up to the last, also where there is nothing."""
    payload = sealed(vector_of([(0, EMPTY32), (1, EMPTY32), (2, bitmap32(5, 9)), (3, EMPTY32)]))
    read = DeletionVector.decode(payload, cardinality=2)
    assert read.positions().tolist() == [(2 << 32) + 5, (2 << 32) + 9]
    assert read == DeletionVector.of([(2 << 32) + 5, (2 << 32) + 9])


def test_bitmaps_that_are_not_run_optimized() -> None:
    payload = sealed(vector_of([(0, BitMap(range(100_000)).serialize())]))
    assert DeletionVector.decode(payload) == DeletionVector.of_range(0, 100_000)


def test_the_last_key() -> None:
    payload = sealed(vector_of([(2**31 - 1, bitmap32(2**32 - 1))]))
    assert DeletionVector.decode(payload).positions().tolist() == [MAX_POSITION]


# -- what is wrong


GOOD = vector_of([(0, bitmap32(1, 2, 3)), (2, bitmap32(*range(300))), (5, bitmap32(70_000))])


def test_the_sample_is_good() -> None:
    assert DeletionVector.decode(sealed(GOOD), cardinality=304).cardinality == 304


def test_a_wrong_crc() -> None:
    payload = bytearray(sealed(GOOD))
    payload[-1] ^= 1
    error = fails(bytes(payload))
    assert error.place.offset == PLACE.offset + len(payload) - 4
    assert "CRC" in error.expected


def test_a_changed_byte_breaks_the_crc() -> None:
    payload = bytearray(sealed(GOOD))
    payload[VECTOR_OFFSET + 30] ^= 1
    assert "CRC" in fails(bytes(payload)).expected


def test_a_wrong_magic() -> None:
    error = fails(sealed(GOOD, magic=b"\xd1\xd3\x39\x65"))
    assert error.place.offset == PLACE.offset + 4
    assert "d1 d3 39 64" in error.expected
    assert "d1 d3 39 65" in error.found


@pytest.mark.parametrize("delta", [-1, 1, 2**31])
def test_a_wrong_length(delta: int) -> None:
    payload = sealed(GOOD)
    (length,) = struct.unpack_from(">I", payload)
    error = fails(struct.pack(">I", length + delta) + payload[4:])
    assert str(length) in error.expected
    assert str(length + delta) in error.found


@pytest.mark.parametrize(
    ("bitmaps", "index", "found"),
    [
        ([(5, bitmap32(1)), (2, bitmap32(1))], 1, "2"),
        ([(2, bitmap32(1)), (2, bitmap32(2))], 1, "2"),
        ([(2**31, bitmap32(1))], 0, str(2**31)),
        ([(1, EMPTY32), (2**32 - 1, bitmap32(1))], 1, str(2**32 - 1)),
    ],
    ids=["order", "repeated", "top bit", "all bits"],
)
def test_a_wrong_key(bitmaps: list[tuple[int, bytes]], index: int, found: str) -> None:
    error = fails(sealed(vector_of(bitmaps)))
    before = sum(4 + len(bitmap) for _, bitmap in bitmaps[:index])
    assert error.place.offset == PLACE.offset + VECTOR_OFFSET + 8 + before
    assert "a key from" in error.expected
    assert error.found == found


@pytest.mark.parametrize("count", [0, 2, 4, 2**32, 2**63, 2**64 - 1])
def test_a_wrong_count_of_bitmaps(count: int) -> None:
    fails(sealed(struct.pack("<Q", count) + GOOD[8:]))


def test_a_wrong_cardinality() -> None:
    error = fails(sealed(GOOD), cardinality=303)
    assert "303" in error.expected
    assert "304" in error.found


@pytest.mark.parametrize("behind", [b"\x00", bytes(4), EMPTY32])
def test_bytes_behind_the_last_bitmap(behind: bytes) -> None:
    error = fails(sealed(GOOD + behind))
    assert error.place.offset == PLACE.offset + VECTOR_OFFSET + len(GOOD)
    assert str(len(behind)) in error.found


def test_a_cut_at_every_byte() -> None:
    payload = sealed(GOOD)
    for length in range(len(payload)):
        fails(payload[:length])


def test_a_cut_at_every_byte_of_the_vector_with_a_crc_that_fits() -> None:
    for length in range(len(GOOD)):
        fails(sealed(GOOD[:length]))


RUNS = DeletionVector.of_range(10, 70_010).encode()[VECTOR_OFFSET:-4]
BITSET = vector_of([(0, BitMap(range(0, 20_000, 2)).serialize())])


@pytest.mark.parametrize("good", [GOOD, RUNS, BITSET], ids=["arrays", "runs", "bitset"])
def test_a_flip_of_any_bit_with_a_crc_that_fits(good: bytes) -> None:
    """What comes out is an error, or another set of as many positions as it says."""
    for bit in range(8 * min(len(good), 150)):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            read = DeletionVector.decode(sealed(bytes(flipped)), place=PLACE)
        except DeletionVectorError:
            continue
        positions = read.positions()
        assert len(positions) == read.cardinality
        assert (np.diff(positions) > 0).all()
        assert positions[0] >= 0


def array_container(*values: int) -> bytes:
    head = struct.pack("<IIHHI", 12346, 1, 0, len(values) - 1, 16)
    return head + struct.pack(f"<{len(values)}H", *values)


def run_container(cardinality: int, *runs: tuple[int, int]) -> bytes:
    head = struct.pack("<IBHHH", 12347, 1, 0, cardinality - 1, len(runs))
    return head + b"".join(struct.pack("<HH", start, length) for start, length in runs)


@pytest.mark.parametrize(
    "bitmap",
    [
        array_container(5, 3),
        array_container(5, 5),
        run_container(20, (0, 9), (5, 9)),
        run_container(20, (50, 9), (0, 9)),
        run_container(20, (65_530, 19)),
        run_container(1),
        struct.pack("<IIHHI", 12346, 1, 0, 9999, 16) + bytes(8192),
    ],
    ids=[
        "order",
        "repeated",
        "overlapping runs",
        "unordered runs",
        "a run too far",
        "no run",
        "bitset count",
    ],
)
def test_a_container_that_breaks_its_own_rules(bitmap: bytes) -> None:
    fails(sealed(vector_of([(0, bitmap)])))


def test_the_containers_by_hand_are_otherwise_right() -> None:
    """So that the test before this one fails for the reason it means."""
    for bitmap, count in ((array_container(3, 5), 2), (run_container(20, (0, 9), (50, 9)), 20)):
        assert DeletionVector.decode(sealed(vector_of([(0, bitmap)]))).cardinality == count


# -- as blobs


def placed(made: DeletionVector) -> tuple[BlobMetadata, bytes]:
    reader = open_puffin(puffin(made.blob("s3://bucket/data.parquet")))
    return reader.blob(0), reader.read(reader.blob(0))


def test_a_blob_and_back() -> None:
    made = DeletionVector.of([1, 2, 2**40])
    blob, payload = placed(made)
    assert blob.type == DELETION_VECTOR_V1
    assert blob.fields == (2147483645,)
    assert blob.properties == {"referenced-data-file": "s3://bucket/data.parquet", "cardinality": "3"}
    assert DeletionVector.from_blob(blob, payload) == made


@pytest.mark.parametrize(
    ("changes", "expected", "found"),
    [
        ({"type": "other"}, "the type", "other"),
        ({"codec": "zstd"}, "codec", "zstd"),
        ({"snapshot_id": 7}, "snapshot id -1", "7"),
        ({"sequence_number": 7}, "sequence number -1", "7"),
        ({"properties": {"cardinality": "3"}}, "referenced-data-file", "None"),
        ({"properties": {"referenced-data-file": "", "cardinality": "3"}}, "referenced-data-file", "''"),
        ({"properties": {"referenced-data-file": "x"}}, "cardinality", "None"),
        ({"properties": {"referenced-data-file": "x", "cardinality": "-3"}}, "cardinality", "-3"),
        ({"properties": {"referenced-data-file": "x", "cardinality": "³"}}, "cardinality", "³"),
        ({"properties": {"referenced-data-file": "x", "cardinality": "9" * 5000}}, "cardinality", "999"),
        ({"properties": {"referenced-data-file": "x", "cardinality": "4"}}, "4 positions", "3"),
    ],
)
def test_metadata_that_the_specification_forbids(
    changes: dict[str, object], expected: str, found: str
) -> None:
    blob, payload = placed(DeletionVector.of([1, 2, 2**40]))
    with pytest.raises(DeletionVectorError) as caught:
        DeletionVector.from_blob(replace(blob, **changes), payload, "file")  # type: ignore[arg-type]
    assert (caught.value.place.file, caught.value.place.offset) == ("file", blob.offset)
    assert expected in caught.value.expected
    assert found in caught.value.found
