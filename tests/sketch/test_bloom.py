"""Bloom filters: their sizes, their algebra, and the filters of real Parquet writers, bit for bit."""

from __future__ import annotations

import io
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from rookery.model import Place
from rookery.parquet.thrift import Cursor
from rookery.sketch.bloom import (
    MAX_BLOCKS,
    SALT,
    BloomError,
    BloomFilter,
    block_of,
    blocks_for,
    decimal_width,
    expected_fpp,
    masks_of,
)
from rookery.sketch.bloom_builder import BloomBuilder
from rookery.sketch.murmur import load_u64
from rookery.sketch.value_hashes import bloom_hashes
from rookery.sketch.values import add_arrow, plain_values
from rookery.sketch.xxh64 import hash_word

compiled = settings(max_examples=30)  # the first call of a kernel compiles it


def of_longs(values: NDArray[np.int64], blocks: int) -> BloomFilter:
    builder = BloomBuilder("long", blocks)
    builder.add_fixed(values.view(np.uint8), 0, len(values), 8)
    return builder.result()


def random_hashes(count: int, seed: int) -> NDArray[np.uint64]:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def most_keys(blocks: int, fpp: float) -> int:
    """The largest number of keys for which this many blocks are enough."""
    low, high = 1, 100 * blocks
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if blocks_for(middle, fpp) <= blocks else (low, middle - 1)
    return low


# -- sizes


@pytest.mark.parametrize("fpp", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("blocks", [7, 64, 1280, 12288])
def test_the_rate_is_what_was_asked_for_at_its_worst(fpp: float, blocks: int) -> None:
    keys = most_keys(blocks, fpp)
    assert blocks_for(keys, fpp) == blocks < blocks_for(keys + 1, fpp)
    rounds = 40 if blocks == 7 else 4  # of few blocks, one filter tells little
    wrong = 0
    for seed in range(rounds):
        values = np.random.default_rng(seed).integers(-(2**63), 2**63, keys)
        wrong += int(of_longs(values, blocks).contains(random_hashes(1_000_000 // rounds, 99 + seed)).sum())
    assert 0.8 * fpp < wrong / 1_000_000 < 1.2 * fpp


@given(st.integers(0, 10**8), st.sampled_from([0.5, 0.1, 0.01, 0.001, 1e-6]))
def test_the_least_step_that_keeps_to_the_rate(keys: int, fpp: float) -> None:
    ladder = [1, 2, 3, *(m << j for j in range(24) for m in (4, 5, 6, 7))]
    blocks = blocks_for(keys, fpp)
    at = ladder.index(blocks)
    assert expected_fpp(keys, blocks) <= fpp
    assert at == 0 or expected_fpp(keys, ladder[at - 1]) > fpp


def test_the_rate_falls_with_blocks_and_grows_with_keys() -> None:
    by_blocks = [expected_fpp(100_000, blocks) for blocks in (1, 10, 100, 1000, 10_000, 100_000)]
    assert all(one >= other for one, other in pairwise(by_blocks))
    assert by_blocks[0] == 1.0
    by_keys = [expected_fpp(keys, 10) for keys in (0, 1, 10, 100, 1000, 40_000, 50_000)]
    assert all(one <= other for one, other in pairwise(by_keys))


@pytest.mark.parametrize("fpp", [0.0, 1.0, -0.1, float("nan")])
def test_a_rate_is_between_zero_and_one(fpp: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        blocks_for(10, fpp)


def test_what_is_too_much_is_refused() -> None:
    with pytest.raises(ValueError, match="no filter of"):
        blocks_for(10**12, 1e-9)
    with pytest.raises(ValueError, match="blocks, not 0"):
        BloomBuilder("int", 0)
    with pytest.raises(ValueError, match=f"1 to {MAX_BLOCKS}"):
        BloomBuilder("int", MAX_BLOCKS + 1)


# -- answers


@njit
def long_hashes(data: Any, count: Any) -> Any:
    hashes = np.empty(count, np.uint64)
    for i in range(count):
        hashes[i] = hash_word(load_u64(data, 8 * i), 8)
    return hashes


def test_no_key_is_ever_missed() -> None:
    """A million keys, in filters of every load, folded or not."""
    for blocks in (2, 14, 1000, 65_536):
        values = np.random.default_rng(blocks).integers(-(2**63), 2**63, 250_000)
        found = of_longs(values, blocks)
        hashes = long_hashes(values.view(np.uint8), len(values))
        assert hashes[:100].tolist() == [
            (bloom_hashes("long", value) or ())[0] for value in values[:100].tolist()
        ]
        assert found.contains(hashes).all()
        folded = found.folded()
        assert folded is not None
        assert folded.contains(hashes).all()


@given(st.integers(0, 2**64 - 1), st.integers(1, 100))
def test_one_hash_by_hand(value: int, blocks: int) -> None:
    """The specification in plain Python."""
    block = ((value >> 32) * blocks) >> 32
    masks = [1 << (((value & 0xFFFFFFFF) * int(salt) & 0xFFFFFFFF) >> 27) for salt in SALT]
    assert block_of(value, blocks) == block
    assert masks_of(value).tolist() == masks


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50), st.integers(0, 40))
@compiled
def test_the_kernel_asks_for_all_eight_bits(hashes: list[int], blank: int) -> None:
    words = np.full((5, 8), 2**32 - 1, np.uint32)
    words[blank % 5, blank % 8] = 0
    expected = [(masks_of(h) & ~words[block_of(h, 5)]).max() == 0 for h in hashes]
    assert BloomFilter(words).contains(np.array(hashes, np.uint64)).tolist() == expected


# -- algebra


longs = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=200).map(lambda found: np.array(found, np.int64))


@given(longs, longs, st.integers(1, 50))
@compiled
def test_union_is_the_filter_of_all_keys(
    one: NDArray[np.int64], other: NDArray[np.int64], blocks: int
) -> None:
    union = of_longs(one, blocks).union(of_longs(other, blocks))
    assert union == of_longs(np.concatenate([one, other]), blocks)
    with pytest.raises(ValueError, match="does not join"):
        union.union(of_longs(one, blocks + 1))


@given(longs, st.integers(1, 50))
@compiled
def test_folding_is_building_with_half_the_blocks(values: NDArray[np.int64], half: int) -> None:
    assert of_longs(values, 2 * half).folded() == of_longs(values, half)
    assert of_longs(values, 2 * half - 1).folded() is None


@pytest.mark.parametrize("keys", [10, 1000, 20_000])
def test_a_filter_that_is_too_large_is_fitted(keys: int) -> None:
    values = np.random.default_rng(3).integers(-(2**63), 2**63, keys)
    large = of_longs(values, blocks_for(1_000_000, 0.01))
    fitted = large.fitted(0.01)
    assert fitted == of_longs(values, fitted.blocks)
    assert expected_fpp(keys, fitted.blocks) <= 0.0105
    assert fitted.blocks <= max(7, 2.1 * blocks_for(keys, 0.01))  # 5 blocks do not fold


@pytest.mark.parametrize("keys, blocks", [(1, 10), (1000, 1000), (1000, 64), (100_000, 4096)])
def test_keys_are_estimated_by_the_bits_left(keys: int, blocks: int) -> None:
    estimate = of_longs(np.arange(keys), blocks).estimate_keys()
    assert estimate == pytest.approx(keys, rel=0.05, abs=0.5)


def test_an_empty_filter_and_a_full_one() -> None:
    empty = of_longs(np.empty(0, np.int64), 8)
    assert empty.estimate_keys() == 0
    assert empty.fitted(0.01).blocks == 1
    full = BloomFilter(np.full((8, 8), 2**32 - 1, np.uint32))
    assert full.fitted(0.01) is full
    assert full.contains(random_hashes(10, 1)).all()


@given(st.binary(min_size=1, max_size=100))
@compiled
def test_bytes_and_back(bitset: bytes) -> None:
    if len(bitset) % 32:
        with pytest.raises(BloomError, match="file, byte 7"):
            BloomFilter.from_bytes(bitset, place=Place("file", 7))
    else:
        assert BloomFilter.from_bytes(bitset).to_bytes() == bitset
    with pytest.raises(BloomError):
        BloomFilter.from_bytes(b"")


# -- what is hashed


def test_torn_pages_and_wrong_ranges_are_refused() -> None:
    builder = BloomBuilder("string", 4)
    with pytest.raises(ValueError, match="longer than its page"):
        builder.add_prefixed(np.frombuffer(b"\5\0\0\0abc", np.uint8), 0, 7)
    with pytest.raises(ValueError, match="longer than its page"):
        builder.add_prefixed(np.frombuffer(b"\0\0", np.uint8), 0, 2)
    with pytest.raises(ValueError, match="are not within"):
        builder.add_fixed(np.zeros(8, np.uint8), 4, 1, 8)


DECIMALS = {
    "decimal(9, 2)": [Decimal("0.00"), Decimal("-1.28"), Decimal("9999999.99")],
    "decimal(18, 2)": [Decimal("0.00"), Decimal("-1.28"), Decimal("9999999999999999.99")],
    "decimal(19, 0)": [Decimal(0), Decimal(-129), Decimal(10**18), Decimal(-(10**18))],
    "decimal(38, 0)": [Decimal(0), Decimal(-129), Decimal(10**37), Decimal(-(10**37))],
}


@pytest.mark.parametrize("kind", DECIMALS)
@pytest.mark.parametrize("little", [True, False])
def test_decimals_of_any_width_take_the_form_of_their_type(kind: str, little: bool) -> None:
    scale = int(kind.split(",")[1][:-1])
    unscaled = [int(value.scaleb(scale)) for value in DECIMALS[kind]]
    expected = BloomBuilder(kind, 16)
    add_arrow(expected, kind, pa.array(DECIMALS[kind], pa.decimal128(38, scale)))
    for width in range(max(-(-(max(map(abs, unscaled)).bit_length() + 1) // 8), 1), 33):
        data = b"".join(
            value.to_bytes(width, "little" if little else "big", signed=True) for value in unscaled
        )
        builder = BloomBuilder(kind, 16)
        builder.add_decimals(np.frombuffer(data, np.uint8), 0, len(unscaled), width, little=little)
        assert builder.result() == expected.result()


@pytest.mark.parametrize("precision", range(1, 39))
def test_decimals_take_the_fewest_bytes(precision: int) -> None:
    width = decimal_width(precision)
    top = 10**precision - 1
    assert -(2 ** (8 * width - 1)) <= -top < top < 2 ** (8 * width - 1)
    assert precision <= 18 or top >= 2 ** (8 * (width - 1) - 1)


# -- other writers


TEXTS = [f"key {n}" * (n % 5) for n in range(1000)]
COLUMNS: dict[str, tuple[str, pa.Array]] = {
    "int": ("int", pa.array(range(-500, 500), pa.int32())),
    "long": ("long", pa.array([n**6 for n in range(-500, 500)], pa.int64())),
    "float": ("float", pa.array([n / 3 for n in range(1000)] + [-0.0, float("nan")], pa.float32())),
    "double": ("double", pa.array([n / 3 for n in range(1000)] + [-0.0, float("nan")], pa.float64())),
    "date": ("date", pa.array(range(1000), pa.date32())),
    "time": ("time", pa.array(range(1000), pa.time64("us"))),
    "timestamp": ("timestamp", pa.array(range(1000), pa.timestamp("us"))),
    "timestamptz": ("timestamptz", pa.array(range(1000), pa.timestamp("us", "UTC"))),
    "string": ("string", pa.array(TEXTS)),
    "binary": ("binary", pa.array([text.encode() for text in TEXTS])),
    "fixed": ("fixed[5]", pa.array([f"{n:05d}".encode() for n in range(1000)], pa.binary(5))),
    "decimal 9": ("decimal(9, 2)", pa.array([Decimal(n) for n in range(-500, 500)], pa.decimal128(9, 2))),
    "decimal 18": ("decimal(18, 2)", pa.array([Decimal(n) for n in range(-500, 500)], pa.decimal128(18, 2))),
    "decimal 30": ("decimal(30, 2)", pa.array([Decimal(n) for n in range(-500, 500)], pa.decimal128(30, 2))),
}


def stored_filter(file: bytes) -> bytes:
    """The bitset of the Bloom filter of a file's only column, found by the file's footer."""
    size = int.from_bytes(file[-8:-4], "little")
    metadata: Any = Cursor(file[-8 - size : -8]).struct()
    cursor = Cursor(file, metadata[4][0][1][0][3][14])
    header = cursor.struct()
    return file[cursor.position : cursor.position + header[1]]


@pytest.mark.parametrize("column", COLUMNS)
def test_filters_are_those_that_arrow_writes(column: str) -> None:
    kind, array = COLUMNS[column]
    file = io.BytesIO()
    options: Any = {"x": {"ndv": 1000, "fpp": 0.01}}
    table = pa.table({"x": array})
    pq.write_table(table, file, bloom_filter_options=options, store_decimal_as_integer=True)
    bitset = stored_filter(file.getvalue())
    builder = BloomBuilder(kind, len(bitset) // 32)
    add_arrow(builder, kind, array)
    assert builder.result().to_bytes() == bitset
    assert np.frombuffer(bitset, np.uint8).max() > 0


def test_filters_are_those_that_duckdb_writes(tmp_path: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "x.parquet"
    query = "select ('key ' || (i % 1000)) as x from range(100000) t(i)"
    duckdb.sql(f"copy ({query}) to '{path}' (format parquet, row_group_size 200000)")
    bitset = stored_filter(path.read_bytes())
    builder = BloomBuilder("string", len(bitset) // 32)
    add_arrow(builder, "string", pa.array([f"key {n}" for n in range(1000)]))
    assert builder.result().to_bytes() == bitset


# -- pages and arrays agree


@pytest.mark.parametrize(
    "kind, physical, width, unit, data, array",
    [
        ("long", "INT32", 0, None, np.arange(-5, 5, dtype="<i4"), pa.array(range(-5, 5), pa.int64())),
        ("int", "INT32", 0, None, np.arange(-5, 5, dtype="<i4"), pa.array(range(-5, 5), pa.int32())),
        ("time", "INT64", 0, "us", np.arange(9, dtype="<i8"), pa.array(range(9), pa.time64("us"))),
        (
            "decimal(12, 0)",
            "INT32",
            0,
            None,
            np.arange(-5, 5, dtype="<i4"),
            pa.array([Decimal(n) for n in range(-5, 5)], pa.decimal128(12, 0)),
        ),
        (
            "decimal(12, 0)",
            "FIXED_LEN_BYTE_ARRAY",
            2,
            None,
            np.arange(-5, 5, dtype=">i2"),
            pa.array([Decimal(n) for n in range(-5, 5)], pa.decimal128(12, 0)),
        ),
        (
            "string",
            "BYTE_ARRAY",
            0,
            None,
            np.frombuffer(b"\1\0\0\0a\0\0\0\0\2\0\0\0bc", np.uint8),
            pa.array(["a", "", "bc", None]),
        ),
    ],
)
def test_pages_and_arrays_give_one_filter(
    kind: str, physical: str, width: int, unit: str | None, data: NDArray[Any], array: pa.Array
) -> None:
    pages, arrays = BloomBuilder(kind, 32), BloomBuilder(kind, 32)
    add = plain_values(kind, physical, width, unit)
    assert add is not None
    raw = np.ascontiguousarray(data).view(np.uint8)
    add(pages, raw, 0, len(raw))
    add_arrow(arrays, kind, array)
    assert pages.result() == arrays.result()
    assert pages.result().words.any()
