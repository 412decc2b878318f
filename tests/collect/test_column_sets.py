"""Column sets are fields of their own: the same members are the same field, whatever their order."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from rookery.collect.column_sets import column_set_field, column_set_fields, is_column_set
from rookery.model import Field, UsageError
from rookery.model.type_names import base_type, member_ids, member_types

A, B, C = Field(1, "a", "long"), Field(2, "b", "decimal(9, 2)"), Field(3, "c", "fixed[4]")
LIST = Field(5, "l.element", "int", repeated=True)
BELOW = Field(6, "s.x", "int")
SHAPE = Field(7, "shape", "geometry")
FIELDS = (A, B, C, LIST, BELOW, SHAPE)


def test_the_order_of_names_does_not_matter() -> None:
    found = {column_set_field(names, FIELDS) for names in permutations(("a", "b", "c"))}
    (field,) = found
    assert (field.name, field.parts, member_ids(field.type)) == ("a + b + c", ("a", "b", "c"), (1, 2, 3))
    assert member_types(field.type) == {1: "long", 2: "decimal(9, 2)", 3: "fixed[4]"}
    assert is_column_set(field)
    assert base_type(field.type) == "joint"


def test_other_members_or_types_are_another_set() -> None:
    promoted = replace(A, type="string")
    made = [
        column_set_field(("a", "b"), FIELDS),
        column_set_field(("a", "c"), FIELDS),
        column_set_field(("b", "c"), FIELDS),
        column_set_field(("a", "b", "c"), FIELDS),
        column_set_field(("a", "b"), (promoted, B)),
    ]
    assert len({field.id for field in made}) == len(made)
    assert all(field.id <= -2 for field in made)
    renamed = column_set_field(("z", "b"), (replace(A, name="z"), B))
    assert (renamed.id, renamed.type) == (made[0].id, made[0].type)  # by ids, not by names


def test_one_is_filled_if_a_member_is() -> None:
    assert not column_set_field(("a", "b"), FIELDS).filled
    assert column_set_field(("a", "b"), (A, replace(B, filled=True))).filled


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a",), "two different columns"),
        (("a", "a"), "two different columns"),
        (("a", "A"), "two different columns"),
        (("a", "nothing"), "there is no column 'nothing'"),
        (("a", "l.element"), "'l.element' cannot be counted together"),
        (("a", "s.x"), "'s.x' cannot be counted together"),
        (("a", "shape"), "'shape', a geometry, cannot"),
    ],
)
def test_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        column_set_field(names, FIELDS)


def test_by_ids_only_those_that_can_still_be_counted() -> None:
    wanted = [(1, 2), (1, 99), (1, 3, 99), (1, 5), (1, 6), (1, 7), (1,), (), (2, 1), (2, 3)]
    found = column_set_fields(wanted, FIELDS)
    assert [member_ids(field.type) for field in found] == [(1, 2), (2, 3)]
    assert found[0] == column_set_field(("a", "b"), FIELDS)


@pytest.mark.parametrize("field", [*FIELDS, Field(-5, "x", "long"), Field(5, "x", "joint(1:long, 2:int)")])
def test_other_fields_are_none(field: Field) -> None:
    assert not is_column_set(field)
