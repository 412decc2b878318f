"""Quantiles: the ends are exact whatever is merged, and every histogram adds up."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.sketch.quantiles import Quantiles, QuantilesError

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats()),
    "timestamp": (pa.timestamp("us"), st.integers(-(2**62), 2**62)),
    "decimal(38, 2)": (
        pa.decimal128(38, 2),
        st.integers(-(10**38) + 1, 10**38 - 1).map(lambda number: Decimal(f"{number}E-2")),
    ),
    "string": (pa.string(), st.text()),
}


def parts_of(kind: str) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(st.none() | TYPES[kind][1]), min_size=1, max_size=4)


def merged(kind: str, parts: list[list[Any]]) -> Quantiles:
    sketches = [Quantiles.empty(kind).with_values(pa.array(part, TYPES[kind][0])) for part in parts]
    return reduce(lambda one, other: one.merge(Quantiles.decode(other.encode())), sketches)


@pytest.mark.parametrize("kind", list(TYPES))
@given(data=st.data())
def test_the_ends_are_the_least_and_the_greatest_value(kind: str, data: st.DataObject) -> None:
    parts = data.draw(parts_of(kind))
    found = Quantiles.decode(merged(kind, parts).encode())
    values = [
        value
        for part in parts
        for value in part
        if value is not None and not (isinstance(value, float) and math.isnan(value))
    ]
    if not values:
        assert (found.at([0, 0.5, 1]), found.histogram(16)) == ([], [])
        return
    least, middle, greatest = found.at([0, 0.5, 1])
    assert (least, greatest) == (min(values), max(values))
    assert least <= middle <= greatest
    shares = found.histogram(16)
    assert all(share >= 0 for share in shares)
    if shares:
        assert sum(shares) == pytest.approx(1.0)
    else:
        assert kind == "string" or math.inf in map(abs, values)


def test_far_out_values_are_not_lost_among_many() -> None:
    array = pa.array([-43, *range(400), 1301] * 1 + [200] * 100_000, pa.int64())
    found = Quantiles.empty("long").with_values(array)
    assert found.at([0, 1]) == [-43, 1301]
    assert len(found.histogram(16)) == 16


@pytest.mark.parametrize("payload", [b"", b"x", b"e", b"e\x05\x00[1,2", b"e\x02\x00[]", b'e\x07\x00["a",1]'])
def test_bad_bytes(payload: bytes) -> None:
    with pytest.raises(QuantilesError):
        Quantiles.decode(payload)
