"""HLL sketches: what the library says of them, merging in any order, and bytes that are none."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from random import Random

import datasketches
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.model import IN_MEMORY, Certainty, Estimate, Place
from rookery.sketch import HllError, HllSketch
from rookery.sketch.hll_layout import (
    BODY_OFFSET,
    FAMILY_OFFSET,
    FLAGS_OFFSET,
    LEAST_OFFSET,
    LG_K_OFFSET,
    MODE_OFFSET,
    REGISTERS_OFFSET,
    SET_COUPONS_OFFSET,
    VERSION_OFFSET,
    HllFlag,
    HllKind,
    Mode,
    read_registers,
)
from tests.fuzz.mutate import edited

PLACE = Place("s3://bucket/file.puffin", 100)
SIZES = {  # by lg k, numbers of values that lead through all modes
    4: [0, 1, 7, 8, 100, 40_000],
    8: [0, 7, 8, 24, 25, 3_000],
    12: [0, 1, 7, 8, 384, 385, 60_000],
}
SKETCHES = [(lg_k, kind, count) for lg_k, counts in SIZES.items() for kind in HllKind for count in counts]


def library_sketch(
    values: Iterable[int], lg_k: int = 12, kind: HllKind = HllKind.HLL_4
) -> datasketches.hll_sketch:
    sketch = datasketches.hll_sketch(lg_k, datasketches.tgt_hll_type(kind.value))
    for value in values:
        sketch.update(value)
    return sketch


def sketch_of(values: Iterable[int], lg_k: int = 12, kind: HllKind = HllKind.HLL_4) -> HllSketch:
    return HllSketch(library_sketch(values, lg_k, kind))


def payload_of(count: int, lg_k: int = 12, kind: HllKind = HllKind.HLL_4) -> bytes:
    return sketch_of(range(count), lg_k, kind).encode()


def changed(payload: bytes, offset: int, *values: int) -> bytes:
    return payload[:offset] + bytes(values) + payload[offset + len(values) :]


@pytest.mark.parametrize(("lg_k", "kind", "count"), SKETCHES)
def test_every_form_is_read(lg_k: int, kind: HllKind, count: int) -> None:
    theirs = library_sketch(range(count), lg_k, kind)
    for payload in (theirs.serialize_compact(), theirs.serialize_updatable()):
        sketch = HllSketch.decode(payload)
        assert (sketch.lg_k, sketch.kind, sketch.is_empty) == (lg_k, kind, count == 0)
        assert sketch.estimate().value == theirs.get_estimate()
        assert HllSketch.decode(sketch.encode()).encode() == sketch.encode()
        for deviations in (1, 2, 3):
            estimate = sketch.estimate(deviations)
            assert estimate.low == theirs.get_lower_bound(deviations)
            assert estimate.high == theirs.get_upper_bound(deviations)
            assert estimate.low <= count <= estimate.high or deviations < 3


@pytest.mark.parametrize(
    ("count", "lg_k", "mode"),
    [(0, 12, Mode.LIST), (7, 12, Mode.LIST), (8, 12, Mode.SET), (385, 12, Mode.HLL), (8, 7, Mode.HLL)],
)
def test_modes(count: int, lg_k: int, mode: Mode) -> None:
    assert HllSketch.decode(payload_of(count, lg_k)).mode is mode


def test_the_estimate_of_nothing_is_exact() -> None:
    assert HllSketch.decode(payload_of(0)).estimate() == Estimate.exact(0)
    assert HllSketch.decode(payload_of(1)).estimate().kind is Certainty.SKETCHED


@pytest.mark.parametrize("kind", list(HllKind))
def test_registers_are_those_of_each_kind(kind: HllKind) -> None:
    """One set of values has the same registers, however wide they are."""
    count = 20_000  # enough that four bits do not hold all
    wide, none = read_registers(payload_of(count, 11, HllKind.HLL_8), IN_MEMORY)
    values, exceptions = read_registers(payload_of(count, 11, kind), IN_MEMORY)
    assert np.array_equal(values, wide)
    assert not len(none)
    assert bool(len(exceptions)) == (kind is HllKind.HLL_4)


# -- merging


PARTS = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.sampled_from([0, 3, 30, 1_500]),
        st.sampled_from([5, 8, 9]),
        st.sampled_from(HllKind),
    ),
    min_size=2,
    max_size=4,
)


def state_of(sketch: HllSketch) -> bytes:
    """What a sketch knows: its coupons or registers, without the estimators that depend on the order."""
    payload = sketch.encode()
    if sketch.mode is Mode.HLL:
        return bytes([sketch.lg_k, sketch.kind]) + read_registers(payload, IN_MEMORY)[0].tobytes()
    return payload


@settings(deadline=None, max_examples=60)
@given(parts=PARTS, seed=st.integers(0, 99))
def test_merging_in_any_order(parts: list[tuple[int, int, int, HllKind]], seed: int) -> None:
    sketches = [sketch_of(range(start, start + count), lg_k, kind) for start, count, lg_k, kind in parts]
    before = [sketch.encode() for sketch in sketches]
    merged = reduce(HllSketch.merge, sketches)
    shuffled = Random(seed).sample(sketches, len(sketches))
    backwards = reduce(lambda one, other: other.merge(one), shuffled)
    assert [sketch.encode() for sketch in sketches] == before  # sketches are values
    values = set().union(*(range(start, start + count) for start, count, _, _ in parts))
    filled = [sketch for sketch in sketches if not sketch.is_empty]
    if not filled:
        assert merged.is_empty
        return
    assert state_of(merged) == state_of(backwards) == state_of(sketch_of(values, merged.lg_k, merged.kind))
    assert merged.lg_k == min(sketch.lg_k for sketch in filled)
    assert merged.kind == max(sketch.kind for sketch in filled)
    assert merged.estimate(3).low * 0.9 <= len(values) <= merged.estimate(3).high * 1.1
    again = HllSketch.decode(merged.encode())
    assert again.estimate() == merged.estimate()
    assert again.encode() == merged.encode()


def test_a_sketch_that_is_reduced_is_not_lost() -> None:
    """The library's own union loses it: 1,000 values and 3 others would be 3."""
    many, few = sketch_of(range(1_000), 8), sketch_of(range(1_000, 1_003), 5)
    for merged in (many.merge(few), few.merge(many)):
        assert merged.estimate(3).low <= 1_003 <= merged.estimate(3).high


def test_merging_with_an_empty_sketch_changes_nothing() -> None:
    sketch, empty = sketch_of(range(10_000)), sketch_of([], 4)
    assert sketch.merge(empty).encode() == empty.merge(sketch).encode() == sketch.encode()
    assert empty.merge(empty).is_empty


# -- bytes that are no sketch

LIST, SET = payload_of(5), payload_of(100)
HLL_4, HLL_6, HLL_8 = (payload_of(50_000, 8, kind) for kind in HllKind)


@pytest.mark.parametrize(
    ("payload", "offset", "expected"),
    [
        (b"", 0, "at least 8 bytes"),
        (LIST[:7], 0, "at least 8 bytes"),
        (changed(LIST, 0, 9), 0, "a preamble of 2 ints in mode LIST"),
        (changed(LIST, VERSION_OFFSET, 2), 1, "serial version 1"),
        (changed(LIST, FAMILY_OFFSET, 3), 2, "family 7"),
        (changed(LIST, LG_K_OFFSET, 22), 3, "lg k from 4 to 21"),
        (changed(SET, LG_K_OFFSET, 7), 3, "lg k from 8 to 21"),
        (changed(LIST, FLAGS_OFFSET, HllFlag.BIG_ENDIAN), 5, "little-endian"),
        (changed(LIST, FLAGS_OFFSET, HllFlag.COMPACT | HllFlag.EMPTY), 5, "an empty sketch"),
        (changed(LIST, MODE_OFFSET, 3), 7, "a mode and a kind"),
        (changed(LIST, MODE_OFFSET, 12), 7, "a mode and a kind"),
        (changed(LIST, LEAST_OFFSET, 200), 0, "at most 7 coupons in a list"),  # or the library would abort
        (changed(LIST, LEAST_OFFSET, 6), 8, "6 numbers in 24 bytes"),
        (LIST + bytes(4), 8, "5 numbers in 20 bytes"),
        (LIST[:-1], 8, "5 numbers in 20 bytes"),
        (changed(LIST, BODY_OFFSET, 1, 0, 0, 0), 8, "coupons with values above 0"),
        (changed(LIST, BODY_OFFSET, *LIST[12:16]), 8, "5 distinct coupons"),
        (changed(LIST, FLAGS_OFFSET, 0), 8, "a table of 5 numbers"),
        (SET[:10], 0, "at least 12 bytes"),
        (changed(SET, BODY_OFFSET, 255, 255, 255, 255), 0, "at most 384 coupons in a set"),
        (changed(SET, SET_COUPONS_OFFSET, 0, 0, 0, 0), 12, "100 numbers"),
        (HLL_8[:39], 0, "at least 296 bytes"),
        (changed(HLL_8, LG_K_OFFSET, 21), 0, "at least 2097192 bytes"),
        (HLL_8 + b"x", 296, "0 numbers in 0 bytes"),
        (changed(HLL_8, 36, 1), 8, "exceptions as HLL_8 has them"),
        (changed(HLL_6, 36, 1), 8, "exceptions as HLL_6 has them"),
        (changed(HLL_4, 36, 255, 255, 255, 255), 8, "exceptions as HLL_4 has them"),
        (changed(HLL_8, REGISTERS_OFFSET, 64), 40, "registers up to 63"),
        (changed(HLL_8, REGISTERS_OFFSET, 60), 8, "the sum"),
        (changed(HLL_8, LEAST_OFFSET, 63), 6, "the least value"),
        (changed(HLL_8, 32, 9), 8, "registers of the least value"),
        (changed(HLL_4, LEAST_OFFSET, 64), 6, "a least value up to 63"),
        (changed(HLL_4, REGISTERS_OFFSET, 0xFF), 168, "exceptions for the"),
        (changed(HLL_8, 16, *np.float64(np.nan).tobytes()), 8, "the sum"),
        (changed(HLL_8, 8, *np.float64(np.nan).tobytes()), 8, "an estimate of at least 256"),
        (changed(HLL_8, 8, *np.float64(np.inf).tobytes()), 8, "an estimate of at least 256"),
        (changed(HLL_8, 8, *np.float64(17).tobytes()), 8, "an estimate of at least 256"),
    ],
)
def test_bad_bytes(payload: bytes, offset: int, expected: str) -> None:
    with pytest.raises(HllError) as caught:
        HllSketch.decode(payload, place=PLACE)
    assert caught.value.place == PLACE.at(offset)
    assert expected in caught.value.expected


def test_exceptions_of_registers_are_checked() -> None:
    payload = payload_of(20_000, 11)
    start = REGISTERS_OFFSET + 1024
    values, exceptions = read_registers(payload, IN_MEMORY)
    assert len(exceptions) >= 1
    assert set(values[exceptions & 2047]) == set(exceptions >> 26)
    low = (exceptions & 0x3FFFFFF) | np.uint32(1 << 26)
    elsewhere = exceptions ^ np.uint32(1)
    for bad, expected in ((low, "exceptions from"), (elsewhere, "registers that are marked")):
        with pytest.raises(HllError, match=expected):
            HllSketch.decode(payload[:start] + bad.tobytes())


def test_mutated_bytes_are_refused_or_read_whole() -> None:
    """Mutations of every form: an error of ours, or a sketch that estimates, merges and is written."""
    random = Random(7)
    corpus = [
        form
        for lg_k in (4, 8, 9)
        for kind in HllKind
        for count in (0, 1, 7, 8, 24, 90, 4_000)
        for theirs in (library_sketch(range(count), lg_k, kind),)
        for form in (theirs.serialize_compact(), theirs.serialize_updatable())
    ]
    partner = sketch_of(range(1_000), 8)
    read = 0
    for _ in range(8_000):
        payload, other = random.choice(corpus), random.choice(corpus)
        size = len(payload) if random.random() < 0.5 else min(len(payload), REGISTERS_OFFSET)
        try:
            sketch = HllSketch.decode(edited(random, payload[:size], other) + payload[size:])
        except HllError:
            continue
        read += 1
        for found in (sketch, sketch.merge(partner), partner.merge(sketch)):
            estimate = found.estimate()
            assert estimate.low <= estimate.value <= estimate.high
            assert HllSketch.decode(found.encode()).encode() == found.encode()
    assert 100 < read < 6_000
