"""Values as bytes: what is hashed is what PyIceberg's single-value serialization gives, for every type."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from rookery.model.type_names import SKETCHED
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.values import add_arrow, plain_values
from tests.sketch.murmur import theta_hashes

EPOCH = datetime(1970, 1, 1)
EXACT = Context(prec=38)
NAN = float("nan")
compiled = settings(max_examples=50)  # the first call of a kernel compiles it

INTS = [0, 1, -1, 7, 127, 128, -129, 2**31 - 1, -(2**31)]
LONGS = [*INTS, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.5, -1.5, NAN, float("inf"), float("-inf"), 5e-324]
TEXTS = ["", "a", "ä", "日本語", "🐧🐧", "a" * 100, "\0", " ", "exactly 16 bytes"]
BYTES = [b"", b"\0", b"\0\0", b"\xff" * 17, bytes(range(256))]
MOMENTS = [
    EPOCH,
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 2, 29, 12, 0, 0, 1),
    datetime(1, 1, 1),
]
UUIDS = [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")]
CASES: dict[str, tuple[PrimitiveType, pa.DataType, Sequence[Any]]] = {
    "boolean": (BooleanType(), pa.bool_(), [True, False]),
    "int": (IntegerType(), pa.int32(), INTS),
    "long": (LongType(), pa.int64(), LONGS),
    "float": (FloatType(), pa.float32(), [value for value in FLOATS if value != 5e-324]),
    "double": (DoubleType(), pa.float64(), FLOATS),
    "date": (
        DateType(),
        pa.date32(),
        [date(1970, 1, 1), date(1969, 12, 31), date(9999, 12, 31), date(1, 1, 1)],
    ),
    "time": (TimeType(), pa.time64("us"), [time(), time(23, 59, 59, 999999), time(0, 0, 0, 1)]),
    "timestamp": (TimestampType(), pa.timestamp("us"), MOMENTS),
    "timestamptz": (TimestamptzType(), pa.timestamp("us", "UTC"), [m.replace(tzinfo=UTC) for m in MOMENTS]),
    "string": (StringType(), pa.string(), TEXTS),
    "large string": (StringType(), pa.large_string(), TEXTS),
    "view string": (StringType(), pa.string_view(), TEXTS),
    "view binary": (BinaryType(), pa.binary_view(), BYTES),
    "binary": (BinaryType(), pa.binary(), BYTES),
    "large binary": (BinaryType(), pa.large_binary(), BYTES),
    "uuid": (UUIDType(), pa.binary(16), [value.bytes for value in UUIDS]),
    "uuid extension": (UUIDType(), pa.uuid(), [value.bytes for value in UUIDS]),
    "fixed[1]": (FixedType(1), pa.binary(1), [b"\0", b"\xff"]),
    "fixed[5]": (FixedType(5), pa.binary(5), [b"\0" * 5, b"\xff" * 5, b"abcde"]),
    "fixed[16]": (FixedType(16), pa.binary(16), [b"\0" * 16, b"exactly 16 bytes"]),
    "decimal(9, 2)": (
        DecimalType(9, 2),
        pa.decimal128(9, 2),
        [Decimal("0.00"), Decimal("-1.28"), Decimal("1.28")],
    ),
    "decimal32": (
        DecimalType(9, 2),
        pa.decimal32(9, 2),
        [Decimal("0.00"), Decimal("-1.28"), Decimal("9999999.99")],
    ),
    "decimal64": (DecimalType(18, 0), pa.decimal64(18, 0), [Decimal(0), Decimal(10**17), Decimal(-(10**17))]),
    "decimal256": (
        DecimalType(38, 0),
        pa.decimal256(38, 0),
        [Decimal(10**37), Decimal(-(10**37)), Decimal(128)],
    ),
}
cases = pytest.mark.parametrize("case", CASES)


def sketched(kind: str, *arrays: pa.Array) -> list[int]:
    builder = ThetaBuilder()
    for array in arrays:
        add_arrow(builder, kind, array)
    return builder.result().hashes.tolist()


def expected(kind: PrimitiveType, values: Sequence[Any]) -> list[int]:
    return theta_hashes(to_bytes(kind, value) for value in values if value is not None)


# -- from Arrow


@cases
def test_the_bytes_of_each_type(case: str) -> None:
    kind, arrow, values = CASES[case]
    array = pa.array(values, arrow)
    hashes = expected(kind, values)
    assert len(hashes) == len(values) - (
        ("" in values) or (b"" in values)
    )  # the values differ, and so do these
    assert sketched(str(kind), array) == hashes
    assert sketched(str(kind), *(array.slice(at, 1) for at in range(len(array)))) == hashes


@cases
def test_nulls_are_passed_over(case: str) -> None:
    kind, arrow, values = CASES[case]
    mixed = [None, *(piece for value in values for piece in (value, None, value))]
    assert sketched(str(kind), pa.array(mixed, arrow)) == expected(kind, values)
    assert sketched(str(kind), pa.array([None, None], arrow)) == []
    assert sketched(str(kind), pa.array([], arrow)) == []


@cases
def test_a_slice_is_only_its_own_values(case: str) -> None:
    kind, arrow, values = CASES[case]
    for mixed in (list(values), [None, *values], [*values, None, None]):
        array = pa.array(mixed, arrow)
        for start in range(len(mixed)):
            for length in (0, 1, 2, len(mixed)):
                part = mixed[start : start + length]
                assert sketched(str(kind), array.slice(start, length)) == expected(kind, part)


@cases
def test_dictionaries_count_only_what_is_used(case: str) -> None:
    kind, arrow, values = CASES[case]
    if isinstance(arrow, pa.BaseExtensionType):
        return  # Arrow has no dictionaries of extension types
    indices = pa.array([1, None, 0, 1, 1], pa.int8())
    array = pa.DictionaryArray.from_arrays(indices, pa.array(values, arrow))
    assert sketched(str(kind), array) == expected(kind, values[:2])
    assert sketched(str(kind), array.slice(0, 2)) == expected(kind, values[1:2])


def test_zeros_and_nans_are_what_their_bits_are() -> None:
    """Iceberg serializes the bits: two zeros, and a NaN that counts as a value."""
    assert len(sketched("double", pa.array([0.0, -0.0, 0.0, -0.0]))) == 2
    assert len(sketched("float", pa.array([0.0, -0.0, NAN, NAN], pa.float32()))) == 3
    assert sketched("double", pa.array([NAN])) == theta_hashes([struct.pack("<d", NAN)])


def test_empty_texts_count_for_nothing() -> None:
    """As in DataSketches, with which the numbers must agree."""
    assert sketched("string", pa.array(["", "", None])) == []
    assert sketched("binary", pa.array([b"", b"x"])) == theta_hashes([b"x"])


@pytest.mark.parametrize("precision", range(1, 39))
def test_decimals_of_every_precision(precision: int) -> None:
    top = 10**precision - 1
    unscaled = sorted({0, 1, -1, top, -top, top // 2, -(top // 3), *(10**p for p in range(precision))})
    for scale in {0, precision // 2, precision}:
        values = [Decimal(value).scaleb(-scale, EXACT) for value in unscaled]
        kind = DecimalType(precision, scale)
        hashes = expected(kind, values)
        assert sketched(str(kind), pa.array(values, pa.decimal128(precision, scale))) == hashes
        assert sketched(str(kind), pa.array(values, pa.decimal256(precision, scale))) == hashes


@pytest.mark.parametrize(
    "kind, stored, values, wanted",
    [
        ("long", pa.int32(), INTS, (LongType(), INTS)),
        ("double", pa.float32(), [0.5, -0.0, NAN], (DoubleType(), [0.5, -0.0, NAN])),
        ("timestamp", pa.timestamp("ms"), MOMENTS[:1], (TimestampType(), MOMENTS[:1])),
        ("timestamp", pa.timestamp("ns"), MOMENTS[:3], (TimestampType(), MOMENTS[:3])),
        ("timestamptz", pa.timestamp("us"), MOMENTS, (TimestampType(), MOMENTS)),
        ("timestamptz", pa.timestamp("ms", "Asia/Tokyo"), [EPOCH.replace(tzinfo=UTC)], (LongType(), [0])),
        ("time", pa.time32("ms"), [time(1, 2, 3)], (TimeType(), [time(1, 2, 3)])),
        ("string", pa.binary(), [b"x"], (StringType(), ["x"])),
        ("binary", pa.binary(3), [b"abc"], (BinaryType(), [b"abc"])),
        ("decimal(18, 2)", pa.decimal128(9, 2), [Decimal("-1.29")], (DecimalType(18, 2), [Decimal("-1.29")])),
        ("fixed[3]", pa.binary(), [b"abc", b"xyz"], (FixedType(3), [b"abc", b"xyz"])),
        ("uuid", pa.binary(), [UUIDS[2].bytes], (UUIDType(), [UUIDS[2].bytes])),
        ("uuid", pa.string(), [str(value) for value in UUIDS], (UUIDType(), [v.bytes for v in UUIDS])),
    ],
)  # fmt: skip
def test_stored_in_another_type(
    kind: str, stored: pa.DataType, values: Sequence[Any], wanted: tuple[PrimitiveType, Sequence[Any]]
) -> None:
    """Promoted columns, other units, and what Spark makes of the types that it lacks."""
    assert sketched(kind, pa.array(values, stored)) == expected(*wanted)


@pytest.mark.parametrize("kind, zone", [("timestamp_ns", None), ("timestamptz_ns", "UTC")])
def test_nanoseconds(kind: str, zone: str | None) -> None:
    numbers = [0, -1, 1, 1_700_000_000_123_456_789, 2**63 - 1]
    array = pa.array(numbers, pa.int64()).cast(pa.timestamp("ns", zone))
    assert sketched(kind, array) == theta_hashes(struct.pack("<q", number) for number in numbers)


# -- from Parquet's PLAIN encoding


def by_pages(kind: str, physical: str, data: bytes, width: int = 0, unit: str | None = None) -> list[int]:
    plain = plain_values(kind, physical, width, unit)
    assert plain is not None
    builder = ThetaBuilder()
    before = b"\xee" * 3  # levels stand before the values
    plain(builder, np.frombuffer(before + data, np.uint8), len(before), len(before) + len(data))
    return builder.result().hashes.tolist()


def prefixed(values: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def packed(code: str) -> Callable[[Sequence[Any]], bytes]:
    return lambda values: b"".join(struct.pack(code, value) for value in values)


MICROS = [(moment - EPOCH) // timedelta(microseconds=1) for moment in MOMENTS]
DAYS = [0, -1, 2932896]
PLAIN = [
    ("int", IntegerType(), "INT32", None, packed("<i"), INTS),
    ("long", LongType(), "INT64", None, packed("<q"), LONGS),
    ("long", LongType(), "INT32", None, packed("<i"), INTS),  # promoted
    ("float", FloatType(), "FLOAT", None, packed("<f"), FLOATS[:-1]),
    ("double", DoubleType(), "DOUBLE", None, packed("<d"), FLOATS),
    ("date", IntegerType(), "INT32", None, packed("<i"), DAYS),
    ("time", TimeType(), "INT64", "us", packed("<q"), [0, 86_399_999_999]),
    ("timestamp", TimestampType(), "INT64", "us", packed("<q"), MICROS),
    ("timestamptz", TimestamptzType(), "INT64", "us", packed("<q"), MICROS),
    ("timestamp_ns", LongType(), "INT64", "ns", packed("<q"), MICROS),
    ("timestamptz_ns", LongType(), "INT64", "ns", packed("<q"), MICROS),
    ("string", StringType(), "BYTE_ARRAY", None, lambda v: prefixed([t.encode() for t in v]), TEXTS),
    ("binary", BinaryType(), "BYTE_ARRAY", None, prefixed, BYTES),
]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: f"{case[0]} as {case[2]}")
def test_plain_values(case: tuple[Any, ...]) -> None:
    name, kind, physical, unit, pack, values = case
    assert by_pages(name, physical, pack(values), unit=unit) == expected(kind, values)
    assert by_pages(name, physical, b"", unit=unit) == []


@pytest.mark.parametrize("precision", range(1, 39))
def test_plain_decimals(precision: int) -> None:
    """Parquet has them in 4 or 8 bytes little-endian, or in as many as the precision needs, big-endian."""
    kind = DecimalType(precision, 0)
    top = 10**precision - 1
    unscaled = sorted({0, 1, -1, top, -top, *(10**p for p in range(precision))})
    hashes = expected(kind, [Decimal(value) for value in unscaled])
    width = ((top.bit_length() + 1) + 7) // 8
    data = b"".join(value.to_bytes(width, "big", signed=True) for value in unscaled)
    assert by_pages(str(kind), "FIXED_LEN_BYTE_ARRAY", data, width) == hashes
    if precision <= 9:
        assert by_pages(str(kind), "INT32", packed("<i")(unscaled)) == hashes
    if precision <= 18:
        assert by_pages(str(kind), "INT64", packed("<q")(unscaled)) == hashes


@pytest.mark.parametrize("width", [1, 5, 8, 16, 40])
def test_plain_fixed(width: int) -> None:
    values = [bytes([n]) * width for n in range(20)]
    assert by_pages(f"fixed[{width}]", "FIXED_LEN_BYTE_ARRAY", b"".join(values), width) == theta_hashes(
        values
    )
    if width == 16:
        assert by_pages("uuid", "FIXED_LEN_BYTE_ARRAY", b"".join(values), width) == theta_hashes(values)


@pytest.mark.parametrize(
    "kind, physical, unit",
    [
        ("boolean", "BOOLEAN", None),  # bits
        ("double", "FLOAT", None),  # promoted
        ("timestamp", "INT96", None),
        ("timestamp", "INT64", "ms"),
        ("timestamp", "INT64", "ns"),
        ("timestamp_ns", "INT64", "us"),
        ("timestamp", "INT64", None),
        ("time", "INT32", "ms"),
        ("decimal(9, 2)", "BYTE_ARRAY", None),
        ("int", "INT64", None),
        ("uuid", "BYTE_ARRAY", None),
        ("string", "FIXED_LEN_BYTE_ARRAY", None),
        ("variant", "BYTE_ARRAY", None),
    ],
)
def test_what_must_be_turned_first(kind: str, physical: str, unit: str | None) -> None:
    assert plain_values(kind, physical, 0, unit) is None


@pytest.mark.parametrize(
    "kind, physical, width, data",
    [
        ("int", "INT32", 0, b"123"),
        ("long", "INT64", 0, b"123456789"),
        ("long", "INT32", 0, b"12345"),
        ("decimal(38, 0)", "FIXED_LEN_BYTE_ARRAY", 16, b"x" * 17),
        ("uuid", "FIXED_LEN_BYTE_ARRAY", 16, b"x" * 15),
        ("fixed[0]", "FIXED_LEN_BYTE_ARRAY", 0, b"x"),
        ("fixed[4]", "FIXED_LEN_BYTE_ARRAY", -4, b"1234"),
        ("string", "BYTE_ARRAY", 0, b"\x05\0\0\0abcd"),
    ],
)
def test_torn_values(kind: str, physical: str, width: int, data: bytes) -> None:
    with pytest.raises(ValueError):
        by_pages(kind, physical, data, width)


# -- both ways agree


@compiled
@given(st.lists(st.text(max_size=20) | st.none(), max_size=30))
def test_texts_both_ways(values: list[str | None]) -> None:
    stored = [value.encode() for value in values if value is not None]
    assert sketched("string", pa.array(values, pa.string())) == by_pages(
        "string", "BYTE_ARRAY", prefixed(stored)
    )


@compiled
@given(st.lists(st.floats(width=32) | st.none(), max_size=30))
def test_floats_both_ways(values: list[float | None]) -> None:
    stored = packed("<f")([value for value in values if value is not None])
    array = pa.array(values, pa.float32())
    assert sketched("float", array) == by_pages("float", "FLOAT", stored)


def test_every_type_is_tried() -> None:
    tried = {str(kind).split("(")[0].split("[")[0] for kind, _, _ in CASES.values()}
    assert tried | {"timestamp_ns", "timestamptz_ns"} >= SKETCHED
