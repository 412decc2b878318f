"""Names, and bound predicates against Spark itself: both must find the same rows."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from rookery.model import Field, UsageError
from rookery.model.predicate import opaque_parts
from rookery.where.binding import Names, NestedColumn
from rookery.where.literals import single
from rookery.where.sql_text import parse_predicate
from rookery.where.to_sql import spell
from tests.where.naive import matches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TestNames:
    names = Names.of(
        (
            Field(1, "id", "long"),
            Field(2, "user.Name", "string"),
            Field(3, "list.element.x", "int", repeated=True),
            Field(4, "map.key", "string", repeated=True),
            Field(5, "map.value.y", "int", repeated=True),
            Field(6, "user.id", "long"),
        )
    )

    def test_found(self) -> None:
        assert self.names.find(("ID",)) == Field(1, "id", "long")
        assert self.names.find(("User", "name")) == Field(2, "user.Name", "string")

    def test_groups(self) -> None:
        assert self.names.find(("user",)) == NestedColumn("user", "struct")
        assert self.names.find(("list",)) == NestedColumn("list", "list")
        assert self.names.find(("list", "x")) == NestedColumn("list.x", "list")
        assert self.names.find(("map",)) == NestedColumn("map", "map")
        assert self.names.find(("map", "some key")) == NestedColumn("map.`some key`", "value of a map")

    def test_unknown(self) -> None:
        with pytest.raises(UsageError, match="no column 'idd' here") as caught:
            self.names.find(("idd",), at=" here")
        assert caught.value.hint == "did you mean id?"
        with pytest.raises(UsageError, match="no column 'user'"):
            Names.of(()).find(("user",))


def days(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


def instant(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


COLUMNS: dict[str, tuple[str, str, list[Any]]] = {
    "i": ("int", "int", [0, 1, 2, 5, -1, -2, 2**31 - 1, -(2**31)]),
    "l": ("long", "bigint", [0, 1, 5, -5, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "f": ("float", "float", [0.0, -0.0, 0.5, 1.5, single(0.1), math.nan, math.inf, -math.inf]),
    "d": ("double", "double", [0.0, -0.0, 0.1, 1.5, 1e300, math.nan, math.inf, -math.inf]),
    "p": (
        "decimal(12, 2)",
        "decimal(12,2)",
        list(map(Decimal, ["0", "0.07", "1.50", "1.51", "-1.5", "100", "9999999999.99", "-3"])),
    ),
    "w": (
        "decimal(38, 10)",
        "decimal(38,10)",
        list(map(Decimal, ["0", "0.0000000001", "1.5", "5", "-5", "1e20", "-1e27", "7"])),
    ),
    "s": ("string", "string", ["", "abc", "abd", "ab", "a%c", "a\nc", "😀x", "it's \\ %"]),
    "t": (
        "date",
        "date",
        list(
            map(
                days,
                [
                    "1970-01-01",
                    "2024-01-01",
                    "2024-01-02",
                    "2023-12-31",
                    "0001-01-01",
                    "9999-12-31",
                    "2024-02-29",
                    "2024-07-01",
                ],
            )
        ),
    ),
    "z": (
        "timestamptz",
        "timestamp",
        list(
            map(
                instant,
                [
                    "1970-01-01T00:00:00+00:00",
                    "2024-01-01T00:00:00+00:00",
                    "2024-01-01T12:00:00+00:00",
                    "2024-01-01T12:00:00.000001+00:00",
                    "2023-12-31T23:59:59.999999+00:00",
                    "2024-01-01T10:00:00+00:00",
                    "2024-02-01T00:00:00+00:00",
                    "2024-07-01T00:00:00+00:00",
                ],
            )
        ),
    ),
    "n": (
        "timestamp",
        "timestamp_ntz",
        list(
            map(
                instant,
                [
                    "1970-01-01T00:00:00",
                    "2024-01-01T00:00:00",
                    "2024-01-01T12:00:00",
                    "2024-01-01T12:00:00.000001",
                    "2023-12-31T23:59:59.999999",
                    "2024-01-01T10:00:00",
                    "2024-02-01T00:00:00",
                    "2024-07-01T00:00:00",
                ],
            )
        ),
    ),
    "b": ("binary", "binary", [b"", b"a", b"ab", b"\xff", b"\x00", b"abc", b"\x7f", b"\x80"]),
    "g": ("boolean", "boolean", [True, False, True, False, True, False, True, False]),
}
FIELDS = [Field(number, name, kind) for number, (name, (kind, _, _)) in enumerate(COLUMNS.items())]
COUNT = 40

PREDICATES = """
i = 5 | i != 5 | i < 1.5 | i <= -1.5 | i > -1.5 | i >= 0.5 | i = 1.0 | i = 1.5 | i != 1.5 | i = 2147483648
i < 2147483648 | i > -2147483649 | i = '5' | '1' < i | i <=> 5 | NOT (i <=> 5) | i <=> NULL | i = 1e0
i < 1.5e0
i > 1.5F | i IN (1, 2.5, 5) | i NOT IN (1, 2) | i NOT IN (1, NULL) | i IN (1, NULL) | i BETWEEN 1 AND 5
i NOT BETWEEN 0.5 AND 1e1 | i BETWEEN 1 AND NULL | NOT (i BETWEEN 1 AND NULL) | i = 5L
i < CAST('NaN' AS DOUBLE)
i = CAST(1.7 AS INT) | i <= 5 * 60 | i IN ('1', '5') | i < double('inf') | i IS DISTINCT FROM 5
i IN (1, 5e0)
l = 9007199254740993 | l = 9007199254740992 | l < 1e0 | l > -9223372036854775808 | l < 9223372036854775808
NOT (l > 9223372036854775808.5) | l != 9223372036854775808 | NOT (i > 4e10) | NOT (i > 40000000000)
l <=> 9223372036854775808
l < 1e300 | l > 99999999999999999999 | l = '9007199254740993' | l = 9007199254740992e0 | l < 5.5
l IN (9007199254740993, 1e0)
f = 0.1 | f != 0.1 | f = 0.1F | f = 0.5 | f < 0.1 | f <= 0.1 | f > 0.1 | f = CAST('NaN' AS DOUBLE)
f = float('nan')
f > 1000 | f < CAST('NaN' AS DOUBLE) | f = -0.0 | f = 0 | f IN (0.1, 0.5) | f NOT IN (0.1) | f = '0.5'
isnan(f)
NOT isnan(f) | f >= double('Infinity') | f IN (double('NaN'), 1.5) | f NOT IN (double('NaN'), 1.5)
d = 0.1 | d = 0.1F | d <= 1.5 | d = -0.0 | d > 1e299 | d = CAST('NaN' AS DOUBLE)
d != CAST('NaN' AS DOUBLE)
d < CAST('Infinity' AS DOUBLE) | d >= double('-inf') | d = ' 1.5 ' | isnan(d) OR d IS NULL
NOT (d <=> double('nan'))
p = 0.07 | p = 0.07D | p = '0.07' | p < 1.505 | p <= 1.505 | p > 1.505 | p >= -1.505 | p = 1.505
p != 1.505 | p = 100
p < 1e10 | p < 9999999999.99D | p > 1.5e0 | p IN (1.5, 1.51, 7) | p = 1.5BD
p BETWEEN 0.06 - 0.01 AND 0.06 + 0.01
p < CAST('NaN' AS DOUBLE) | p <= 99999999999 | p >= 1.51F | w = 1.5 | w = 5 | w > 0.00000000005 | w = 1e20
w < 1e0
w IN (5, 7) | w >= -1000000000000000000000000000
s = 'abc' | s < 'abd' | s LIKE 'ab%' | s NOT LIKE 'ab%' | s LIKE 'a_c' | s LIKE 'a\\%c'
s LIKE 'a/%%' ESCAPE '/'
s LIKE '%' | s NOT LIKE '%' | s LIKE '_x' | s LIKE '' | startswith(s, 'a%') | NOT startswith(s, 'ab')
s >= '😀'
s = 'it\\'s \\\\ %' | s = "abc" | s IN ('abc', 'ab', NULL) | s LIKE '%c' | s LIKE NULL | s = 'a\\nc'
s = 'it''s \\\\ %'
s = r'abc' | s = 'a' 'bc' | s > '\\u0061' | startswith(s, '')
t = DATE '2024-01-01' | t = '2024-1-1' | t = '2024' | t >= '2024-01' | t < TIMESTAMP '2024-01-01 12:00'
t = TIMESTAMP '2024-01-01 12:00' | t = TIMESTAMP '2024-01-01' | t > TIMESTAMP_NTZ '2024-01-01 00:00:01'
t <= DATE '2024-05-30' - INTERVAL '90' DAY | t = date('2024-01-01') | t = to_date('2024-01-02')
t IN ('2024', '2023-12-31')
t = DATE '2024-01-31' + INTERVAL 1 MONTH | t BETWEEN '2024' AND '2024-02-29' | t = '2024-01-01 10:00'
t <= '9999-12-31'
z = '2024-01-01' | z = '2024-01-01T12:00:00Z' | z > '2024-01-01 13:00:00+02:00'
z = TIMESTAMP '2024-01-01 12:00'
z < DATE '2024-01-01' | z >= TIMESTAMP_NTZ '2024-01-01 12:00:00.000001'
z = '2024-01-01 11:00:00 Europe/Berlin'
z = '2024-01-01 12:00:00.0000019' | z IN (TIMESTAMP '2024-01-01', TIMESTAMP '2024-07-01')
z > TIMESTAMP '2024-01-01 10'
n = '2024-01-01' | n = '2024-01-01 12:00:00+02:00' | n = TIMESTAMP_NTZ '2024-01-01 12:00'
n <= DATE '2024-01-01'
n = TIMESTAMP '2024-01-01 12:00:00+00:00' | n > timestamp('2024-01-01') | n < '2024'
n = TIMESTAMP_LTZ '2024-02-01'
b = X'6162' | b = 'ab' | b < X'80' | b >= X'FF' | b != X'' | b IN ('ab', 'abc') | b = X'A'
b = CAST('a' AS BINARY)
g | NOT g | g = 'true' | g IS TRUE | g IS NOT TRUE | g IS NOT FALSE | g < TRUE | g != FALSE | g <=> NULL
g IN ('yes', 'f')
NOT (g AND i = 5) | NOT (g OR i = 5) | i = NULL | NOT (i = NULL) | g AND NULL | g OR NULL | NOT (g AND NULL)
NOT (NOT (i > 1 AND (s LIKE 'a%' OR f IS NULL)) OR d = 0.1) | 1 = 1 | i IS NULL OR NOT i IS NULL
NOT i IN (1, 2, NULL)
i % 2 = 1 | i = l | upper(s) = 'ABC' | NOT (i = l) | s ILIKE 'AB%'
"""


EDGES = [*(f"{sign}{2**bits - 1}.5" for bits in (31, 63) for sign in ("", "-")), *["1e30", "-1e30"]]
EDGES += [str(sign * 2**bits + by) for bits in (31, 63) for sign in (1, -1) for by in (-1, 0)]


def _predicates() -> list[str]:
    stated = [text.strip() for line in PREDICATES.strip().splitlines() for text in line.split(" | ")]
    ops = ("<", "<=", ">", ">=", "=", "!=", "<=>")
    return stated + [f"{column} {op} {edge}" for column in "il" for op in ops for edge in EDGES]


def _rows() -> list[tuple[Any, ...]]:
    """Rows whose columns go through their values at different paces, with a null now and then."""
    rows: list[tuple[Any, ...]] = []
    for number in range(COUNT):
        cells: list[Any] = [number]
        for column, (_, _, values) in enumerate(COLUMNS.values()):
            at = (number * (2 * column + 1) + number // 8) % (len(values) + 1)
            cells.append(values[at] if at < len(values) else None)
        rows.append(tuple(cells))
    return rows


def _form(kind: str, value: Any) -> Any:
    """A value in the form of its column's type."""
    if value is None:
        return None
    match kind:
        case "date":
            return (value - dt.date(1970, 1, 1)).days
        case "timestamp" | "timestamptz":
            return (value - dt.datetime(1970, 1, 1, tzinfo=value.tzinfo)) // dt.timedelta(microseconds=1)
        case "decimal(12, 2)":
            return int(value.scaleb(2))
        case "decimal(38, 10)":
            return int(value.scaleb(10))
    return value


def test_as_spark_finds_them(spark: SparkSession) -> None:
    texts, rows = _predicates(), _rows()
    bound = [parse_predicate(text, FIELDS) for text in texts]
    schema = ", ".join(["id int", *(f"{name} {kind}" for name, (_, kind, _) in COLUMNS.items())])
    asked = [*texts, *map(spell, bound)]
    cases = [f"CASE WHEN {text} THEN 1 END" for text in asked]
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    found = {row[0]: row[1:] for row in frame.selectExpr("id", *cases).collect()}
    formed = [dict(zip(COLUMNS, map(_form, kinds(), row[1:]), strict=True)) for row in rows]
    wrong = []
    for at, (text, predicate) in enumerate(zip(texts, bound, strict=True)):
        truth = [found[number][at] == 1 for number in range(COUNT)]
        spelled = [found[number][at + len(texts)] == 1 for number in range(COUNT)]
        ours = [matches(predicate, row) for row in formed]
        exact = not any(opaque_parts(predicate))
        if spelled != truth or (exact and ours != truth):
            wrong.append((text, predicate, truth, ours, spelled))
    assert wrong == []
    assert sum(any(opaque_parts(predicate)) for predicate in bound) <= len(bound) // 8


def kinds() -> list[str]:
    return [kind for kind, _, _ in COLUMNS.values()]
