"""Names select their column and all leaves below it, and nothing else."""

from __future__ import annotations

import pytest

from rookery.collect.choose import Choice, choose, columns_named, selects
from rookery.model import Field, UsageError

FIELDS = (
    Field(1, "id", "long"),
    Field(2, "identity", "string"),
    Field(4, "place.x", "double"),
    Field(5, "place.names.element", "string", repeated=True),
    Field(6, "shape", "geometry"),
    Field(7, "price", "decimal(9, 2)"),
)


def names(fields: tuple[Field, ...]) -> list[str]:
    return [field.name for field in fields]


def test_without_names_all_columns_that_can_be_counted() -> None:
    chosen, unable = choose(FIELDS, Choice())
    assert names(chosen) == ["id", "identity", "place.x", "place.names.element", "price"]
    assert names(unable) == ["shape"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice(columns=("id",)), ["id"]),  # not `identity`, which begins with it
        (Choice(columns=("price", "id")), ["id", "price"]),  # in the order of the table
        (Choice(columns=("place",)), ["place.x", "place.names.element"]),
        (Choice(columns=("place.names",)), ["place.names.element"]),
        (Choice(columns=("place",), exclude=("place.x",)), ["place.names.element"]),
        (Choice(exclude=("place", "shape", "id")), ["identity", "price"]),
        (Choice(columns=("id", "id")), ["id"]),
    ],
)
def test_what_names_select(choice: Choice, expected: list[str]) -> None:
    assert names(choose(FIELDS, choice)[0]) == expected


_COLUMNS = "id, identity, place.x"


@pytest.mark.parametrize(
    "wrong, hint",
    [
        ("nothing", _COLUMNS),
        ("place.y", "did you mean place.x?"),
        ("i", "did you mean id?"),
        ("ID", _COLUMNS),
        ("", _COLUMNS),
    ],
)
def test_a_name_that_selects_nothing(wrong: str, hint: str) -> None:
    for choice in (Choice(columns=(wrong,)), Choice(exclude=(wrong,))):
        with pytest.raises(UsageError, match="there is no column") as caught:
            choose(FIELDS, choice)
        assert hint in str(caught.value.hint)


def test_nothing_is_left() -> None:
    with pytest.raises(UsageError, match="no column is left"):
        choose(FIELDS, Choice(columns=("place",), exclude=("place",)))


def test_only_columns_that_cannot_be_counted_are_no_error() -> None:
    chosen, unable = choose(FIELDS, Choice(columns=("shape",)))
    assert (chosen, names(unable)) == ((), ["shape"])


def test_column_sets_follow_the_columns() -> None:
    chosen, _ = choose(FIELDS, Choice(columns=("id",), column_sets=(("price", "id"), ("id", "identity"))))
    assert names(chosen) == ["id", "id + price", "id + identity"]
    assert all(field.id < 0 for field in chosen[1:])


def test_a_name_with_a_dot_of_its_own() -> None:
    dotted = Field(9, "a.b", "int", path=("a.b",))
    assert columns_named([dotted], ["a.b"]) == [dotted]
    assert selects("a.b", dotted)
    assert not selects("a.b.c", dotted)
