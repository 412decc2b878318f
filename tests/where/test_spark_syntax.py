"""What Spark's parser refuses is refused here too, and collations are left to Spark."""

from __future__ import annotations

import pytest

from rookery.model import Opaque, UsageError
from rookery.model.predicate import opaque_parts
from rookery.model.table import Field
from rookery.where.sql_text import parse_predicate

FIELDS = [
    Field(1, "id", "long"),
    Field(2, "s", "string"),
    Field(3, "b", "boolean"),
    Field(4, "f", "double"),
    Field(5, "ts", "timestamptz"),
    Field(6, "bin", "binary"),
    Field(7, "d", "date"),
]

REFUSED = [
    "id IN (5,)",
    "id IN (5, 6, )",
    "id IN (,5)",
    "id IN (5,,6)",
    "id NOT IN (5,)",
    "s = concat('V', '5',)",
    "startswith(s, 'V',)",
    "isnull(id,)",
    "coalesce(id, 5,) = 5",
    "s LIKE ANY ('v%',)",
    "id = array(5,)[0]",
    "id IN [5]",
    "s ~~ 'v%'",
    "id ISNULL",
    "b NOTNULL",
    "id NOT NULL",
    "id BETWEEN ASYMMETRIC 3 AND 5",
    "id IN (5) IS TRUE",
    "s LIKE 'v%' IS NULL",
    "id /*+ hint */ = 5",
    "bin = 0x0f",
    "starts_with(s, 'v')",
    "is_nan(f)",
    "id = safe_cast('5' AS int)",
    "id = convert('5', int)",
    "ts = timestamptz'2024-01-03'",
    "id = bigint'5'",
    *(
        f"id = cast('5' AS {kind})"
        for kind in (
            "int4", "int8", "int64", "int(3)", "number", "float4", "float8", "double precision", "float(24)",
            "bool", "text", "varchar", "char", "character varying(10)", "string(10)", "clob", "binary(3)",
            "timestamptz", "timestamp(3)", "timestamp with time zone", "timestamp_ntz(3)", "`int`",
            "decimal(5,2,1)",
        )
    ),
    "id = '5'::int4",
    "id IN (cast('5' AS int), cast('6' AS int8))",
]  # fmt: skip

TAKEN = [
    "id IN (5, 6)",
    "NOT isnull(id) AND isnotnull(s)",
    "id IS NOT NULL",
    "id = 5 AND NOT NULL",
    "(id IN (5)) IS TRUE",
    "NOT id IN (5)",
    "id = 5L",
    "f = 2.5BD",
    "id = cast('5' AS decimal(5, 2))",
    "id = '5'::decimal(5,2)::int",
    "s = cast('v5' AS varchar(10))",
    "s = cast(5 AS string)",
    "id = cast(cast('5' AS int) AS bigint)",
    "id = try_cast('5' AS short)",
    "ts = timestamp_ltz'2024-01-03'",
    "d = date'2024-01-01' + interval '2' day",
    "bin = X'0F'",
    "id BETWEEN 3 AND 5 AND b",
    "id = 5 /* a comment */",
    "s = ',)' OR s = '(,'",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_spark_refuses(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_predicate(text, FIELDS)
    assert caught.value.hint


def test_the_place_is_told() -> None:
    with pytest.raises(UsageError, match="line 2, column 9: a comma without a value beside it"):
        parse_predicate("b AND\nid IN (5,)", FIELDS)


@pytest.mark.parametrize("text", TAKEN)
def test_what_spark_takes(text: str) -> None:
    parse_predicate(text, FIELDS)


@pytest.mark.parametrize(
    "text",
    [
        "s = cast('V5' AS string COLLATE utf8_lcase)",
        "s = try_cast('V5' AS string COLLATE utf8_lcase)",
        "s = cast(NULL AS string COLLATE utf8_lcase)",
        "s = 'V5' COLLATE utf8_lcase",
        "s COLLATE utf8_lcase = 'v5'",
        "s = collate('V5', 'utf8_lcase')",
        "collate(s, 'utf8_lcase') = 'v5'",
        "s = 'v5'::string COLLATE utf8_lcase",
        "s = concat('v', '5' COLLATE utf8_lcase)",
        "s IN ('x', 'V5' COLLATE utf8_lcase)",
        "s LIKE 'v%' COLLATE utf8_lcase",
        "s LIKE cast('v%' AS string COLLATE utf8_lcase)",
        "startswith(s, 'v' COLLATE utf8_lcase)",
        "s BETWEEN 'a' COLLATE utf8_lcase AND 'b'",
        "'V5' COLLATE utf8_lcase = 'v5'",
        "NOT (s <=> 'V5' COLLATE utf8_lcase)",
    ],
)
def test_collations_are_left_to_spark(text: str) -> None:
    assert isinstance(parse_predicate(text, FIELDS), Opaque)
    assert list(opaque_parts(parse_predicate(f"id = 5 AND {text}", FIELDS)))
