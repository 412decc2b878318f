"""The Bloom matrix: what it answers, how it is joined and moved, its bytes."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rookery.model import Place
from rookery.sketch import MAX_FILES
from rookery.sketch.bloom import BloomError, BloomFilter, block_of
from rookery.sketch.bloom_matrix import MAX_HEADER_SIZE, BloomMatrix, MatrixHeader, header_size

PLACE = Place("file", 100)
FPP = 0.01
few = settings(max_examples=40)


def random_filter(blocks: int, seed: int) -> BloomFilter:
    rng = np.random.default_rng(seed)
    return BloomFilter(rng.integers(0, 2**32, (blocks, 8), dtype=np.uint32) | np.uint32(0x55555555))


@st.composite
def groups(draw: st.DrawFn, most: int = 30) -> tuple[int, dict[int, BloomFilter]]:
    files = draw(st.integers(1, most))
    ordinals = draw(st.sets(st.integers(0, files - 1), min_size=1, max_size=10))
    return files, {n: random_filter(draw(st.sampled_from([1, 3, 8])), files * n) for n in ordinals}


hashes = st.integers(0, 2**64 - 1)


@given(groups(), hashes)
@few
def test_a_row_answers_for_all_files(group: tuple[int, dict[int, BloomFilter]], value: int) -> None:
    files, filters = group
    seen = []
    for matrix in BloomMatrix.of(filters, files, FPP):
        payload = matrix.encode()
        header = MatrixHeader.decode(payload[: header_size(len(matrix.ordinals))], place=PLACE)
        assert header.size == len(payload)
        start, length = header.row_range(value)
        assert length == 32 * len(matrix.ordinals) + 4
        maybe = header.probe(payload[start : start + length], value, place=PLACE)
        for ordinal, answer in zip(header.ordinals.tolist(), maybe.tolist(), strict=True):
            assert filters[ordinal].contains(np.array([value], np.uint64))[0] == answer
            assert matrix.filter_of(ordinal) == filters[ordinal]
            seen.append(ordinal)
    assert sorted(seen) == sorted(filters)


def test_a_file_without_a_filter_has_none() -> None:
    [matrix] = BloomMatrix.of({3: random_filter(2, 1)}, 9, FPP)
    assert matrix.filter_of(2) is None
    assert matrix.filter_of(4) is None


@given(groups())
@few
def test_bytes_and_back(group: tuple[int, dict[int, BloomFilter]]) -> None:
    files, filters = group
    for matrix in BloomMatrix.of(filters, files, FPP):
        again = BloomMatrix.decode(matrix.encode(), place=PLACE)
        assert again == matrix
        assert again.encode() == matrix.encode()
        assert MatrixHeader.decode(matrix.encode()).fpp == FPP


def test_the_bytes() -> None:
    """The layout that the page describes."""
    [matrix] = BloomMatrix.of({1: random_filter(2, 1), 5: random_filter(2, 2)}, 6, 0.25)
    rows = [
        b"".join(random_filter(2, seed).words[number].tobytes() for seed in (1, 2)) for number in range(2)
    ]
    body = zlib.crc32(b"".join(rows))
    header = struct.pack("<BBHIIdIHH", 1, 0, 6, 2, 2, 0.25, body, 1, 5)
    expected = header + struct.pack("<I", zlib.crc32(header))
    for number, row in enumerate(rows):
        expected += row + struct.pack("<I", zlib.crc32(struct.pack("<I", number) + row, body))
    assert matrix.encode() == expected


def test_the_largest_header() -> None:
    [matrix] = BloomMatrix.of(dict.fromkeys(range(MAX_FILES), random_filter(1, 1)), MAX_FILES, FPP)
    assert matrix.header.row_start(0) == MAX_HEADER_SIZE
    assert BloomMatrix.decode(matrix.encode()) == matrix


def test_every_damaged_byte_is_noticed() -> None:
    [matrix] = BloomMatrix.of({n: random_filter(3, n) for n in (0, 2, 7)}, 9, FPP)
    payload = matrix.encode()
    for at in range(len(payload)):
        for flip in (1, 128, 255):
            damaged = bytearray(payload)
            damaged[at] ^= flip
            with pytest.raises(BloomError, match="file, byte"):
                BloomMatrix.decode(bytes(damaged), place=PLACE)
    for cut in (0, 5, 20, 30, len(payload) - 1):
        with pytest.raises(BloomError):
            BloomMatrix.decode(payload[:cut], place=PLACE)
    with pytest.raises(BloomError):
        BloomMatrix.decode(payload + b"\0", place=PLACE)


@given(hashes)
@few
def test_a_damaged_row_and_a_wrong_row_are_noticed(value: int) -> None:
    [matrix] = BloomMatrix.of({n: random_filter(4, 1) for n in (0, 2, 7)}, 9, FPP)
    same = BloomMatrix(4, 9, matrix.ordinals, FPP, np.repeat(matrix.words[:1], 4, axis=0))
    payload = same.encode()
    header = same.header
    for number in range(4):
        row = payload[header.row_start(number) : header.row_start(number + 1)]
        if number == block_of(value, 4):
            assert len(header.probe(row, value, place=PLACE)) == 3
            row = row[:7] + bytes([row[7] ^ 4]) + row[8:]
        with pytest.raises(BloomError, match="CRC"):
            header.probe(row, value, place=PLACE)
    with pytest.raises(BloomError, match="100 bytes"):
        header.probe(row[:-1], value, place=PLACE)


def test_a_row_of_another_matrix_is_noticed() -> None:
    """One that has the same shape: only what it holds tells it apart."""
    [one] = BloomMatrix.of({n: random_filter(4, n) for n in (0, 2)}, 9, FPP)
    [other] = BloomMatrix.of({n: random_filter(4, 50 + n) for n in (0, 2)}, 9, FPP)
    start, length = one.header.row_range(77)
    assert other.header.row_range(77) == (start, length)
    row = other.encode()[start : start + length]
    other.header.probe(row, 77, place=PLACE)
    with pytest.raises(BloomError, match="CRC"):
        one.header.probe(row, 77, place=PLACE)


@pytest.mark.parametrize(
    "fields",
    [
        (2, 0, 6, 1, 2, 0.25, 1),  # version
        (1, 1, 6, 1, 2, 0.25, 1),  # what must be 0
        (1, 0, 0, 1, 2, 0.25, 1),  # no files
        (1, 0, 1025, 1, 2, 0.25, 1),
        (1, 0, 6, 0, 2, 0.25, 1),  # none covered
        (1, 0, 6, 7, 2, 0.25, 1),  # more than there are
        (1, 0, 6, 1, 0, 0.25, 1),  # no blocks
        (1, 0, 6, 1, 2, 0.0, 1),  # no rate
        (1, 0, 6, 1, 2, float("nan"), 1),
        (1, 0, 6, 1, 2, 0.25, 6),  # an ordinal outside
        (1, 0, 6, 2, 2, 0.25, 1, 1),  # one twice
        (1, 0, 6, 2, 2, 0.25, 3, 1),  # descending
    ],
)
def test_headers_that_cannot_be(fields: tuple[float, ...]) -> None:
    header = struct.pack("<BBHIIdI" + "H" * (len(fields) - 6), *fields[:6], 0, *fields[6:])
    sealed = header + struct.pack("<I", zlib.crc32(header)) + bytes(200)
    with pytest.raises(BloomError):
        MatrixHeader.decode(sealed, place=PLACE)


# -- merging and moving


def masked(files: int, seed: int) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).random(files) < 0.6


@given(groups(15), groups(15), st.integers(0, 100))
@few
def test_moved_and_merged_is_built_anew(
    one: tuple[int, dict[int, BloomFilter]], other: tuple[int, dict[int, BloomFilter]], seed: int
) -> None:
    kept = [masked(one[0], seed), masked(other[0], seed + 1)]
    total = int(sum(mask.sum() for mask in kept))
    offset, parts, expected = 0, [], {}
    for (files, filters), mask in zip((one, other), kept, strict=True):
        moved = [matrix.moved(mask, offset, total) for matrix in BloomMatrix.of(filters, files, FPP)]
        parts += [matrix for matrix in moved if matrix is not None]
        places = np.flatnonzero(mask).tolist()
        expected |= {offset + place: filters[n] for place, n in enumerate(places) if n in filters}
        offset += len(places)
    assert BloomMatrix.merge(parts) == BloomMatrix.of(expected, total, FPP)
    assert BloomMatrix.merge(reversed(parts)) == BloomMatrix.merge(parts)


def test_nothing_is_left_of_no_files() -> None:
    [matrix] = BloomMatrix.of({3: random_filter(2, 1)}, 9, FPP)
    assert matrix.moved(np.arange(9) != 3, 0, 8) is None
    assert BloomMatrix.merge([]) == []


def test_what_does_not_belong_together_is_refused() -> None:
    [one] = BloomMatrix.of({3: random_filter(2, 1)}, 9, FPP)
    [other] = BloomMatrix.of({4: random_filter(2, 1)}, 8, FPP)
    [rate] = BloomMatrix.of({4: random_filter(2, 1)}, 9, 0.5)
    with pytest.raises(ValueError, match="one group"):
        BloomMatrix.merge([one, other])
    with pytest.raises(ValueError, match="two matrices"):
        BloomMatrix.merge([one, one])
    assert BloomMatrix.merge([one, rate]) == [one, rate]
