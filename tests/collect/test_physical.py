"""Which column of a file holds a field: by its id, else null throughout, or left to the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.collect.column_sets import column_set_field
from rookery.collect.physical import NeedsEngineError, PhysicalColumns
from rookery.io import open_source
from rookery.model import Field
from rookery.parquet import Leaf, read_footer
from tests.collect.files import write

A, B = Field(1, "renamed since", "long"), Field(2, "b", "string")
YOUNG = Field(7, "young", "long")


@pytest.fixture
def leaves(tmp_path: Path) -> list[Leaf]:
    path = write(tmp_path / "f.parquet", pa.table({"a": [1], "b": ["x"]}))
    with open_source(path, {}) as source:
        return list(read_footer(source, source.size).leaves)


def test_columns_are_found_by_their_ids(leaves: list[Leaf]) -> None:
    found = PhysicalColumns(leaves)
    assert [leaf.path for leaf in leaves] == [("a",), ("b",)]
    assert (found.leaf(A), found.leaf(B), found.highest_id) == (leaves[0], leaves[1], 2)
    both = column_set_field((A.name, "b"), [A, B])
    assert found.members(both) == (leaves[0], leaves[1])
    assert found.members(A) == (leaves[0],)


def test_a_column_that_the_file_lacks_is_null(leaves: list[Leaf]) -> None:
    found = PhysicalColumns(leaves)
    assert found.leaf(YOUNG) is None
    assert found.members(YOUNG) is None
    assert found.members(column_set_field(("b", "young"), [B, YOUNG])) is None


def test_one_that_has_a_value_all_the_same_needs_the_engine(leaves: list[Leaf]) -> None:
    found = PhysicalColumns(leaves)
    filled = replace(YOUNG, filled=True)
    for column in (filled, column_set_field(("b", "young"), [B, filled])):
        with pytest.raises(NeedsEngineError, match="has a default value, or one in the partition"):
            found.members(column)
    assert found.leaf(replace(A, filled=True)) == leaves[0]


def test_a_file_without_ids_needs_the_engine(leaves: list[Leaf]) -> None:
    with pytest.raises(NeedsEngineError, match="no field ids"):
        PhysicalColumns([replace(leaf, field_id=None) for leaf in leaves])
    assert PhysicalColumns([]).highest_id == 0  # of a file without columns
    some = PhysicalColumns([replace(leaves[0], field_id=None), leaves[1]])
    assert (some.leaf(A), some.leaf(B)) == (None, leaves[1])
