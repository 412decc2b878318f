"""Conditions in the encoding of the JVM: only literals of a column's own type are used."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from rookery.model import (
    ALWAYS,
    NEVER,
    And,
    Compare,
    Field,
    In,
    IsNull,
    Like,
    Op,
    Opaque,
    Or,
    Predicate,
)
from rookery.spark.attach.predicates import predicate_of

TYPES = (
    "int", "long", "double", "string", "decimal(9, 2)",
    "boolean", "timestamp", "timestamptz", "date", "binary",
)  # fmt: skip
FIELDS = {number: Field(number, kind.partition("(")[0], kind) for number, kind in enumerate(TYPES, 1)}
BY_NAME = {field.name: field for field in FIELDS.values()}


def column(name: str) -> dict[str, Any]:
    return {"column": BY_NAME[name].id}


def literal(kind: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "value": value}


def text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def op(name: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"op": name, "of": list(parts), **more}


def bound(*conditions: dict[str, Any]) -> Predicate:
    return predicate_of(conditions, FIELDS)


@pytest.mark.parametrize(
    "name, kind, value, expected",
    [
        ("int", "int", 5, 5),
        ("long", "bigint", 1 << 60, 1 << 60),
        ("double", "double", (2.5).hex(), 2.5),
        ("string", "string", text("é"), "é"),
        ("decimal", "decimal(9,2)", "1.50", 150),
        ("boolean", "boolean", True, True),
        ("timestamp", "timestamp_ntz", 7, 7),
        ("timestamptz", "timestamp", 7, 7),
        ("date", "date", -3, -3),
        ("binary", "binary", text("x"), b"x"),
    ],
)
def test_literals_of_the_columns_own_type(name: str, kind: str, value: Any, expected: Any) -> None:
    assert bound(op("=", column(name), literal(kind, value))) == Compare(BY_NAME[name], Op.EQ, expected)


@pytest.mark.parametrize(
    "name, kind, value",
    [
        ("int", "bigint", 5),
        ("long", "int", 5),
        ("double", "float", (2.5).hex()),
        ("decimal", "decimal(10,2)", "1.50"),
        ("timestamp", "timestamp", 7),
        ("timestamptz", "timestamp_ntz", 7),
        ("timestamptz", "date", 7),
        ("string", "string collate UNICODE_CI", text("x")),
        ("string", "string", base64.b64encode(b"\xff").decode()),
    ],
)
def test_literals_of_another_type_are_left_to_spark(name: str, kind: str, value: Any) -> None:
    for compared in ("=", "<", "<=>", "<>"):
        assert isinstance(bound(op(compared, column(name), literal(kind, value))), Opaque)


@pytest.mark.parametrize(
    "name, plain, flipped, negated",
    [
        ("=", Op.EQ, Op.EQ, Op.NE),
        ("<>", Op.NE, Op.NE, Op.EQ),
        ("<", Op.LT, Op.GT, Op.GE),
        ("<=", Op.LE, Op.GE, Op.GT),
        (">", Op.GT, Op.LT, Op.LE),
        (">=", Op.GE, Op.LE, Op.LT),
    ],
)
def test_comparisons_either_way_and_negated(name: str, plain: Op, flipped: Op, negated: Op) -> None:
    sides = column("int"), literal("int", 5)
    field = BY_NAME["int"]
    assert bound(op(name, *sides)) == Compare(field, plain, 5)
    assert bound(op(name, *reversed(sides))) == Compare(field, flipped, 5)
    assert bound(op("NOT", op(name, *sides))) == Compare(field, negated, 5)
    assert bound(op("NOT", op("NOT", op(name, *sides)))) == Compare(field, plain, 5)


def test_nulls() -> None:
    field, null = BY_NAME["int"], literal("int", None)
    assert bound(op("=", column("int"), null)) == NEVER
    assert bound(op("NOT", op("=", column("int"), null))) == NEVER
    assert bound(op("<=>", column("int"), null)) == IsNull(field)
    assert bound(op("NOT", op("<=>", column("int"), literal("int", 5)))) == Or(
        (Compare(field, Op.NE, 5), IsNull(field))
    )
    assert bound(op("IS_NULL", column("int"))) == IsNull(field)
    assert bound(op("NOT", op("IS_NULL", column("int")))) == IsNull(field, negated=True)
    assert bound(op("IS_NOT_NULL", column("int"))) == IsNull(field, negated=True)


def test_lists() -> None:
    field = BY_NAME["int"]
    assert bound(op("IN", column("int"), type="int", values=[1, 2, None])) == In(field, (1, 2))
    listed = op("IN", column("int"), type="int", values=[1, 2])
    assert bound(op("NOT", listed)) == In(field, (1, 2), negated=True)
    assert bound(op("NOT", op("IN", column("int"), type="int", values=[1, None]))) == NEVER
    assert isinstance(bound(op("IN", column("int"), type="bigint", values=[1])), Opaque)


def test_booleans_and_prefixes() -> None:
    field = BY_NAME["boolean"]
    assert bound(column("boolean")) == Compare(field, Op.EQ, True)
    assert bound(op("NOT", column("boolean"))) == Compare(field, Op.EQ, False)
    assert bound(op("BOOLEAN_EXPRESSION", column("boolean"))) == Compare(field, Op.EQ, True)
    prefix = bound(op("STARTS_WITH", column("string"), literal("string", text("ab"))))
    assert isinstance(prefix, Like)
    assert prefix.prefix == "ab"


def test_what_is_not_understood_does_not_weaken_the_rest() -> None:
    known = op("=", column("int"), literal("int", 5))
    foreign = {"opaque": "rand() < 0.5"}
    assert bound(op("AND", known, foreign)) == And(
        (Compare(BY_NAME["int"], Op.EQ, 5), Opaque("rand() < 0.5", "not understood"))
    )
    assert isinstance(bound(op("NOT", op("OR", known, foreign))), And)
    assert bound(op("ALWAYS_TRUE")) == ALWAYS
    assert bound(op("NOT", op("ALWAYS_TRUE"))) == NEVER
    assert isinstance(bound(op("=", op("CAST", column("int")), literal("int", 5))), Opaque)
    assert isinstance(bound(op("=", {"column": 99}, literal("int", 5))), Opaque)
    assert isinstance(bound(op("=", column("int"), column("long"))), Opaque)


def test_fields_in_lists_are_not_compared() -> None:
    inside = {1: Field(1, "list.element", "int", repeated=True)}
    assert isinstance(predicate_of([op("=", {"column": 1}, literal("int", 5))], inside), Opaque)
