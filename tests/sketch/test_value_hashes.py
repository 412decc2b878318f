"""Hashes of single values: those under which the builders keep the same values, for every type."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rookery.model.predicate import Value
from rookery.model.type_names import SKETCHED, base_type
from rookery.sketch.bloom_builder import BloomBuilder
from rookery.sketch.kmv import ThetaBuilder
from rookery.sketch.value_hashes import bloom_hashes, theta_hashes
from rookery.sketch.values import add_arrow

EXACT = Context(prec=38)
MICRO = timedelta(microseconds=1)
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
MOMENTS = st.datetimes().map(lambda moment: (moment - datetime(1970, 1, 1)) // MICRO)
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "int": (pa.int32(), INTS),
    "long": (pa.int64(), LONGS),
    "float": (pa.float32(), st.floats(allow_nan=False, width=32)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "date": (pa.date32(), st.integers(-700_000, 2_900_000)),
    "time": (pa.time64("us"), st.integers(0, 86_400_000_000 - 1)),
    "timestamp": (pa.timestamp("us"), MOMENTS),
    "timestamptz": (pa.timestamp("us", "UTC"), MOMENTS),
    "timestamp_ns": (pa.timestamp("ns"), LONGS),
    "timestamptz_ns": (pa.timestamp("ns", "UTC"), LONGS),
    "string": (pa.string(), st.text()),
    "binary": (pa.binary(), st.binary()),
    "fixed[7]": (pa.binary(7), st.binary(min_size=7, max_size=7)),
    "uuid": (pa.binary(16), st.binary(min_size=16, max_size=16)),
    "decimal(7, 2)": (pa.decimal128(7, 2), st.integers(-(10**7) + 1, 10**7 - 1)),
    "decimal(18, 0)": (pa.decimal128(18, 0), st.integers(-(10**18) + 1, 10**18 - 1)),
    "decimal(25, 5)": (pa.decimal128(25, 5), st.integers(-(10**25) + 1, 10**25 - 1)),
    "decimal(38, 38)": (pa.decimal128(38, 38), st.integers(-(10**38) + 1, 10**38 - 1)),
}
types = pytest.mark.parametrize("kind", TYPES)
compiled = settings(max_examples=40)


def arrow(kind: str, value: Value) -> pa.Array:
    stored, _ = TYPES[kind]
    if pa.types.is_decimal(stored):
        return pa.array([Decimal(value).scaleb(-stored.scale, EXACT)], stored)
    if pa.types.is_temporal(stored):
        raw = pa.int32() if stored == pa.date32() else pa.int64()
        return pa.array([value], raw).view(stored)
    return pa.array([value], stored)


def test_all_types_are_tried() -> None:
    assert {base_type(kind) for kind in TYPES} == SKETCHED


@types
@given(st.data())
@compiled
def test_theta_hashes_are_what_a_sketch_retains(kind: str, data: st.DataObject) -> None:
    value = data.draw(TYPES[kind][1])
    builder = ThetaBuilder()
    add_arrow(builder, kind, arrow(kind, value))
    if kind in ("float", "double") and value == 0:
        add_arrow(builder, kind, arrow(kind, -value))
    hashes = theta_hashes(kind, value)
    assert sorted(hashes or ()) == builder.result().hashes.tolist()
    assert (hashes is None) == (value in ("", b""))


@types
@given(st.data())
@compiled
def test_bloom_hashes_are_what_a_filter_holds(kind: str, data: st.DataObject) -> None:
    value = data.draw(TYPES[kind][1])
    builder = BloomBuilder(kind, 1000)
    add_arrow(builder, kind, arrow(kind, value))
    if kind in ("float", "double") and value == 0:
        add_arrow(builder, kind, arrow(kind, -value))
    hashes = bloom_hashes(kind, value)
    assert hashes is not None
    found = builder.result()
    assert found.contains(np.array(hashes, np.uint64)).all()
    assert int(np.bitwise_count(found.words).sum()) == 8 * len(hashes)  # of these, and of nothing else


@pytest.mark.parametrize(
    "kind, value",
    [
        ("float", float("nan")),
        ("double", float("nan")),
        ("float", 1e300),
        ("int", 2**31),
        ("long", -(2**63) - 1),
        ("int", 1.5),
        ("int", "1"),
        ("double", "1"),
        ("string", "\ud800"),
        ("string", 1),
        ("decimal(9, 2)", 1.5),
    ],
)
def test_of_what_does_not_fit_nothing_is_said(kind: str, value: Any) -> None:
    assert bloom_hashes(kind, value) is None
    assert theta_hashes(kind, value) is None


def test_a_decimal_beyond_its_bytes_has_no_hash() -> None:
    assert bloom_hashes("decimal(9, 2)", 2**31) is None
    assert theta_hashes("decimal(9, 2)", 2**31) is not None


def test_zeros_are_two_and_equal() -> None:
    for kind in ("float", "double"):
        for hashes in (bloom_hashes, theta_hashes):
            assert hashes(kind, 0.0) == hashes(kind, -0.0) == hashes(kind, 0)
            assert len(set(hashes(kind, 0.0) or ())) == 2
