"""The least and the greatest value: exact only where the bound must be a value of a live row."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rookery.collect.extremes import NO_VALUE, ColumnBounds, Extreme
from rookery.model import Field
from rookery.sidecar import ZoneMap
from rookery.sketch import ThetaSketch
from rookery.sketch.value_hashes import theta_hashes
from rookery.tables import FILE_SCHEMA

LONG, TEXT, DOUBLE = Field(7, "n", "long"), Field(7, "t", "string"), Field(7, "x", "double")
TIME = Field(7, "at", "timestamp")


def file(low: Any = None, high: Any = None, **stated: Any) -> dict[str, Any]:
    """What a manifest states of a file of ten rows; bounds in bytes."""
    return {
        "low": low,
        "high": low if high is None else high,
        "rows": 10,
        "nulls": 0,
        "deletes": "",
        **stated,
    }


def bounds_of(
    field: Field, files: Sequence[dict[str, Any]], only_null: Sequence[bool] | None = None
) -> ColumnBounds:
    def stated(name: str) -> list[Any]:
        return [[(field.id, each[name])] if each.get(name) is not None else [] for each in files]

    columns: dict[str, Any] = {
        "path": [f"f{n}" for n in range(len(files))],
        "rows": [each["rows"] for each in files],
        "format": [each.get("format", "parquet") for each in files],
        "null_counts": stated("nulls"),
        "nan_counts": stated("nans"),
        "column_sizes": stated("size"),
        "value_counts": [[(field.id, each.get("values", each["rows"]))] for each in files],
        "lower_bounds": stated("low"),
        "upper_bounds": stated("high"),
    }
    listed = pa.table({n: pa.array(v, FILE_SCHEMA.field(n).type) for n, v in columns.items()})
    listed = listed.append_column("deletes", pa.array([each["deletes"] for each in files], pa.string()))
    mask = np.array(only_null or [False] * len(files), bool)
    return ColumnBounds(field, ZoneMap.of(listed), mask)


def long(value: int) -> bytes:
    return struct.pack("<q", value)


def double(value: float) -> bytes:
    return struct.pack("<d", value)


def sketch_with(field: Field, *values: Any) -> ThetaSketch:
    hashes = sorted(number for value in values for number in theta_hashes(field.type, value) or ())
    return ThetaSketch(np.array(hashes, np.uint64))


@pytest.mark.parametrize(
    ("field", "files", "low", "high"),
    [
        (LONG, [file(long(3), long(9)), file(long(-5), long(4))], (-5, True), (9, True)),
        # The row that had the bound may be deleted.
        (LONG, [file(long(3), long(9), deletes="d"), file(long(4), long(5))], (3, False), (9, False)),
        # Where one of the files that reach it has all its rows, it occurs.
        (LONG, [file(long(3), long(9), deletes="d"), file(long(3), long(5))], (3, True), (9, False)),
        # Text is cut off, unless both ends are the same; what is empty was not cut.
        (TEXT, [file(b"ab", b"zz")], ("ab", False), ("zz", False)),
        (TEXT, [file(b"ab", b"ab")], ("ab", True), ("ab", True)),
        (TEXT, [file(b"", b"zz")], ("", True), ("zz", False)),
        (TEXT, [file(b"ab", b"ab", deletes="d")], ("ab", False), ("ab", False)),
        # ORC rounds times.
        (TIME, [file(long(1), long(9))], (1, True), (9, True)),
        (TIME, [file(long(1), long(9), format="orc")], (1, False), (9, False)),
        (LONG, [file(long(1), long(9), format="orc")], (1, True), (9, True)),
        # NaN is neither least nor greatest.
        (DOUBLE, [file(double(1), double(2), nans=3), file(nans=10)], (1.0, True), (2.0, True)),
        # Files of nulls, or of no rows, have no bounds.
        (LONG, [file(long(1), long(2)), file(nulls=10), file(rows=0)], (1, True), (2, True)),
    ],
)
def test_exact_or_not(field: Field, files: list[dict[str, Any]], low: Any, high: Any) -> None:
    found = bounds_of(field, files)
    assert (found.least(None), found.greatest(None)) == (Extreme(*low), Extreme(*high))


def test_a_bound_that_a_live_row_has_is_exact() -> None:
    """Its hash is in the sketch of the live rows."""
    deleted = bounds_of(LONG, [file(long(3), long(9), deletes="d")])
    assert deleted.least(sketch_with(LONG, 3, 5)) == Extreme(3, True)
    assert deleted.greatest(sketch_with(LONG, 3, 5)) == Extreme(9, False)
    cut = bounds_of(TEXT, [file(b"ab", b"zz")])
    assert cut.greatest(sketch_with(TEXT, "zz")) == Extreme("zz", True)
    assert cut.least(sketch_with(TEXT, "abc")) == Extreme("ab", False)


@pytest.mark.parametrize("missing", [file(), file(nulls=None), file(nulls=3)])
def test_a_file_without_bounds_leaves_them_unknown(missing: dict[str, Any]) -> None:
    found = bounds_of(LONG, [file(long(1), long(2)), missing])
    assert found.least(None) == Extreme(reason="1 of 2 files without bounds")
    # Unless it is known that the column is too young to be in it.
    found = bounds_of(LONG, [file(long(1), long(2)), missing], [False, True])
    assert (found.least(None), found.nulls()) == (Extreme(1, True), (10, None))


def test_no_value_at_all() -> None:
    for files in ([], [file(nulls=10)], [file(rows=0)]):
        found = bounds_of(LONG, files)
        assert found.least(None) == found.greatest(None) == NO_VALUE


def test_nulls_are_counted_where_every_file_states_them() -> None:
    assert bounds_of(LONG, [file(nulls=3), file(nulls=4), file(nulls=None, rows=0)]).nulls() == (7, None)
    unknown = bounds_of(LONG, [file(nulls=3), file(nulls=None)])
    assert unknown.nulls() == (None, "1 of 2 files without counts of nulls")
    deleted = [file(nulls=3, deletes="d"), file(nulls=2)]
    assert bounds_of(LONG, deleted).nulls() == (None, "1 of 2 files with deleted rows")
    assert bounds_of(LONG, [file(nulls=0, deletes="d"), file(nulls=2)]).nulls() == (2, None)
    # A writer that counts other values than rows has left some out.
    assert bounds_of(LONG, [file(nulls=3, values=8)]).nulls()[0] is None
    repeated = Field(7, "l.element", "long", repeated=True)
    assert bounds_of(repeated, [file(nulls=3)]).nulls() == (None, "a row has any number of values")
    nested = Field(7, "s.x", "long")
    assert bounds_of(nested, [file(nulls=3)]).nulls()[0] is None
    assert bounds_of(nested, [file(nulls=10)]).nulls() == (10, None)


def test_how_many_values_there_are_at_most() -> None:
    assert bounds_of(LONG, [file(nulls=3), file(nulls=None)]).most_values() == 17
    assert bounds_of(LONG, [file(nulls=None), file()], [True, False]).most_values() == 10
    repeated = Field(7, "l.element", "long", repeated=True)
    assert bounds_of(repeated, [file(values=50), file(values=7)]).most_values() == 57


def test_the_size_is_known_if_every_file_states_it() -> None:
    assert bounds_of(LONG, [file(size=3), file(size=4)]).size == 7
    assert bounds_of(LONG, [file(size=3), file()]).size is None
