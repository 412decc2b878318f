"""The bitmap index: where values stand, how groups are joined and moved, its bytes."""

from __future__ import annotations

import struct
import zlib
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyroaring import BitMap

from rookery.model import Place
from rookery.sketch.bitmap import BitmapBuilder, BitmapDirectory, BitmapError, BitmapIndex, bases
from rookery.sketch.single_value import single_value

PLACE = Place("file", 100)
NAN = float("nan")
few = settings(max_examples=40)
Column = list[int | None]


def index_of(
    files: Sequence[Sequence[Any]], kind: str = "int", arrow: pa.DataType | None = None
) -> BitmapIndex:
    builder = BitmapBuilder(kind, [len(values) for values in files])
    for ordinal, values in enumerate(files):
        builder.add(pa.array(values, arrow or pa.int32()), 0, ordinal)
        builder.cover(ordinal)
    return builder.result()


def rows_of(index: BitmapIndex, bitmap: BitMap) -> list[tuple[int, int]]:
    """File and row of each position."""
    positions = np.array(list(bitmap), np.int64)
    files = np.searchsorted(index.bases, positions, side="right") - 1
    return list(zip(files.tolist(), (positions - index.bases[files]).tolist(), strict=True))


def expected_rows(files: Sequence[Column]) -> dict[int | None, list[tuple[int, int]]]:
    found: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
    for ordinal, values in enumerate(files):
        for row, value in enumerate(values):
            found[value].append((ordinal, row))
    return found


def answers(index: BitmapIndex) -> dict[int | None, list[tuple[int, int]]]:
    found: dict[int | None, list[tuple[int, int]]] = {
        int.from_bytes(value, "little", signed=True): rows_of(index, bitmap)
        for value, bitmap in zip(index.values, index.bitmaps, strict=True)
    }
    return found | ({None: rows_of(index, index.nulls)} if index.nulls else {})


columns = st.lists(st.none() | st.integers(-3, 3), max_size=30)
groups = st.lists(columns, min_size=1, max_size=6)


@given(groups)
@few
def test_every_row_is_where_its_value_is(files: list[Column]) -> None:
    index = index_of(files)
    assert answers(index) == expected_rows(files)
    assert index.covered.all()
    assert index.rows.tolist() == [len(values) for values in files]
    assert index.whole() is index


@given(groups, st.integers(1, 7))
@few
def test_batches_and_parts_are_one_file(files: list[Column], size: int) -> None:
    rows = [len(values) for values in files]
    parts = [BitmapBuilder("int", rows), BitmapBuilder("int", rows)]
    for ordinal, values in enumerate(files):
        for number, first in enumerate(range(0, len(values), size)):
            batch = pa.array(values[first : first + size], pa.int32())
            parts[number % 2].add(batch.dictionary_encode() if number % 3 else batch, first, ordinal)
        for part in parts:
            part.cover(ordinal)
    found = [part.result() for part in parts]
    assert BitmapIndex.merge(found) == BitmapIndex.merge(found[::-1]) == index_of(files)


def test_large_files_take_several_containers() -> None:
    values = np.random.default_rng(1).integers(0, 4, 200_000)
    builder = BitmapBuilder("long", [10, 200_000, 10])
    builder.add(pa.array(values), 0, 1)
    builder.cover(1)
    index = builder.result()
    assert index.bases.tolist() == [0, 65_536, 65_536 * 5]
    for value, bitmap in zip(index.values, index.bitmaps, strict=True):
        expected = np.flatnonzero(values == int.from_bytes(value, "little"))
        assert np.array_equal(np.array(bitmap.to_array()) - 65_536, expected)
        assert index.cardinality_by_file(bitmap).tolist() == [0, len(expected), 0]
    assert index.covered.tolist() == [False, True, False]


def test_the_bases_of_a_group() -> None:
    assert bases([]).tolist() == []
    assert bases([0, 0, 1]).tolist() == [0, 65_536, 131_072]
    assert bases([2**32 - 65_536, 65_536]).tolist() == [0, 2**32 - 65_536]
    assert bases(np.array([65_537, 1])).dtype == np.uint32
    with pytest.raises(ValueError, match="does not fit"):
        bases([2**32 - 65_536, 65_537])


# -- forms of values


CASES: dict[str, tuple[str, pa.DataType, list[Any], list[Any]]] = {
    "boolean": ("boolean", pa.bool_(), [True, False], [True, False]),
    "string": ("string", pa.string(), ["", "a", "ä"], ["", "a", "ä"]),
    "large": ("string", pa.large_string(), ["", "a"], ["", "a"]),
    "view": (
        "string",
        pa.string_view(),
        ["", "a longer text than twelve"],
        ["", "a longer text than twelve"],
    ),
    "binary": ("binary", pa.binary(), [b"", b"\0"], [b"", b"\0"]),
    "fixed": ("fixed[2]", pa.binary(2), [b"ab", b"\0\0"], [b"ab", b"\0\0"]),
    "uuid": ("uuid", pa.uuid(), [b"u" * 16, b"v" * 16], [b"u" * 16, b"v" * 16]),
    "uuid text": ("uuid", pa.string(), ["00000000-0000-0000-0000-0000000000ff"], [bytes(15) + b"\xff"]),
    "promoted": ("long", pa.int32(), [1, -1], [1, -1]),
    "date": ("date", pa.date32(), [0, 1], [0, 1]),
    "timestamp": ("timestamp", pa.timestamp("ms"), [0, 1], [0, 1000]),
    "timestamptz": ("timestamptz", pa.timestamp("us", "UTC"), [0, 1], [0, 1]),
    "double": ("double", pa.float64(), [0.0, 1.5, NAN], [-0.0, 1.5, NAN]),
    "float": ("float", pa.float32(), [0.0, 1.5, NAN], [-0.0, 1.5, NAN]),
    "decimal": ("decimal(9, 2)", pa.decimal128(9, 2), [Decimal("-1.29"), Decimal("1.28")], [-129, 128]),
    "decimal32": ("decimal(9, 2)", pa.decimal32(9, 2), [Decimal("-1.29"), Decimal("1.28")], [-129, 128]),
    "decimal256": ("decimal(38, 0)", pa.decimal256(38, 0), [Decimal(10**37)], [10**37]),
}


@pytest.mark.parametrize("case", CASES)
def test_values_of_each_type(case: str) -> None:
    kind, arrow, stored, values = CASES[case]
    mixed = [None, *stored, None, *stored[::-1]]
    index = index_of([mixed, stored], kind, arrow)
    count = len(stored)
    assert len(index.values) == count
    assert rows_of(index, index.nulls) == [(0, 0), (0, count + 1)]
    for number, value in enumerate(values):
        key = single_value(kind, value + 0.0 if isinstance(value, float) else value)  # of zeros, 0.0
        rows = [(0, 1 + number), (0, 2 * count + 1 - number), (1, number)]
        assert rows_of(index, index.bitmap_of(key)) == sorted(rows)
    assert index.bitmap_of(b"no such value") == BitMap()
    assert BitmapIndex.decode(index.encode()) == index


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("uuid",)])
def test_dictionaries_and_slices(case: str) -> None:
    kind, arrow, stored, _ = CASES[case]
    entries = pa.array([*stored, None, *stored], arrow)  # with a null and with repetitions
    indices = pa.array([0, None, len(stored), len(stored) + 1, 0], pa.int8())
    plain = [stored[0], None, None, stored[0], stored[0]]
    array = pa.DictionaryArray.from_arrays(indices, entries)
    builder = BitmapBuilder(kind, [5])
    builder.add(array.slice(0, 2), 0, 0)
    builder.add(array.slice(2), 2, 0)
    builder.cover(0)
    assert builder.result() == index_of([plain], kind, arrow)
    sliced = BitmapBuilder(kind, [5])
    whole = pa.array([*stored, *plain], arrow)
    sliced.add(whole.slice(len(stored)), 0, 0)
    sliced.cover(0)
    assert sliced.result() == builder.result()


def test_zeros_and_nans_are_one() -> None:
    other = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    array = pa.array(np.array([0.0, -0.0, NAN, *other]))
    for one in (array, array.dictionary_encode()):
        builder = BitmapBuilder("double", [5], max_values=2)
        builder.add(one, 0, 0)
        builder.cover(0)
        assert [list(bitmap) for bitmap in builder.result().bitmaps] == [[0, 1], [2, 3, 4]]


# -- files that are given up, or not whole


def test_a_file_of_too_many_values_is_given_up() -> None:
    builder = BitmapBuilder("int", [10, 10, 10], max_values=4)
    builder.add(pa.array([1, 2, 3, 4, None], pa.int32()), 0, 0)
    builder.add(pa.array([4, 3, 2, 1, None], pa.int32()), 5, 0)
    builder.add(pa.array(range(10), pa.int32()), 0, 1)
    builder.add(pa.array([1, 2, 3], pa.int32()), 0, 2)
    builder.add(pa.array([4, 5], pa.int32()), 3, 2)
    builder.add(pa.array([1] * 5, pa.int32()), 5, 2)
    for ordinal in range(3):
        builder.cover(ordinal)
    index = builder.result()
    assert builder.given_up == {1, 2}
    assert index.covered.tolist() == [True, False, False]
    assert index.given_up.tolist() == [False, True, True]
    assert len(index.values) == 4
    assert all(max(bitmap) < 10 for bitmap in (*index.bitmaps, index.nulls))
    assert BitmapIndex.decode(index.encode()) == index


def test_what_one_part_gives_up_is_given_up() -> None:
    rows = [6, 3]
    one, other = BitmapBuilder("int", rows, 2), BitmapBuilder("int", rows, 2)
    one.add(pa.array([1, 2, 3], pa.int32()), 0, 0)
    other.add(pa.array([1, 1, 1], pa.int32()), 3, 0)
    other.add(pa.array([1, 1, 2], pa.int32()), 0, 1)
    for part, ordinal in ((one, 0), (other, 0), (other, 1)):
        part.cover(ordinal)
    index = BitmapIndex.merge([one.result(), other.result()])
    assert index.covered.tolist() == [False, True]
    assert [rows_of(index, bitmap) for bitmap in index.bitmaps] == [[(1, 0), (1, 1)], [(1, 2)]]


def test_a_file_with_rows_missing_is_noticed() -> None:
    builder = BitmapBuilder("int", [3, 6, 3])
    builder.add(pa.array([1, 1, 2], pa.int32()), 0, 0)
    builder.add(pa.array([1, 2, None], pa.int32()), 0, 1)
    builder.add(pa.array([1, 1, 2], pa.int32()), 0, 2)
    for ordinal in range(3):
        builder.cover(ordinal)
    index = builder.result().whole()
    assert index.covered.tolist() == [True, False, True]
    assert not index.nulls
    assert [rows_of(index, bitmap) for bitmap in index.bitmaps] == [
        [(0, 0), (0, 1), (2, 0), (2, 1)],
        [(0, 2), (2, 2)],
    ]


def test_a_file_that_is_not_covered_counts_for_nothing() -> None:
    builder = BitmapBuilder("int", [3])
    builder.add(pa.array([1, 2, None], pa.int32()), 0, 0)
    index = builder.result()
    assert (index.values, len(index.nulls), index.covered.tolist()) == ((), 0, [False])


def test_rows_that_a_file_does_not_have_are_refused() -> None:
    builder = BitmapBuilder("int", [3])
    with pytest.raises(ValueError, match="has 3 rows, not 1 to 4"):
        builder.add(pa.array([1, 2, 3], pa.int32()), 1, 0)
    with pytest.raises(ValueError, match="one group"):
        BitmapIndex.merge([index_of([[1]]), index_of([[1], [2]])])
    with pytest.raises(ValueError, match="one group"):
        BitmapIndex.merge([index_of([[1]]), index_of([[1]], "long")])


# -- moving


def moved_and_merged(parts: Sequence[tuple[BitmapIndex, NDArray[np.bool_]]]) -> BitmapIndex:
    starts = bases(np.concatenate([index.rows[kept] for index, kept in parts]))
    offset, found = 0, []
    for index, kept in parts:
        found.append(index.moved(kept, offset, starts))
        offset += int(kept.sum())
    return BitmapIndex.merge(found)


@given(groups, groups, st.data())
@few
def test_moved_and_merged_is_built_anew(one: list[Column], other: list[Column], data: st.DataObject) -> None:
    kept = [
        np.array(data.draw(st.lists(st.booleans(), min_size=len(g), max_size=len(g)))) for g in (one, other)
    ]
    left = [file for group, mask in zip((one, other), kept, strict=True) for file in np_pick(group, mask)]
    if left:
        assert moved_and_merged([(index_of(one), kept[0]), (index_of(other), kept[1])]) == index_of(left)


def np_pick(group: list[Column], mask: NDArray[np.bool_]) -> list[Column]:
    return [file for file, stays in zip(group, mask.tolist(), strict=True) if stays]


def test_large_bitmaps_move_by_containers() -> None:
    """Sorted values, of which each fills runs of containers, and others strewn over all rows."""
    rng = np.random.default_rng(2)
    files = [np.sort(rng.integers(0, 3, size)).tolist() for size in (70_000, 10, 140_000, 65_536, 5000)]
    files += [rng.integers(0, 3, 100_000).tolist()]
    kept = np.array([True, False, True, True, False, True])
    other = index_of([[7, None, 1]])
    index = moved_and_merged([(other, np.array([True])), (index_of(files), kept)])
    assert index == index_of([[7, None, 1], *np_pick(files, kept)])


def test_the_state_of_files_moves_along() -> None:
    builder = BitmapBuilder("int", [3, 3, 3], 1)
    builder.add(pa.array([1, 2, 3], pa.int32()), 0, 1)
    builder.add(pa.array([1, 1, 1], pa.int32()), 0, 2)
    builder.cover(2)
    moved = builder.result().moved(np.array([False, True, True]), 1, bases([9, 3, 3, 9]))
    assert moved.given_up.tolist() == [False, True, False, False]
    assert moved.covered.tolist() == [False, False, True, False]
    assert list(moved.bitmaps[0]) == [131_072, 131_073, 131_074]
    assert moved.moved(np.zeros(4, bool), 0, bases([1])).values == ()


# -- bytes


@given(groups)
@few
def test_bytes_and_back(files: list[Column]) -> None:
    index = index_of(files)
    payload = index.encode()
    assert BitmapIndex.decode(payload, place=PLACE) == index
    directory = BitmapDirectory.decode(payload[: BitmapDirectory.head_size(payload[:8])], place=PLACE)
    assert directory.size == len(payload)
    assert directory.values == index.values
    assert directory.cardinalities.tolist() == [*map(len, index.bitmaps), len(index.nulls)]
    for value, bitmap in zip(index.values, index.bitmaps, strict=True):
        number = directory.find(value)
        assert number is not None
        start, length = directory.entry(number)
        assert directory.read(number, payload[start : start + length], place=PLACE) == bitmap
    start, length = directory.entry(directory.nulls)
    assert directory.read(directory.nulls, payload[start : start + length]) == index.nulls
    assert directory.find(b"none") is None


def test_the_bytes() -> None:
    """The layout that the page describes."""
    index = index_of([["b", None], ["a", "b", "b"]], "string", pa.string())
    bitmaps = [BitMap([65_536]), BitMap([0, 65_537, 65_538]), BitMap([1])]
    for bitmap in bitmaps:
        bitmap.run_optimize()
    stored = [bitmap.serialize() for bitmap in bitmaps]
    header = struct.pack("<HHI", 6, 2, 2) + b"string"
    header += struct.pack("<IqB", 0, 2, 1) + struct.pack("<IqB", 65_536, 3, 1)
    for size, bitmap, data in zip((1, 1, 0), bitmaps, stored, strict=True):
        header += struct.pack("<IQQI", size, len(data), len(bitmap), zlib.crc32(data))
    header += b"ab"
    header = struct.pack("<3sBI", b"RkB", 1, 8 + len(header) + 4) + header
    assert index.encode() == header + struct.pack("<I", zlib.crc32(header)) + b"".join(stored)


def test_every_damaged_byte_is_noticed() -> None:
    payload = index_of([[1, 2, None, 2], [2, 3]]).encode()
    for at in range(len(payload)):
        for flip in (1, 128, 255):
            damaged = bytearray(payload)
            damaged[at] ^= flip
            with pytest.raises(BitmapError, match="file, byte"):
                BitmapIndex.decode(bytes(damaged), place=PLACE)
    for cut in (0, 7, 8, 30, len(payload) - 1):
        with pytest.raises(BitmapError):
            BitmapIndex.decode(payload[:cut], place=PLACE)
    with pytest.raises(BitmapError):
        BitmapIndex.decode(payload + b"\0", place=PLACE)


def sealed(payload: bytes, at: int, replaced: bytes) -> bytes:
    """Change bytes of a header, and its CRC with them."""
    end = BitmapDirectory.head_size(payload) - 4
    header = payload[:at] + replaced + payload[at + len(replaced) : end]
    return header + struct.pack("<I", zlib.crc32(header)) + payload[end + 4 :]


FILES_AT = 8 + 8 + len("int")
ENTRIES_AT = FILES_AT + 2 * 13
VALUES_AT = ENTRIES_AT + 4 * 24


@pytest.mark.parametrize(
    "at, replaced",
    [
        (8, b"\xff\xff"),  # the type's name runs over the end
        (10, b"\0\0"),  # no files
        (10, b"\1\x04"),  # 1,025 files
        (12, b"\xff\xff\xff\xff"),  # so many values
        (16, b"xxx"),  # no such type
        (16, b"\xff\xff\xff"),
        (FILES_AT, b"\1\0\0\0"),  # a base inside a container
        (FILES_AT, b"\0\0\1\0"),  # two files at one base
        (FILES_AT, b"\0\0\2\0"),  # files in the wrong order
        (FILES_AT + 4, b"\1\0\1"),  # more rows than there is room for
        (FILES_AT + 11, b"\xff"),  # a negative number of rows
        (FILES_AT + 12, b"\3"),  # a state that is none
        (FILES_AT + 12, b"\0"),  # more positions than rows of covered files
        (ENTRIES_AT, b"\5"),  # a length that is not that of the value
        (ENTRIES_AT + 3 * 24, b"\1"),  # null has no value
        (ENTRIES_AT + 11, b"\1"),  # a bitmap larger than any
        (ENTRIES_AT + 19, b"\1"),  # so many positions
        (ENTRIES_AT + 12, b"\0"),  # fewer than the bitmap has
        (VALUES_AT, b"\4"),  # values out of order
        (VALUES_AT, b"\2"),  # one twice
    ],
)
def test_headers_that_cannot_be(at: int, replaced: bytes) -> None:
    payload = index_of([[1, 2, None, 2], [2, 3]]).encode()
    assert BitmapIndex.decode(sealed(payload, at, payload[at : at + 1])).files == 2
    with pytest.raises(BitmapError):
        BitmapIndex.decode(sealed(payload, at, replaced), place=PLACE)


def test_a_bitmap_that_is_none_is_noticed() -> None:
    index = index_of([[1, 1]])
    payload = index.encode()
    directory = BitmapDirectory.decode(payload)
    start, length = directory.entry(0)
    junk = b"\xee" * length
    entry = 8 + 8 + 3 + 13
    changed = sealed(payload, entry + 20, struct.pack("<I", zlib.crc32(junk)))
    changed = changed[:start] + junk + changed[start + length :]
    with pytest.raises(BitmapError, match="a roaring bitmap"):
        BitmapIndex.decode(changed)
    with pytest.raises(BitmapError, match="bytes"):
        directory.read(0, payload[start : start + length - 1])
