"""Theta sketches: the same bytes and the same answers as Apache DataSketches gives."""

from __future__ import annotations

import struct
from collections.abc import Callable

import datasketches
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.model import Certainty, Estimate, Place
from rookery.sketch import MAX_THETA, ThetaError, ThetaSketch
from rookery.sketch.theta import ThetaFlag
from tests.sketch.reference import Reference, hashes_of, reference

PLACE = Place("file", 100)
FLAGS_AT = 5

# Made anew for each test: what a module holds to the end, the reference's library reports as leaked.
SHAPES: dict[str, Callable[[], Reference]] = {
    "empty": lambda: reference([]),
    "single": lambda: reference([1]),
    "two": lambda: reference([1, 2]),
    "exact": lambda: reference(range(30)),
    "full": lambda: reference(range(4000), 12),
    "estimating": lambda: reference(range(1000)),
    "estimating, large": lambda: reference(range(20_000), 12),
    "sampled": lambda: reference(range(300), 12, p=0.1),
    "sampled, one left": lambda: reference([1], 12, p=0.9),
    "sampled, none left": lambda: reference([1], 12, p=0.001),
}
shapes = pytest.mark.parametrize("shape", SHAPES)


def decode(payload: bytes) -> ThetaSketch:
    return ThetaSketch.decode(payload, place=PLACE)


def agrees(ours: ThetaSketch, theirs: Reference) -> None:
    assert ours.hashes.tolist() == hashes_of(theirs)
    assert ours.theta == theirs.theta64
    assert ours.is_empty == theirs.is_empty()
    assert ours.share == pytest.approx(theirs.theta, rel=1e-15)
    estimate = ours.estimate()
    assert estimate.value == pytest.approx(theirs.get_estimate(), rel=1e-12)
    assert (estimate.kind is Certainty.SKETCHED) == theirs.is_estimation_mode()
    assert estimate.low <= estimate.value <= estimate.high


def fails(payload: bytes) -> ThetaError:
    with pytest.raises(ThetaError) as caught:
        decode(payload)
    assert caught.value.place.file == "file"
    assert PLACE.offset <= caught.value.place.offset <= PLACE.offset + 24
    assert caught.value.expected
    assert caught.value.found
    return caught.value


def without_single_item(payload: bytes) -> bytes:
    """Java sets the flag, and so do we; C++, which is the reference here, does not."""
    return payload[:FLAGS_AT] + bytes([payload[FLAGS_AT] & ~ThetaFlag.SINGLE_ITEM]) + payload[FLAGS_AT + 1 :]


# -- against the reference


def test_the_shapes_are_what_they_say() -> None:
    assert SHAPES["sampled, none left"]().is_estimation_mode()
    assert SHAPES["sampled, none left"]().num_retained == 0
    assert SHAPES["sampled, one left"]().num_retained == 1
    assert SHAPES["sampled, one left"]().is_estimation_mode()
    assert SHAPES["estimating"]().is_estimation_mode()
    assert not SHAPES["full"]().is_estimation_mode()


@shapes
def test_the_plain_form(shape: str) -> None:
    theirs = SHAPES[shape]()
    agrees(decode(theirs.serialize()), theirs)


@shapes
def test_the_packed_form(shape: str) -> None:
    theirs = SHAPES[shape]()
    payload = theirs.serialize(compress=True)
    agrees(decode(payload), theirs)
    assert decode(payload) == decode(theirs.serialize())


def test_the_packed_form_is_packed() -> None:
    """Else the test before this one would not test it."""
    packed = [shape for shape in SHAPES if SHAPES[shape]().serialize(compress=True)[1] == 4]
    assert len(packed) >= 5


@pytest.mark.parametrize(
    "values", [range(2), range(30), range(1000), range(20_000)], ids=["two", "exact", "estimating", "more"]
)
def test_the_unordered_form(values: range) -> None:
    theirs = reference(values, ordered=False)
    assert not theirs.serialize()[FLAGS_AT] & ThetaFlag.ORDERED
    agrees(decode(theirs.serialize()), theirs)


@shapes
def test_we_write_the_same_bytes(shape: str) -> None:
    theirs = SHAPES[shape]()
    ours = decode(theirs.serialize()).encode()
    assert without_single_item(ours) == theirs.serialize()
    assert bool(ours[FLAGS_AT] & ThetaFlag.SINGLE_ITEM) == (shape == "single")


@shapes
def test_they_read_what_we_write(shape: str) -> None:
    theirs = SHAPES[shape]()
    read = datasketches.compact_theta_sketch.deserialize(decode(theirs.serialize()).encode())
    assert hashes_of(read) == hashes_of(theirs)
    assert read.theta64 == theirs.theta64
    assert read.get_estimate() == theirs.get_estimate()
    assert read.is_empty() == theirs.is_empty()


@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=300),
    p=st.sampled_from([1.0, 0.5, 0.01]),
    ordered=st.booleans(),
    compress=st.booleans(),
)
def test_any_values(values: list[int], p: float, ordered: bool, compress: bool) -> None:
    theirs = reference(values, p=p, ordered=ordered)
    ours = decode(theirs.serialize(compress=compress))
    agrees(ours, theirs)
    assert decode(ours.encode()) == ours
    assert without_single_item(ours.encode()) == reference(values, p=p).serialize()


@st.composite
def sketches(draw: st.DrawFn) -> ThetaSketch:
    theta = draw(st.sampled_from([MAX_THETA, MAX_THETA - 1, 2**62, 2**40, 10**6]))
    hashes = draw(st.sets(st.integers(1, theta - 1), max_size=60))
    return ThetaSketch(np.array(sorted(hashes), dtype=np.uint64), theta)


@given(ours=sketches())
def test_any_hashes(ours: ThetaSketch) -> None:
    payload = ours.encode()
    assert decode(payload) == ours
    theirs = datasketches.compact_theta_sketch.deserialize(payload)
    agrees(ours, theirs)
    packed = theirs.serialize(compress=True)
    assert decode(packed) == ours


# -- an independent packer, which can also pack what is wrong


def pack(hashes: list[int], bits: int, theta: int = MAX_THETA, *, count: int | None = None) -> bytes:
    """Serial version 4: differences, each in *bits* bits, the highest first."""
    count = len(hashes) if count is None else count
    differences = [now - before for before, now in zip([0, *hashes], hashes, strict=False)]
    stream = "".join(f"{difference:0{bits}b}" for difference in differences)
    stream += "0" * (-len(stream) % 8)
    packed = bytes(int(stream[at : at + 8], 2) for at in range(0, len(stream), 8))
    count_bytes = max(1, (count.bit_length() + 7) // 8)
    longs = 1 if theta == MAX_THETA else 2
    head = struct.pack("<BBBBBBH", longs, 4, 3, bits, count_bytes, 0x1A, 0x93CC)
    return (
        head
        + (struct.pack("<Q", theta) if longs == 2 else b"")
        + count.to_bytes(count_bytes, "little")
        + packed
    )


@pytest.mark.parametrize("bits", range(1, 64))
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 17, 300])
def test_every_width_of_packing(bits: int, count: int) -> None:
    rng = np.random.default_rng(bits)
    largest = min(2**bits - 1, (MAX_THETA - 1) // count)
    hashes = np.cumsum(rng.integers(1, largest, count, endpoint=True, dtype=np.uint64)).tolist()
    for theta in (MAX_THETA, MAX_THETA - 1):
        if hashes[-1] < theta:
            payload = pack(hashes, bits, theta)
            found = decode(payload)
            assert found.hashes.tolist() == hashes
            assert found.theta == theta
            # So that the packer itself is right.
            assert hashes_of(datasketches.compact_theta_sketch.deserialize(payload)) == hashes


def test_packed_hashes_that_are_wrong() -> None:
    fails(pack([5, 5], 10))
    fails(pack([0, 5], 10))
    fails(pack([5, 900], 10, theta=900))
    fails(pack([2**62, 2**62 * 2 - 1], 63) + b"\x00")
    assert decode(pack([5, 899], 10, theta=900)).hashes.tolist() == [5, 899]


def test_packed_differences_that_overflow() -> None:
    """Three of nearly 2^63 each go around the 64 bits once."""
    bits = "1" * 63 * 3
    packed = int(bits + "000", 2).to_bytes(24, "big")
    fails(struct.pack("<BBBBBBH", 1, 4, 3, 63, 1, 0x1A, 0x93CC) + b"\x03" + packed)


@pytest.mark.parametrize(
    ("at", "value"),
    [(0, 0), (0, 3), (1, 5), (3, 0), (3, 64), (3, 255), (4, 0), (4, 5), (8, 0), (8, 3), (8, 1)],
)
def test_packed_preambles_that_are_wrong(at: int, value: int) -> None:
    payload = bytearray(pack([100, 200], 8))
    payload[at] = value
    fails(bytes(payload))


def test_a_packed_count_beyond_the_bytes() -> None:
    fails(pack([100, 200], 8, count=2**32 - 1))


# -- values


def test_equality() -> None:
    one, two = decode(SHAPES["two"]().serialize()), decode(SHAPES["exact"]().serialize())
    assert one == decode(one.encode())
    assert one != two
    assert one != ThetaSketch(one.hashes, MAX_THETA - 1)
    assert one != one.hashes.tolist()
    with pytest.raises(TypeError):
        hash(one)


def test_an_exact_sketch_counts_exactly() -> None:
    assert decode(SHAPES["exact"]().serialize()).estimate(3) == Estimate.exact(30)
    assert decode(SHAPES["empty"]().serialize()).estimate() == Estimate.exact(0)


def test_an_empty_sketch_may_leave_its_seed_out() -> None:
    """Java writes it so."""
    payload = bytearray(SHAPES["empty"]().serialize())
    payload[6:8] = b"\x00\x00"
    assert decode(bytes(payload)) == decode(SHAPES["empty"]().serialize())


# -- bad bytes


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("shape", ["empty", "single", "two", "exact", "estimating", "sampled, none left"])
def test_a_cut_at_every_byte(shape: str, compress: bool) -> None:
    payload = SHAPES[shape]().serialize(compress=compress)
    for length in range(len(payload)):
        fails(payload[:length])
    fails(payload + b"\x00")


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("shape", ["empty", "single", "two", "exact", "estimating", "sampled, none left"])
def test_a_flip_of_every_bit(shape: str, compress: bool) -> None:
    """What comes out is an error, or a sketch that keeps the rules."""
    payload = SHAPES[shape]().serialize(compress=compress)
    for bit in range(8 * len(payload)):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            found = decode(bytes(flipped))
        except ThetaError:
            continue
        assert (found.hashes[1:] > found.hashes[:-1]).all()
        assert all(0 < value < found.theta for value in found.hashes.tolist())
        estimate = found.estimate()
        assert estimate.low <= estimate.value <= estimate.high
        assert decode(found.encode()) == found


def plain(hashes: list[int], theta: int = MAX_THETA, flags: int = 0x1A) -> bytes:
    head = struct.pack("<BBBBBBHIIQ", 3, 3, 3, 0, 0, flags, 0x93CC, len(hashes), 0, theta)
    return head + struct.pack(f"<{len(hashes)}Q", *hashes)


def test_hashes_out_of_order() -> None:
    assert decode(plain([3, 5, 9])).hashes.tolist() == [3, 5, 9]
    assert "ascending" in fails(plain([3, 9, 5])).expected
    assert "distinct" in fails(plain([3, 5, 5])).expected


def test_hashes_out_of_order_are_sorted_where_they_may_be() -> None:
    unordered = 0x1A & ~ThetaFlag.ORDERED
    assert decode(plain([9, 3, 5], flags=unordered)).hashes.tolist() == [3, 5, 9]
    assert "distinct" in fails(plain([9, 3, 9], flags=unordered)).expected


@pytest.mark.parametrize("hashes", [[0, 5], [0], [5, 1000], [5, 1001], [2**64 - 1], [5, 2**63]])
def test_hashes_out_of_range(hashes: list[int]) -> None:
    assert "between 0 and θ 1000" in fails(plain(hashes, theta=1000)).expected


@pytest.mark.parametrize("theta", [0, 2**63, 2**64 - 1])
def test_a_theta_out_of_range(theta: int) -> None:
    error = fails(plain([], theta=theta))
    assert error.place.offset == PLACE.offset + 16
    assert str(theta) in error.found


@pytest.mark.parametrize(
    ("at", "value", "expected"),
    [
        (0, 0, "preamble of 1 to 3"),
        (0, 4, "preamble of 1 to 3"),
        (1, 1, "serial version"),
        (1, 2, "serial version"),
        (1, 5, "serial version"),
        (2, 1, "family 3"),
        (2, 2, "family 3"),
        (5, 0x1B, "little-endian"),
        (5, 0x1E, "preamble of 1 long on an empty"),
        (6, 0xCD, "seed"),
        (7, 0x00, "seed"),
        (8, 29, "29 hashes"),
        (11, 255, "hashes"),
    ],
)
def test_a_preamble_that_is_wrong(at: int, value: int, expected: str) -> None:
    payload = bytearray(SHAPES["exact"]().serialize())
    payload[at] = value
    assert expected in fails(bytes(payload)).expected


def test_another_seed_is_refused() -> None:
    """Hashes of two seeds have nothing to do with each other."""
    other = datasketches.update_theta_sketch(5, 1.0, 123)
    other.update(1)
    assert "0x93cc" in fails(other.compact().serialize()).expected


def test_a_sketch_that_is_still_updated_is_refused() -> None:
    fails(b"\x02\x03\x02\x05\x05\x00\xcc\x93" + bytes(24))
