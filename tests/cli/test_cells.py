"""Rows as text and JSON: every day and time that Iceberg has, numbers that JSON has not, nested or not."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.api.values import plain
from rookery.cli.cells import values_of
from rookery.model.calendar import day_text
from tests.cli.conftest import Rookery
from tests.lakehouse import sqlite_lake, sqlite_words

MOST, LEAST = 2**31 - 1, -(2**31)
DAYS = [MOST, LEAST, 2_932_897, -719_163, -719_562, 0, None]
DAY_TEXTS = [  # as Spark prints them
    "+5881580-07-11", "-5877641-06-23", "+10000-01-01", "0000-12-31", "-0001-11-28", "1970-01-01", None,
]  # fmt: skip
MICROS = [2**63 - 1, -(2**63), 1, None]
MICRO_TEXTS = [
    "+294247-01-10 04:00:54.775807",
    "-290308-12-21 19:59:05.224192",
    "1970-01-01 00:00:00.000001",
    None,
]


def test_days_beyond_python() -> None:
    assert values_of(pa.array(DAYS, pa.date32()), json=True) == DAY_TEXTS


def test_timestamps_beyond_python() -> None:
    local = pa.array(MICROS, pa.timestamp("us"))
    assert values_of(local, json=False) == MICRO_TEXTS
    iso = [text and text.replace(" ", "T") for text in MICRO_TEXTS]
    assert values_of(local, json=True) == iso
    zoned = pa.array(MICROS, pa.timestamp("us", "UTC"))
    assert values_of(zoned, json=True) == [text and text + "Z" for text in iso]
    assert values_of(zoned, json=False) == [text and text + "+00:00" for text in MICRO_TEXTS]


def test_nanoseconds_and_times() -> None:
    nanos = pa.array([1, 1000, -1], pa.timestamp("ns", "UTC"))
    assert values_of(nanos, json=True) == [
        "1970-01-01T00:00:00.000000001Z",
        "1970-01-01T00:00:00.000001Z",
        "1969-12-31T23:59:59.999999999Z",
    ]
    assert values_of(pa.array([1, 86_399_999_999], pa.time64("us")), json=True) == [
        "00:00:00.000001",
        "23:59:59.999999",
    ]


@given(st.lists(st.none() | st.dates()), st.integers(0, 3))
def test_days_of_python_stay_as_they_are(days: list[date | None], start: int) -> None:
    expected = [day and day.isoformat() for day in days][start:]
    assert values_of(pa.array(days, pa.date32())[start:], json=True) == expected


@given(st.lists(st.none() | st.datetimes()))
def test_timestamps_of_python_stay_as_they_are(times: list[datetime | None]) -> None:
    local = pa.array(times, pa.timestamp("us"))
    assert values_of(local, json=False) == [time and str(time) for time in times]
    assert values_of(local, json=True) == [time and time.isoformat() for time in times]
    zoned = pa.array([time and time.replace(tzinfo=UTC) for time in times], pa.timestamp("us", "UTC"))
    assert values_of(zoned, json=False) == [time and f"{time}+00:00" for time in times]


@given(st.lists(st.none() | st.times()))
def test_times_of_day(times: list[time | None]) -> None:
    expected = [None if time is None else time.isoformat() for time in times]
    assert values_of(pa.array(times, pa.time64("us")), json=True) == expected


_DAY = st.none() | st.integers(LEAST, MOST)
_KIND = pa.struct(
    [
        ("d", pa.date32()),
        ("l", pa.list_(pa.date32())),
        ("m", pa.map_(pa.date32(), pa.struct([("x", pa.date32())]))),
        ("f", pa.float64()),
    ]
)
_VALUE = st.none() | st.fixed_dictionaries(
    {
        "d": _DAY,
        "l": st.none() | st.lists(_DAY, max_size=3),
        "m": st.none()
        | st.lists(
            st.tuples(st.integers(LEAST, MOST), st.none() | st.fixed_dictionaries({"x": _DAY})), max_size=3
        ),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    }
)


def _shown(value: object) -> object:
    match value:
        case bool() | float() | None:
            return value
        case int():
            return day_text(value)
        case dict():
            return {key: _shown(each) for key, each in value.items()}
        case tuple():
            return tuple(map(_shown, value))
        case list():
            return [_shown(each) for each in value]
    raise AssertionError(value)


@given(st.lists(_VALUE, max_size=6), st.integers(0, 3))
def test_nested(rows: list[object], start: int) -> None:
    assert values_of(pa.array(rows, _KIND)[start:], json=True) == _shown(rows[start:])


def test_numbers_that_json_lacks() -> None:
    floats = [float("nan"), float("inf"), float("-inf"), 1.5, None]
    for kind in (pa.float32(), pa.float64()):
        assert values_of(pa.array(floats, kind), json=True) == ["NaN", "Infinity", "-Infinity", 1.5, None]


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """The options that name a catalog with the table db.t, whose rows Python's calendar has no dates for."""
    catalog = sqlite_lake(tmp_path).catalog
    days = pa.array(DAYS, pa.date32())
    floats = pa.array([float("nan"), float("inf"), float("-inf"), 0.0, 1.0, 2.0, None])
    nested = pa.StructArray.from_arrays([days, floats], ["d", "f"])
    rows = pa.table({"id": pa.array(range(7)), "d": days, "f": floats, "n": nested})
    unmeasured = {f"write.metadata.metrics.column.{name}": "none" for name in ("d", "n.d")}
    catalog.create_table("db.t", rows.schema, properties=unmeasured).append(
        rows
    )  # PyIceberg has no such days
    return sqlite_words(tmp_path)


def test_read(rookery: Rookery, options: list[str]) -> None:
    code, out, _ = rookery(*options, "read", "db.t", "--output", "json")
    found = json.loads(out)
    assert code == 0
    assert [row["d"] for row in found] == [row["n"]["d"] for row in found] == DAY_TEXTS
    assert [row["f"] for row in found] == ["NaN", "Infinity", "-Infinity", 0.0, 1.0, 2.0, None]
    assert found[0]["n"] == {"d": "+5881580-07-11", "f": "NaN"}
    code, out, _ = rookery(*options, "read", "db.t", "id <= 1")
    assert code == 0
    assert "'d': '+5881580-07-11'" in out
    assert "-5877641-06-23" in out


def test_stats(rookery: Rookery, options: list[str]) -> None:
    code, out, _ = rookery(*options, "stats", "db.t", "--output", "json")
    columns = {column["name"]: column for column in json.loads(out)["columns"]}
    assert code == 0
    assert [plain("date", day) for day in DAYS] == DAY_TEXTS  # which PyIceberg writes no bounds of
    assert (columns["f"]["min"], columns["f"]["max"]) == ("-Infinity", "Infinity")


def test_a_column_named_twice(rookery: Rookery, options: list[str]) -> None:
    for words in (["id,id"], ["id", "--columns", "ID"]):
        code, out, err = rookery(*options, "read", "db.t", "--columns", *words)
        assert (code, out) == (2, "")
        assert err.splitlines() == ["error: the column 'id' is named twice", "hint: name each column once"]
