"""Literals in their column's form."""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.model import Compare, Field, In, IsNull, Op, Predicate, UsageError
from rookery.model.predicate import NEVER
from rookery.where import timestamps
from rookery.where.binding import Inexact
from rookery.where.literals import NULL, Kind, Literal, among, compare, single
from rookery.where.text_values import NAN, double_in
from rookery.where.timestamps import MICROS_A_DAY, session_zone
from tests.where.naive import OPS, matches

UTC = session_zone("UTC")
BERLIN = session_zone("Europe/Berlin")
ALL = "all"  # every value that is not null
MARCH_31 = 19_813  # 2024-03-31, when clocks in Berlin were put forward


def bound(type_name: str, op: str, literal: Literal, zone: str = "UTC") -> object:
    """A comparison in short: (op, value), ALL, None for never, or a reason."""
    field = Field(1, "c", type_name)
    try:
        leaf = compare(field, Op(op), literal, session_zone(zone))
    except Inexact as inexact:
        return inexact.reason
    if leaf == IsNull(field, negated=True):
        return ALL
    if leaf == NEVER:
        return None
    assert isinstance(leaf, Compare)
    return leaf.op.value, leaf.value


def integer(value: int) -> Literal:
    return Literal(Kind.INTEGER, value)


def decimal(text: str) -> Literal:
    return Literal(Kind.DECIMAL, Decimal(text))


def double(value: float) -> Literal:
    return Literal(Kind.DOUBLE, value)


def text(value: str) -> Literal:
    return Literal(Kind.STRING, value)


CASES = [
    ("int", "=", integer(5), ("=", 5)),
    ("int", "=", integer(2**31), None),
    ("int", "!=", integer(2**31), ALL),
    ("int", "<", integer(2**31), ALL),
    ("int", ">", integer(-(2**31) - 1), ALL),
    ("int", ">=", integer(2**40), None),
    ("long", "<=", integer(2**63), "Spark decides this without the column, for nulls too"),
    ("int", "=", decimal("1.0"), ("=", 1)),
    ("int", "=", decimal("1.5"), None),
    ("int", "!=", decimal("1.5"), ALL),
    ("int", "<", decimal("1.5"), ("<=", 1)),
    ("int", "<=", decimal("-1.5"), ("<=", -2)),
    ("int", ">", decimal("1.5"), (">=", 2)),
    ("int", ">=", decimal("-1.5"), (">=", -1)),
    ("int", "=", double(3.0), ("=", 3)),
    ("int", "<", double(1e300), ALL),
    ("long", "=", double(2.0**53), "Spark compares the column as a double, which has too few digits for it"),
    ("long", "<", double(1e300), ALL),
    ("long", "<", double(math.inf), ALL),
    ("long", ">", double(-math.inf), ALL),
    ("long", "=", double(NAN), None),
    ("long", "<", double(NAN), ALL),
    ("int", "=", text(" +5 "), ("=", 5)),
    ("int", "=", text("99999999999"), None),
    ("decimal(12, 2)", "=", decimal("1.5"), ("=", 150)),
    ("decimal(12, 2)", "=", integer(-7), ("=", -700)),
    ("decimal(12, 2)", "=", decimal("1.555"), None),
    ("decimal(12, 2)", "<", decimal("1.555"), ("<=", 155)),
    ("decimal(12, 2)", ">", decimal("-1.555"), (">=", -155)),
    ("decimal(4, 2)", "<", integer(100), ALL),
    ("decimal(12, 2)", "=", double(0.07), ("=", 7)),
    ("decimal(12, 2)", "=", text("0.07"), ("=", 7)),
    ("decimal(12, 2)", ">", double(1e300), None),
    ("decimal(12, 2)", "<", double(NAN), ALL),
    (
        "decimal(38, 2)",
        "=",
        double(1e20),
        "Spark compares the column as a double, which has too few digits for it",
    ),
    (
        "decimal(38, 2)",
        "=",
        decimal("0.001"),
        "Spark rounds, as both sides do not fit a decimal of 38 digits",
    ),
    ("double", "=", decimal("0.1"), ("=", 0.1)),
    ("double", "=", integer(2**53 + 1), ("=", 2.0**53)),
    ("double", ">", text("-Infinity"), (">", -math.inf)),
    ("double", "=", double(NAN), ("=", NAN)),
    ("float", "=", decimal("0.1"), None),
    ("float", "!=", decimal("0.1"), ALL),
    ("float", "<", decimal("0.1"), ("<", 0.1)),
    ("float", "=", double(0.5), ("=", 0.5)),
    ("float", "=", double(1e300), None),
    ("string", "<", text("5"), ("<", "5")),
    ("string", "=", Literal(Kind.DATE, 0), "Spark casts the column to date"),
    ("boolean", "=", text("Yes"), ("=", True)),
    ("boolean", "<", Literal(Kind.BOOLEAN, True), ("<", True)),
    ("date", "=", text("1970-1-3"), ("=", 2)),
    ("date", "=", text("1971"), ("=", 365)),
    ("date", "=", Literal(Kind.TIMESTAMP_NTZ, MICROS_A_DAY), ("=", 1)),
    ("date", "=", Literal(Kind.TIMESTAMP_NTZ, MICROS_A_DAY + 1), None),
    ("date", "<", Literal(Kind.TIMESTAMP, MICROS_A_DAY // 2), ("<=", 0)),
    ("date", "=", text("today"), "'today' depends on when it is asked"),
    ("date", "=", text("12345-01-01"), "the date is out of the calendar"),
    ("timestamp", "=", Literal(Kind.DATE, 1), ("=", MICROS_A_DAY)),
    ("timestamp", "=", text("1970-01-01 00:00:01.5+02:00"), ("=", 1_500_000)),
    ("timestamp", "=", text("1970-01-01 00:00:00.123456789"), ("=", 123_456)),
    ("timestamp_ns", "=", text("1970-01-01 00:00:01"), ("=", 1_000_000_000)),
    ("timestamp_ns", "=", text("1970-01-01 00:00:00.1234567891"), ("=", 123_456_789)),
    ("timestamp_ns", ">", text("1969-12-31 23:59:59.9999999"), (">", -100)),
    ("timestamp_ns", "<", text("9999-12-31"), ALL),
    ("timestamp_ns", "<", text("0001-01-01"), None),
    ("timestamp_ns", "!=", Literal(Kind.DATE, 300_000), ALL),
    ("timestamptz_ns", "=", text("1970-01-01 02:00:00.000000007+02:00"), ("=", 7)),
    ("timestamptz_ns", "=", Literal(Kind.TIMESTAMP, 7, 8), ("=", 7008)),
    ("timestamptz_ns", ">=", Literal(Kind.TIMESTAMP_NTZ, 10**16), None),
    ("timestamptz", "=", text("1970-01-01T02:00:00 +02:00"), ("=", 0)),
    ("timestamptz_ns", "=", Literal(Kind.TIMESTAMP, 7), ("=", 7000)),
    ("timestamptz", "=", text("10:20:30"), "a time without a day is one of today"),
    ("timestamptz", "=", text("2024-01-01 10:00:00 PST"), "the time zone 'PST' is not known"),
    ("time", "=", text("00:00:01.25"), ("=", 1_250_000)),
    ("time", "<", Literal(Kind.TIME, 9), ("<", 9)),
    ("binary", "=", text("ä"), ("=", "ä".encode())),
    ("fixed[2]", "=", Literal(Kind.BINARY, b"ab"), ("=", b"ab")),
    ("fixed[2]", "=", Literal(Kind.BINARY, b"abc"), None),
    ("fixed[2]", "<", Literal(Kind.BINARY, b"abc"), ("<", b"abc")),
    (
        "uuid",
        ">",
        text("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (">", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes),
    ),
    ("uuid", "=", text("F79C"), "Spark compares UUIDs as text, and this is none in lower case"),
    ("variant", "=", integer(1), "columns of type variant are not compared"),
]


@pytest.mark.parametrize(("type_name", "op", "literal", "expected"), CASES)
def test_compare(type_name: str, op: str, literal: Literal, expected: object) -> None:
    assert bound(type_name, op, literal) == expected


@pytest.mark.parametrize(
    ("type_name", "literal"),
    [
        ("string", integer(5)),
        ("int", text("1.5")),
        ("int", text("five")),
        ("int", Literal(Kind.BOOLEAN, True)),
        ("long", Literal(Kind.DATE, 5)),
        ("decimal(5, 2)", text("x")),
        ("double", Literal(Kind.BINARY, b"x")),
        ("boolean", integer(1)),
        ("date", integer(5)),
        ("date", text("2024-02-30")),
        ("timestamp", text("2024-01-01 10:20Z")),
        ("timestamptz", double(1.0)),
        ("time", text("24:00:00")),
        ("binary", integer(5)),
        ("uuid", integer(5)),
    ],
)
def test_type_mismatch(type_name: str, literal: Literal) -> None:
    with pytest.raises(UsageError, match=r"^type mismatch: column 'c'") as caught:
        compare(Field(1, "c", type_name), Op.EQ, literal, UTC)
    assert caught.value.hint


@pytest.mark.parametrize("op", list(Op))
@pytest.mark.parametrize("type_name", ["int", "string", "timestamptz", "uuid"])
def test_null_is_never_equal(op: Op, type_name: str) -> None:
    assert compare(Field(1, "c", type_name), op, NULL, UTC) == NEVER


def at(day: int, micros: int) -> Literal:
    return Literal(Kind.TIMESTAMP, day * MICROS_A_DAY + micros)


class TestZones:
    @pytest.mark.parametrize(
        ("type_name", "op", "literal", "expected"),
        [
            ("timestamptz", "=", text("1970-01-01 01:00:00"), ("=", 0)),
            ("timestamptz", "=", Literal(Kind.DATE, 10), ("=", 10 * MICROS_A_DAY - 3_600_000_000)),
            # Clocks skip from two to three o'clock, and half past two is moved on to half past three.
            ("timestamptz", "=", text("2024-03-31 02:30:00"), ("=", MARCH_31 * MICROS_A_DAY + 5_400_000_000)),
            ("timestamp", "=", at(10, 0), ("=", 10 * MICROS_A_DAY + 3_600_000_000)),
            ("date", "=", at(10, -3_600_000_000), ("=", 10)),
            ("date", "<", at(10, 0), ("<=", 10)),
        ],
    )
    def test_local_times(self, type_name: str, op: str, literal: Literal, expected: object) -> None:
        assert bound(type_name, op, literal, "Europe/Berlin") == expected

    @pytest.mark.parametrize(
        ("type_name", "literal"),
        [
            ("timestamptz", text("1935-06-01 13:00:00 Europe/Amsterdam")),
            ("timestamptz", text("1935-06-01 13:00:00")),
            ("timestamptz", Literal(Kind.DATE, -10)),
            ("timestamp", at(-10, 0)),
            ("date", at(-10, 0)),
        ],
    )
    def test_regions_before_1970(self, type_name: str, literal: Literal) -> None:
        """Their history is not the same in Java's and in Python's databases."""
        reason = bound(type_name, "=", literal, "Europe/Amsterdam")
        assert reason == "the time zone databases of Java and Python differ in regions before 1970"
        if "Europe" not in str(literal.value):
            assert isinstance(bound(type_name, "=", literal, "UTC"), tuple)

    def test_where_clocks_change(self) -> None:
        reason = bound("timestamp", "<", Literal(Kind.TIMESTAMP, MARCH_31 * MICROS_A_DAY), "Europe/Berlin")
        assert reason == "clocks change near this time, where local times do not order as instants"

    def test_unknown_zone(self) -> None:
        with pytest.raises(UsageError, match="'Mars/Base' is not a time zone"):
            session_zone("Mars/Base")

    @pytest.mark.parametrize("instant", [2**62, -(2**62), 253_402_300_799_999_999, -62_135_596_800_000_000])
    @pytest.mark.parametrize("type_name", ["date", "timestamp", "timestamptz"])
    def test_no_crash_beyond_the_calendar(self, instant: int, type_name: str) -> None:
        for zone in ("UTC", "Pacific/Auckland", "-12:00"):
            for kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
                bound(type_name, "<", Literal(kind, instant), zone)

    @given(st.integers(-60_000_000_000_000_000, 200_000_000_000_000_000))
    def test_there_and_back(self, instant: int) -> None:
        for zone in (UTC, BERLIN) if instant > 2 * MICROS_A_DAY else (UTC,):
            day, at_midnight = timestamps.day_of(instant, zone)
            midnight = timestamps.to_instant(day * MICROS_A_DAY, zone)
            assert midnight <= instant < timestamps.to_instant((day + 1) * MICROS_A_DAY, zone)
            assert at_midnight == (midnight == instant)


class TestAmong:
    def ask(self, type_name: str, *literals: Literal, negated: bool = False) -> Predicate:
        return among(Field(1, "c", type_name), literals, UTC, negated=negated)

    def test_values_are_distinct(self) -> None:
        found = self.ask("double", double(0.0), double(-0.0), double(NAN), double(float("nan")), double(1.0))
        assert found == In(Field(1, "c", "double"), (0.0, NAN, 1.0))

    def test_one_value_is_equality(self) -> None:
        assert self.ask("int", integer(1), integer(1), NULL) == Compare(Field(1, "c", "int"), Op.EQ, 1)
        assert self.ask("int", integer(1), negated=True) == Compare(Field(1, "c", "int"), Op.NE, 1)

    def test_nulls(self) -> None:
        assert self.ask("int", NULL) == NEVER
        assert self.ask("int", integer(1), integer(2), NULL, negated=True) == NEVER

    def test_what_cannot_be_equal(self) -> None:
        assert self.ask("float", decimal("0.1"), decimal("0.3")) == NEVER
        assert self.ask("float", decimal("0.1"), negated=True) == IsNull(Field(1, "c", "float"), negated=True)

    def test_a_double_makes_all_doubles(self) -> None:
        with pytest.raises(Inexact, match="as a double"):
            self.ask("long", integer(2**60), double(1.0))
        with pytest.raises(Inexact, match="mixes types"):
            self.ask("date", text("2024"), Literal(Kind.DATE, 5))


SPREAD = st.integers(-2000, 2000)


class TestProperties:
    @given(SPREAD, st.decimals(-20, 20, places=3), st.sampled_from(list(Op)))
    def test_decimals(self, unscaled: int, value: Decimal, op: Op) -> None:
        for type_name, scale in (("decimal(9, 2)", 2), ("int", 0)):
            field = Field(1, "c", type_name)
            leaf = compare(field, op, Literal(Kind.DECIMAL, value), UTC)
            expected = OPS[op](Decimal(unscaled).scaleb(-scale), value)
            assert matches(leaf, {"c": unscaled}) == expected

    @given(SPREAD, st.floats(-20, 20) | SPREAD.map(lambda n: n / 100), st.sampled_from(list(Op)))
    def test_decimals_as_doubles(self, unscaled: int, value: float, op: Op) -> None:
        leaf = compare(Field(1, "c", "decimal(9, 2)"), op, Literal(Kind.DOUBLE, value), UTC)
        assert matches(leaf, {"c": unscaled}) == OPS[op](unscaled / 100, value)

    @given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False), st.sampled_from(list(Op)))
    def test_floats(self, stored: float, value: float, op: Op) -> None:
        leaf = compare(Field(1, "c", "float"), op, Literal(Kind.DOUBLE, value), UTC)
        assert matches(leaf, {"c": stored}) == OPS[op](stored, value)
        assert single(stored) == stored

    @given(st.text(max_size=12))
    def test_any_text_is_understood_or_refused(self, value: str) -> None:
        for type_name in (
            "int",
            "double",
            "decimal(9, 2)",
            "date",
            "timestamp",
            "timestamptz",
            "time",
            "boolean",
        ):
            with suppress(UsageError, Inexact):
                compare(Field(1, "c", type_name), Op.LT, Literal(Kind.STRING, value), UTC)

    @given(st.floats(allow_nan=False))
    def test_doubles_in_text(self, value: float) -> None:
        assert double_in(repr(value)) == value
