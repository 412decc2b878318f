"""Column groups: the same rows count the same, whichever reader they come from."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rookery.sketch import ThetaSketch
from rookery.sketch.column_sets import add_joint
from rookery.sketch.kmv import ThetaBuilder

UUIDS = [uuid.UUID(int=n**30) for n in (0, 1, 5, 17)]


def joint(*columns: tuple[str, pa.Array]) -> ThetaSketch:
    builder = ThetaBuilder()
    add_joint(builder, [kind for kind, _ in columns], [array for _, array in columns])
    return builder.result()


def test_rows_with_a_null_count_for_nothing() -> None:
    a = pa.array([1, 1, None, 2, 2, 1], pa.int64())
    b = pa.array(["x", "x", "x", None, "y", ""])
    assert len(joint(("long", a), ("string", b)).hashes) == 3  # (1, x), (2, y) and (1, an empty text)
    assert joint(("long", a.slice(2, 2)), ("string", b.slice(2, 2))).is_empty


def test_order_and_slices() -> None:
    a, b = pa.array([1, 2, 3, 4]), pa.array([2, 5, 3, 4])
    assert joint(("long", a), ("long", b)) != joint(("long", b), ("long", a))
    parts = joint(("long", a.slice(1, 2)), ("long", b.slice(1, 2)))
    assert set(parts.hashes) < set(joint(("long", a), ("long", b)).hashes)
    assert len(parts.hashes) == 2


@pytest.mark.parametrize(
    "kind, forms",
    [
        ("long", [pa.int64(), pa.int32()]),
        ("double", [pa.float64(), pa.float32()]),
        ("string", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]),
        ("decimal(18, 2)", [pa.decimal128(18, 2), pa.decimal128(9, 2), pa.decimal64(18, 2)]),
        ("timestamp", [pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("ns")]),
        ("uuid", [pa.binary(16), pa.uuid(), pa.binary(), pa.string()]),
        ("fixed[3]", [pa.binary(3), pa.binary()]),
        ("boolean", [pa.bool_()]),
    ],
)
def test_one_value_in_many_forms(kind: str, forms: list[pa.DataType]) -> None:
    """Promoted columns, other units, and what Spark makes of types that it lacks."""
    values: dict[str, list[Any]] = {
        "long": [0, -1, 77, 2**31 - 1],
        "double": [0.5, -0.0, 1e10, 3.0],
        "string": ["", "a", "ä", "exactly 16 bytes"],
        "decimal(18, 2)": [Decimal("0.00"), Decimal("-1.28"), Decimal("300.00"), Decimal("9.99")],
        "timestamp": [0, 1000, -5000, 10**9],
        "fixed[3]": [b"abc", b"xyz", b"\0\0\0", b"123"],
        "boolean": [True, False, True, False],
    }
    numbers = pa.array([1, 2, 3, 4])
    found = []
    for form in forms:
        if kind == "uuid":
            written = [str(value) if form == pa.string() else value.bytes for value in UUIDS]
            array = pa.array(written, form)
        elif kind == "timestamp":
            array = pa.array([value * 1000 for value in values[kind]], pa.timestamp("us")).cast(form)
        else:
            array = pa.array(values[kind], form)
        found.append(joint((kind, array), ("long", numbers)))
    assert all(one == found[0] for one in found)
    assert len(found[0].hashes) == 4
