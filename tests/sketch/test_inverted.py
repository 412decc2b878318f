"""The inverted theta: its algebra, its answers about sets of files, its bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rookery.model import Place
from rookery.sketch import MAX_FILES, MAX_THETA, InvertedTheta, K, ThetaSketch, union
from rookery.sketch.inverted import InvertedThetaBuilder, InvertedThetaError, bit_width
from tests.sketch.reference import random_hashes

PLACE = Place("file", 100)
HEADER = 16
FILES = st.integers(1, 40) | st.sampled_from([255, 256, 257, MAX_FILES])


def sketch(hashes: Iterable[int], theta: int = MAX_THETA) -> ThetaSketch:
    return ThetaSketch(np.array(sorted(h for h in set(hashes) if h < theta), np.uint64), theta)


@st.composite
def sketches(draw: st.DrawFn) -> ThetaSketch:
    """Few hashes from a narrow range, so that files share them; θ inside that range at times."""
    theta = draw(st.sampled_from([MAX_THETA, 40, 25]))
    return sketch(draw(st.sets(st.integers(1, 50), max_size=20)), theta)


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, list[tuple[int, ThetaSketch]]]:
    """A number of files, and sketches of some of them."""
    files = draw(FILES)
    ordinals = draw(st.lists(st.integers(0, files - 1), min_size=1, max_size=8))
    return files, [(ordinal, draw(sketches())) for ordinal in ordinals]


def parts_of(group: tuple[int, list[tuple[int, ThetaSketch]]]) -> list[InvertedTheta]:
    files, found = group
    return [InvertedTheta.of(one, ordinal, files) for ordinal, one in found]


def large(seed: int, ordinal: int, count: int, files: int = 9, theta: int = MAX_THETA) -> InvertedTheta:
    return InvertedTheta.of(ThetaSketch(random_hashes(count, theta, seed), theta), ordinal, files)


def same_below_the_lesser_theta(one: InvertedTheta, other: InvertedTheta) -> bool:
    theta = min(one.theta, other.theta)
    return one.below(theta) == other.below(theta)


# -- merging


@given(groups(), st.data())
def test_merging_in_any_order_and_any_grouping(
    group: tuple[int, list[tuple[int, ThetaSketch]]], data: st.DataObject
) -> None:
    parts = parts_of(group)
    whole = InvertedTheta.merge(parts)
    assert InvertedTheta.merge(data.draw(st.permutations(parts))) == whole
    cut = data.draw(st.integers(1, len(parts)))
    left = InvertedTheta.merge(parts[:cut])
    right = InvertedTheta.merge([InvertedTheta.empty(group[0]), *parts[cut:]])
    assert InvertedTheta.merge([left, right]) == whole
    assert InvertedTheta.merge([whole, whole]) == whole
    assert InvertedTheta.merge([whole, *parts]) == whole
    assert InvertedTheta.merge([InvertedTheta.empty(group[0]), whole]) == whole


@pytest.mark.parametrize("counts", [(K, K), (K, K, K), (3000, 3000, 3000, 3000), (2 * K, 5, 2 * K - 1)])
def test_merging_more_than_is_kept(counts: tuple[int, ...]) -> None:
    """When θ falls depends on the order; what is kept below the lesser θ does not."""
    parts = [large(seed, seed, count) for seed, count in enumerate(counts)]
    whole = InvertedTheta.merge(parts)
    one_by_one = parts[0]
    for part in parts[1:]:
        one_by_one = InvertedTheta.merge([one_by_one, part])
    for merged in (InvertedTheta.merge(parts[::-1]), one_by_one, InvertedTheta.merge([whole, *parts])):
        assert same_below_the_lesser_theta(merged, whole)
        assert K <= len(merged.hashes) < 2 * K
    exact = union([part.sketch() for part in parts])
    assert whole.sketch() == exact


@given(groups())
def test_a_row_names_the_files_that_have_the_hash(group: tuple[int, list[tuple[int, ThetaSketch]]]) -> None:
    files, found = group
    merged = InvertedTheta.merge(parts_of(group))
    assert merged.theta == min(one.theta for _, one in found)
    assert merged.rows.shape == (len(merged.hashes), bit_width(files))
    for value in range(1, 51):
        where = merged.with_hash(value)
        if value >= merged.theta:
            assert where is None  # nothing is known
        else:
            having = {ordinal for ordinal, one in found if value in one.hashes}
            assert where is not None
            assert len(where) == files
            assert set(np.flatnonzero(where).tolist()) == having


@given(groups())
def test_building_is_merging(group: tuple[int, list[tuple[int, ThetaSketch]]]) -> None:
    files, found = group
    builder = InvertedThetaBuilder(files)
    for ordinal, one in found:
        builder.add(one, ordinal)
    assert builder.result() == InvertedTheta.merge(parts_of(group))


@pytest.mark.parametrize("counts", [(K, K), (3000,) * 9, (5, 2 * K - 1, 7, 2 * K - 1)])
def test_building_more_than_is_kept(counts: tuple[int, ...]) -> None:
    builder = InvertedThetaBuilder(9)
    parts = []
    for number, count in enumerate(counts):
        parts.append(large(number, number, count))
        builder.add(ThetaSketch(parts[-1].hashes), number)
    built = builder.result()
    assert same_below_the_lesser_theta(built, InvertedTheta.merge(parts))
    assert K <= len(built.hashes) < 2 * K


# -- sets of files


@given(groups(), st.data())
def test_moving_files_to_another_group(
    group: tuple[int, list[tuple[int, ThetaSketch]]], data: st.DataObject
) -> None:
    """The dead stay behind, the others keep their order behind an offset."""
    files, found = group
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=files, max_size=files)), bool)
    alive = np.flatnonzero(mask).tolist()
    offset = data.draw(st.integers(0, MAX_FILES - max(len(alive), 1)))
    merged = InvertedTheta.merge(parts_of(group))
    moved = merged.moved(mask, offset, MAX_FILES)
    assert (moved.files, moved.theta) == (MAX_FILES, merged.theta)
    for value in range(1, min(51, merged.theta)):
        having = {ordinal for ordinal, one in found if value in one.hashes}
        where = moved.with_hash(value)
        assert where is not None
        expected = [offset + number for number, ordinal in enumerate(alive) if ordinal in having]
        assert np.flatnonzero(where).tolist() == expected


@given(groups(), st.data())
def test_the_sketch_of_some_files_is_their_union(
    group: tuple[int, list[tuple[int, ThetaSketch]]], data: st.DataObject
) -> None:
    files, found = group
    merged = InvertedTheta.merge(parts_of(group))
    chosen = data.draw(st.sets(st.integers(0, files - 1)))
    chosen |= data.draw(st.sets(st.sampled_from([ordinal for ordinal, _ in found])))
    mask = np.zeros(files, bool)
    mask[list(chosen)] = True
    expected = {h for ordinal, one in found if ordinal in chosen for h in one.hashes.tolist()}
    assert merged.sketch(mask) == sketch(expected, merged.theta)
    assert merged.sketch(np.ones(files, bool)) == merged.sketch()
    assert not len(merged.sketch(np.zeros(files, bool)).hashes)


@pytest.mark.parametrize("files", [1, 7, 8, 9, 1023, MAX_FILES])
def test_the_first_and_the_last_file(files: int) -> None:
    one, other = sketch({1, 2, 3}), sketch({3, 4})
    last = files - 1
    merged = InvertedTheta.merge([InvertedTheta.of(one, 0, files), InvertedTheta.of(other, last, files)])
    mask = np.zeros(files, bool)
    mask[last] = True
    assert merged.sketch(mask) == (other if files > 1 else sketch({1, 2, 3, 4}))


# -- θ


@pytest.mark.parametrize("count", [0, K, 2 * K - 1])
def test_what_fits_is_not_cut(count: int) -> None:
    whole = large(1, 0, count)
    assert whole.cut() == whole


@pytest.mark.parametrize("count", [2 * K, 2 * K + 1, 5 * K])
def test_what_does_not_fit_is_cut_to_k(count: int) -> None:
    whole = large(1, 3, count)
    cut = whole.cut()
    assert (len(cut.hashes), cut.theta) == (K, whole.hashes[K])
    assert cut == whole.below(cut.theta)
    assert cut.cut() == cut


@given(groups(), st.integers(1, 60))
def test_below(group: tuple[int, list[tuple[int, ThetaSketch]]], theta: int) -> None:
    merged = InvertedTheta.merge(parts_of(group))
    low = merged.below(theta)
    assert low.theta == min(theta, merged.theta)
    assert low.hashes.tolist() == [h for h in merged.hashes.tolist() if h < low.theta]
    for value in low.hashes.tolist():
        assert np.array_equal(low.with_hash(value), merged.with_hash(value))


@given(st.lists(sketches(), max_size=6))
def test_union(parts: list[ThetaSketch]) -> None:
    theta = min((part.theta for part in parts), default=MAX_THETA)
    assert union(parts) == sketch({h for part in parts for h in part.hashes.tolist()}, theta)
    assert union(reversed(parts)) == union(parts)
    assert union([union(parts), *parts]) == union(parts)


def test_a_large_union_is_cut() -> None:
    hashes = random_hashes(5 * K, MAX_THETA, 1)
    found = union([ThetaSketch(hashes[::2]), ThetaSketch(hashes[1::2])])
    assert found == ThetaSketch(hashes[:K], int(hashes[K]))


# -- bytes


def encoded(theta: InvertedTheta) -> bytes:
    payload = theta.encode()
    assert len(payload) == HEADER + len(theta.hashes) * (8 + bit_width(theta.files))
    return payload


@given(groups())
def test_round_trip(group: tuple[int, list[tuple[int, ThetaSketch]]]) -> None:
    merged = InvertedTheta.merge(parts_of(group))
    found = InvertedTheta.decode(encoded(merged))
    assert found == merged
    assert InvertedTheta.merge([found, merged]) == merged  # what was read can be worked with


def test_round_trip_of_extremes() -> None:
    for theta in (
        InvertedTheta.empty(1),
        InvertedTheta.empty(MAX_FILES),
        large(5, 8, K),
        large(5, 0, 2 * K).cut(),
    ):
        assert InvertedTheta.decode(encoded(theta)) == theta


def test_golden_bytes() -> None:
    theta = InvertedTheta.merge(
        [InvertedTheta.of(sketch({1, 256}, 1000), 0, 9), InvertedTheta.of(sketch({256}, 1000), 8, 9)]
    )
    expected = "01 00 0900 02000000 e803000000000000  0100000000000000 0001000000000000  0100 0101"
    assert theta.encode() == bytes.fromhex(expected)


def header(version: int = 1, files: int = 9, count: int = 0, theta: int = MAX_THETA) -> bytes:
    return struct.pack("<BBHIQ", version, 0, files, count, theta)


def body(*hashes: int) -> bytes:
    return b"".join(struct.pack("<Q", h) for h in hashes) + bytes(2 * len(hashes))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        header()[:-1],
        header(version=0),
        header(version=2),
        header(files=0),
        header(files=MAX_FILES + 1),
        header(theta=0),
        header(theta=MAX_THETA + 1),
        header(theta=2**64 - 1),
        header(count=1),
        header(count=0) + b"\0",
        header(count=2**32 - 1) + body(1),
        header(count=1) + body(0),
        header(count=1, theta=5) + body(5),
        header(count=2) + body(1, 1),
        header(count=2) + body(2, 1),
        header(count=1, theta=5) + body(2**64 - 1),
    ],
)
def test_bad_bytes(payload: bytes) -> None:
    with pytest.raises(InvertedThetaError) as caught:
        InvertedTheta.decode(payload, place=PLACE)
    assert str(caught.value).startswith("file, byte 100")


@given(st.binary(max_size=80))
def test_any_bytes(payload: bytes) -> None:
    try:
        found = InvertedTheta.decode(payload)
    except InvertedThetaError:
        return
    assert InvertedTheta.decode(found.encode()) == found


@given(groups(), st.data())
def test_mutated_bytes(group: tuple[int, list[tuple[int, ThetaSketch]]], data: st.DataObject) -> None:
    payload = bytearray(InvertedTheta.merge(parts_of(group)).encode())
    at = data.draw(st.integers(0, len(payload) - 1))
    cut = data.draw(st.booleans())
    if cut:
        del payload[at:]
    else:
        payload[at] ^= data.draw(st.integers(1, 255))
    try:
        found = InvertedTheta.decode(bytes(payload))
    except InvertedThetaError:
        return
    assert not cut
    answers(found)


def answers(theta: InvertedTheta) -> None:
    """Whatever was accepted can be asked: order and θ hold."""
    everything: NDArray[np.bool_] = np.ones(theta.files, bool)
    found = theta.sketch(everything)
    assert (found.hashes < theta.theta).all()
    assert (np.diff(found.hashes.astype(object)) > 0).all()
    assume(len(found.hashes))
    assert theta.with_hash(int(found.hashes[0])) is not None
