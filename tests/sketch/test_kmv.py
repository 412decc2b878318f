"""The kernels that build theta sketches, against Apache DataSketches and against a plain MurmurHash3."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import datasketches
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rookery.sketch import MAX_THETA, K, ThetaSketch, union
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.lengths import Lengths
from tests.sketch.murmur import murmur3_x64_128, theta_hash, theta_hashes

PADDING = 24  # more than the kernels ever load at once


def array(data: bytes, *, offset: int = 0, after: int = 0, writable: bool = False) -> NDArray[np.uint8]:
    """*data* at any alignment, with bytes before and behind it that must not be looked at."""
    room = np.full(PADDING + offset + len(data) + after, 0xA5, np.uint8)
    aligned = (-room.ctypes.data) % 8 + offset
    room[aligned : aligned + len(data)] = np.frombuffer(data, np.uint8)
    view = room[aligned : aligned + len(data)]
    view.flags.writeable = writable
    return view


def fixed(values: Sequence[bytes], width: int, data: NDArray[np.uint8] | None = None) -> list[int]:
    builder = ThetaBuilder()
    data = array(b"".join(values)) if data is None else data
    builder.add_fixed(data, 0, len(values), width)
    return builder.result().hashes.tolist()


def retained(sketch: datasketches.update_theta_sketch) -> list[int]:
    return sorted(sketch.compact())


def pattern(length: int) -> bytes:
    return bytes((7 * i + 13 * length + 1) % 256 for i in range(length))


def test_the_judge_is_right() -> None:
    """The published digests of the hash, and the hashes of DataSketches."""
    assert murmur3_x64_128(b"", 0) == (0, 0)
    fox = b"The quick brown fox jumps over the lazy dog"
    assert murmur3_x64_128(fox, 0) == (0xE34BBC7BBC071B6C, 0x7A433CA9C49A9347)
    texts = [pattern(length).decode("latin-1") for length in range(1, 65)]
    sketch = datasketches.update_theta_sketch()
    for text in texts:
        sketch.update(text)
    assert retained(sketch) == theta_hashes(text.encode() for text in texts)


# -- one value, wherever it lies


@pytest.mark.parametrize("length", range(1, 65))
@pytest.mark.parametrize("writable", [False, True], ids=["readonly", "writable"])
def test_every_length_at_every_alignment(length: int, writable: bool) -> None:
    value = pattern(length)
    for offset in range(8):
        data = array(value, offset=offset, writable=writable)
        assert fixed([value], length, data) == [theta_hash(value)]


@pytest.mark.parametrize("length", range(1, 34))
def test_every_start(length: int) -> None:
    """Where the value begins decides whether its tail can be loaded as a word."""
    value = pattern(length)
    for start in range(18):
        builder = ThetaBuilder()
        builder.add_fixed(array(b"\xee" * start + value + b"\xee" * (start % 3)), start, 1, length)
        assert builder.result().hashes.tolist() == [theta_hash(value)]
        builder = ThetaBuilder()
        builder.add_offsets(array(b"\xee" * start + value), np.array([start, start + length]))
        assert builder.result().hashes.tolist() == [theta_hash(value)]


@given(st.lists(st.binary(max_size=64), max_size=30), st.integers(0, 7))
@example([b""], 0)
@example([b"\0", b"\0\0", b"\0" * 16], 3)
def test_byte_arrays_behind_their_lengths(values: list[bytes], offset: int) -> None:
    data = array(b"".join(struct.pack("<I", len(value)) + value for value in values), offset=offset)
    builder = ThetaBuilder()
    assert builder.add_prefixed(data, 0, len(data)) == len(values)
    assert builder.result().hashes.tolist() == theta_hashes(values)
    assert builder.take_lengths() == lengths_of(values)
    assert builder.take_lengths() == Lengths()


@given(st.lists(st.binary(max_size=64), max_size=30), st.sampled_from([np.int32, np.int64]), st.data())
def test_byte_arrays_between_offsets(values: list[bytes], kind: type, data: st.DataObject) -> None:
    offsets = np.cumsum([0, *map(len, values)]).astype(kind)
    buffer = array(b"".join(values), writable=data.draw(st.booleans()))
    first = data.draw(st.integers(0, len(values)))
    last = data.draw(st.integers(first, len(values)))
    builder = ThetaBuilder()
    builder.add_offsets(buffer, offsets[first : last + 1])
    assert builder.result().hashes.tolist() == theta_hashes(values[first:last])
    assert builder.take_lengths() == lengths_of(values[first:last])


def lengths_of(values: list[bytes]) -> Lengths:
    return Lengths(len(values), len(b"".join(values)), max(map(len, values), default=0))


def test_lengths_while_the_table_shrinks() -> None:
    values = [b"%d" % n for n in range(20_000)]
    builder = ThetaBuilder()
    builder.add_offsets(array(b"".join(values)), np.cumsum([0, *map(len, values)]))
    assert builder.theta < MAX_THETA
    assert builder.take_lengths() == lengths_of(values)


@given(st.lists(st.text(max_size=40), max_size=30))
def test_strings_as_datasketches_has_them(values: list[str]) -> None:
    sketch = datasketches.update_theta_sketch()
    for value in values:
        sketch.update(value)
    encoded = [value.encode() for value in values]
    builder = ThetaBuilder()
    builder.add_offsets(array(b"".join(encoded)), np.cumsum([0, *map(len, encoded)]))
    assert builder.result().hashes.tolist() == retained(sketch)


# -- many values of one width


@given(st.sampled_from([1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 33]), st.data())
def test_fixed_widths(width: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.binary(min_size=width, max_size=width), max_size=20))
    start = data.draw(st.integers(0, 9))
    buffer = array(b"\xee" * start + b"".join(values), offset=data.draw(st.integers(0, 7)))
    builder = ThetaBuilder()
    builder.add_fixed(buffer, start, len(values), width)
    assert builder.result().hashes.tolist() == theta_hashes(values)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40))
def test_longs_as_datasketches_has_them(values: list[int]) -> None:
    sketch = datasketches.update_theta_sketch()
    for value in values:
        sketch.update(value)
    assert fixed([struct.pack("<q", value) for value in values], 8) == retained(sketch)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40), st.integers(0, 7))
@example([-1, 0, 1, 2**31 - 1, -(2**31)], 0)
def test_widened_integers_are_longs(values: list[int], offset: int) -> None:
    builder = ThetaBuilder()
    data = array(b"\xee\xee" + b"".join(struct.pack("<i", value) for value in values), offset=offset)
    builder.add_widened(data, 2, len(values))
    assert builder.result().hashes.tolist() == theta_hashes(struct.pack("<q", value) for value in values)


# -- decimals


def minimal(value: int) -> bytes:
    """The fewest bytes of two's complement that hold *value*: BigInteger.toByteArray."""
    length = (value + (value < 0)).bit_length() // 8 + 1
    return value.to_bytes(length, "big", signed=True)


def test_minimal_is_minimal() -> None:
    found = [minimal(value).hex() for value in (0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768)]
    assert found == ["00", "01", "ff", "7f", "0080", "80", "ff7f", "00ff", "0100", "7fff", "008000"]


@pytest.mark.parametrize("width", range(1, 17))
@pytest.mark.parametrize("order", ["little", "big"])
def test_decimals_at_the_borders(width: int, order: str) -> None:
    """Every length that the shortest form can have, on both sides of where it grows."""
    borders = {
        sign * (1 << bits) + delta for bits in range(8 * width) for sign in (1, -1) for delta in (-1, 0)
    }
    low, high = -(1 << 8 * width - 1), (1 << 8 * width - 1) - 1
    values = sorted(value for value in borders | {0, low, high} if low <= value <= high)
    data = b"".join(value.to_bytes(width, order, signed=True) for value in values)
    for start in (0, 3):
        builder = ThetaBuilder()
        builder.add_decimals(
            array(b"\xee" * start + data), start, len(values), width, little=order == "little"
        )
        assert builder.result().hashes.tolist() == theta_hashes(map(minimal, values))


@given(st.integers(1, 16), st.booleans(), st.data())
def test_decimals(width: int, little: bool, data: st.DataObject) -> None:
    limit = 1 << (8 * width - 1)
    values = data.draw(st.lists(st.integers(-limit, limit - 1), max_size=20))
    stored = b"".join(value.to_bytes(width, "little" if little else "big", signed=True) for value in values)
    builder = ThetaBuilder()
    buffer = array(stored, offset=data.draw(st.integers(0, 7)), writable=data.draw(st.booleans()))
    builder.add_decimals(buffer, 0, len(values), width, little=little)
    assert builder.result().hashes.tolist() == theta_hashes(map(minimal, values))


# -- bad input


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5), st.data())
def test_torn_byte_arrays(values: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(struct.pack("<I", len(value)) + value for value in values)
    borders = set(np.cumsum([4 + len(value) for value in values]).tolist()) | {0}
    cut = data.draw(st.integers(1, len(whole) - 1).filter(lambda at: at not in borders))
    with pytest.raises(ValueError, match="longer than its page"):
        ThetaBuilder().add_prefixed(array(whole[:cut]), 0, cut)


@pytest.mark.parametrize("length", [1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_length_beyond_the_page(length: int) -> None:
    with pytest.raises(ValueError, match="longer than its page"):
        ThetaBuilder().add_prefixed(array(struct.pack("<I", length)), 0, 4)


@pytest.mark.parametrize("start, count", [(-1, 1), (0, 3), (1, 2), (17, 0), (0, -1)])
def test_ranges_outside_the_array(start: int, count: int) -> None:
    data = array(bytes(16))
    builder = ThetaBuilder()
    for add in (
        lambda: builder.add_fixed(data, start, count, 8),
        lambda: builder.add_decimals(data, start, count, 8, little=True),
        lambda: builder.add_widened(data, start, 2 * count),
        lambda: builder.add_prefixed(data, start, start + 8 * count),
        lambda: builder.add_offsets(data, np.array([start, start + 8 * count])),
    ):
        with pytest.raises(ValueError, match="are not within"):
            add()
    assert builder.result().is_empty


def test_nothing() -> None:
    builder = ThetaBuilder()
    empty = np.empty(0, np.uint8)
    builder.add_fixed(empty, 0, 0, 8)
    builder.add_widened(empty, 0, 0)
    builder.add_decimals(empty, 0, 0, 16, little=False)
    builder.add_offsets(empty, np.array([0]))
    builder.add_offsets(empty, np.array([0, 0, 0]))
    assert builder.add_prefixed(empty, 0, 0) == 0
    assert builder.result() == ThetaSketch(np.empty(0, np.uint64))


# -- θ


def longs(values: NDArray[np.int64], theta: int = MAX_THETA, batches: int = 1) -> ThetaSketch:
    builder = ThetaBuilder(theta)
    for batch in np.array_split(values, batches):
        builder.add_fixed(np.frombuffer(batch.tobytes(), np.uint8), 0, len(batch), 8)
    return builder.result()


def all_hashes(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Each value's hash, by the kernel, which the tests above have shown to be right."""
    return np.sort(
        np.concatenate([longs(part).hashes for part in np.array_split(values, len(values) // K + 1)])
    )


@pytest.mark.parametrize("count", [0, 1, K, 2 * K - 1, 2 * K, 2 * K + 1, 3 * K, 20 * K])
def test_the_smallest_hashes_are_kept(count: int) -> None:
    values = np.arange(count, dtype=np.int64)
    sketch = longs(values)
    exact = all_hashes(values)
    below = exact[exact < sketch.theta]
    assert np.array_equal(sketch.hashes, below)
    if count < 2 * K:
        assert (sketch.theta, len(below)) == (MAX_THETA, count)
    else:
        assert K <= len(below) < 2 * K
        assert sketch.theta in exact.tolist()


def test_datasketches_keeps_the_same_below_the_lesser_theta() -> None:
    values = np.arange(50_000, dtype=np.int64)
    theirs = datasketches.update_theta_sketch(12)
    for value in values.tolist():
        theirs.update(value)
    ours = longs(values)
    theta = min(ours.theta, theirs.theta64)
    assert [h for h in ours.hashes.tolist() if h < theta] == [h for h in retained(theirs) if h < theta]
    assert ours.estimate().low < 50_000 < ours.estimate().high


def test_repetitions_and_order_change_nothing() -> None:
    values = np.arange(3 * K, dtype=np.int64)
    exact = all_hashes(values)
    shuffled = np.random.default_rng(1).permutation(np.concatenate([values] * 4))
    for sketch in (longs(shuffled), longs(shuffled, batches=37)):
        assert np.array_equal(sketch.hashes, exact[exact < sketch.theta])
        assert len(sketch.hashes) >= K


@settings(max_examples=25)
@given(st.integers(0, 4 * K), st.floats(0, 1))
def test_a_theta_that_starts_low(count: int, share: float) -> None:
    theta = max(int(MAX_THETA * share), 1)
    values = np.arange(count, dtype=np.int64)
    whole, low = longs(values), longs(values, theta)
    assert low.theta <= theta
    both = min(whole.theta, low.theta)
    assert np.array_equal(low.hashes[low.hashes < both], whole.hashes[whole.hashes < both])
    assert np.array_equal(union([whole, low]).hashes, whole.hashes[whole.hashes < both])
