"""PyIceberg's expressions, against the same in SQL."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from uuid import UUID

import pytest
from pyiceberg import expressions as ice

from rookery.model import Field, Opaque, UsageError
from rookery.tables.iceberg.expressions import predicate_from_expression
from rookery.where.sql_text import parse_predicate

FIELDS = (
    Field(1, "n", "int"),
    Field(2, "x", "double"),
    Field(3, "s", "string"),
    Field(4, "user.Name", "string"),
    Field(5, "day", "date"),
    Field(6, "at", "timestamptz"),
    Field(7, "local", "timestamp"),
    Field(8, "price", "decimal(12, 2)"),
    Field(9, "u", "uuid"),
    Field(10, "b", "binary"),
    Field(11, "flag", "boolean"),
    Field(12, "tags.element", "string", repeated=True),
    Field(13, "odd.name", "int", path=("odd.name",)),
    Field(14, "t", "time"),
    Field(15, "big", "long"),
)
SOME_UUID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")

CASES = [
    (ice.EqualTo("N", 5), "n = 5"),
    (ice.NotEqualTo("n", 5), "n != 5"),
    (ice.LessThan("n", 5), "n < 5"),
    (ice.LessThanOrEqual("n", 5), "n <= 5"),
    (ice.GreaterThan("n", 5), "n > 5"),
    (ice.GreaterThanOrEqual("n", 5), "n >= 5"),
    (ice.Not(ice.LessThan("n", 5)), "NOT n < 5"),
    (ice.In("n", {1, 2}), "n IN (1, 2)"),
    (ice.In("n", {1}), "n = 1"),
    (ice.NotIn("n", {1, 2}), "n NOT IN (1, 2)"),
    (ice.Not(ice.In("n", {1, 2})), "NOT n IN (1, 2)"),
    (ice.IsNull("n"), "n IS NULL"),
    (ice.NotNull("n"), "n IS NOT NULL"),
    (ice.Not(ice.IsNull("n")), "n IS NOT NULL"),
    (ice.IsNaN("x"), "isnan(x)"),
    (ice.NotNaN("x"), "NOT isnan(x)"),
    (ice.StartsWith("s", "ab%"), "startswith(s, 'ab%')"),
    (ice.NotStartsWith("s", "ab"), "s NOT LIKE 'ab%'"),
    (
        ice.And(ice.EqualTo("n", 1), ice.Or(ice.IsNull("x"), ice.EqualTo("s", "a"))),
        "n=1 AND (x IS NULL OR s='a')",
    ),
    (ice.Not(ice.And(ice.EqualTo("n", 1), ice.EqualTo("s", "a"))), "NOT (n = 1 AND s = 'a')"),
    (ice.AlwaysTrue(), "TRUE"),
    (ice.AlwaysFalse(), "FALSE"),
    (ice.Not(ice.AlwaysTrue()), "FALSE"),
    (ice.EqualTo("user.name", "Ann"), "user.name = 'Ann'"),
    (ice.EqualTo("odd.name", 5), "`odd.name` = 5"),
    (ice.EqualTo("day", dt.date(2024, 1, 31)), "day = DATE '2024-01-31'"),
    (ice.EqualTo("day", "2024-01-31"), "day = DATE '2024-01-31'"),
    (ice.EqualTo("at", dt.datetime(2024, 1, 31, 1, tzinfo=dt.UTC)), "at = TIMESTAMP '2024-01-31 01:00:00Z'"),
    (ice.EqualTo("local", dt.datetime(2024, 1, 31, 1)), "local = TIMESTAMP_NTZ '2024-01-31 01:00:00'"),
    (ice.EqualTo("t", dt.time(1, 2, 3)), "t = TIME '01:02:03'"),
    (ice.EqualTo("price", Decimal("1.5")), "price = 1.5"),
    (ice.EqualTo("u", SOME_UUID), f"u = '{SOME_UUID}'"),
    (ice.EqualTo("u", SOME_UUID.bytes), f"u = '{SOME_UUID}'"),
    (ice.EqualTo("b", b"\xab"), "b = X'AB'"),
    (ice.EqualTo("flag", True), "flag"),
]


@pytest.mark.parametrize(("expression", "text"), CASES, ids=[text for _, text in CASES])
def test_same_as_sql(expression: ice.BooleanExpression, text: str) -> None:
    assert predicate_from_expression(expression, FIELDS) == parse_predicate(text, FIELDS)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (ice.EqualTo("big", 1e18), "big = CAST('1e+18' AS DOUBLE)"),
        (
            ice.Not(ice.In("big", {1e18, 2e18})),
            "NOT (big IN (CAST('1e+18' AS DOUBLE), CAST('2e+18' AS DOUBLE)))",
        ),
        (ice.StartsWith("n", "5"), "startswith(n, '5')"),
        (ice.IsNull("user"), "user IS NULL"),
        (ice.IsNaN("n"), "isnan(n)"),
    ],
)
def test_opaque(expression: ice.BooleanExpression, text: str) -> None:
    found = predicate_from_expression(expression, FIELDS)
    assert isinstance(found, Opaque)
    assert found.text == text


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (ice.EqualTo("m", 5), "no column 'm'"),
        (ice.EqualTo("s", 5), "type mismatch"),
        (ice.EqualTo("user", 5), "is a struct"),
        (ice.EqualTo("tags.element", "x"), "is in a list or map"),
    ],
)
def test_refused(expression: ice.BooleanExpression, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        predicate_from_expression(expression, FIELDS)


def test_deep_expressions() -> None:
    expression: ice.BooleanExpression = ice.EqualTo("n", 0)
    for number in range(1, 2000):
        expression = ice.Or(expression, ice.EqualTo("n", number))
    assert len(predicate_from_expression(expression, FIELDS).parts) == 2000  # type: ignore[union-attr]
