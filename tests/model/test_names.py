"""Names of tables."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rookery.model import TableName, UsageError, quote_part, split_name

_PART = st.text(min_size=1, max_size=20)


@given(catalog=_PART, namespace=st.lists(_PART, min_size=1, max_size=4), table=_PART)
def test_round_trip(catalog: str, namespace: list[str], table: str) -> None:
    name = TableName(catalog, tuple(namespace), table)
    assert TableName.parse(str(name), default_catalog=catalog) == name
    assert TableName.parse(str(name), default_catalog="another", catalogs=[catalog]) == name


@given(st.lists(_PART, min_size=1, max_size=5))
def test_quoted_parts_split_again(parts: list[str]) -> None:
    assert split_name(".".join(map(quote_part, parts))) == tuple(parts)


@given(st.text(max_size=30))
def test_any_text_is_a_name_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        name = TableName.parse(text, default_catalog="lake")
        assert name.table
        assert all(name.namespace)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db.t", TableName("lake", ("db",), "t")),
        ("lake.db.t", TableName("lake", ("db",), "t")),
        ("prod.db.t", TableName("prod", ("db",), "t")),
        ("a.b.t", TableName("lake", ("a", "b"), "t")),
        ("prod.t", TableName("lake", ("prod",), "t")),
        ("`prod`.`d.b`.`t``s`", TableName("prod", ("d.b",), "t`s")),
        ("db.two words", TableName("lake", ("db",), "two words")),
    ],
)
def test_parse(text: str, expected: TableName) -> None:
    assert TableName.parse(text, default_catalog="lake", catalogs=["prod"]) == expected


@pytest.mark.parametrize(
    "text", ["", "t", ".", "db.", ".t", "db..t", "`db.t", "db.`t", "a`b.c", "``.t", "`a`b.c"]
)
def test_bad_names(text: str) -> None:
    with pytest.raises(UsageError, match="name") as caught:
        TableName.parse(text, default_catalog="lake")
    assert caught.value.hint


def test_identifier() -> None:
    assert TableName("c", ("a", "b"), "t").identifier == ("a", "b", "t")
