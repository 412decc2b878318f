"""Which rows a predicate is true of, against the plain evaluator."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from rookery.model import ALWAYS, NEVER, Compare, Field, Op, Opaque, UsageError
from rookery.values.row_filter import true_rows, true_values
from tests.prune import typed
from tests.where.naive import matches

ROUNDS = 30
N = 40


@pytest.mark.parametrize("kind", typed.KINDS)
def test_leaves(kind: str) -> None:
    rng = random.Random(f"leaves {kind}")
    field = Field(1, "c", kind)
    for _ in range(ROUNDS):
        values = typed.pool(rng, kind, 8)
        column = [None if rng.random() < 0.15 else rng.choice(values) for _ in range(N)]
        array, formed = typed.stored(kind, column), typed.arrow(kind, column)
        for _ in range(8):
            leaf = typed.leaf(rng, field, values)
            expected = [matches(leaf, {"c": value}) for value in column]
            assert true_rows(leaf, {1: array}.__getitem__, N).tolist() == expected, (leaf, column)
            if typed.is_leaf(leaf):
                assert true_values(leaf, formed).tolist() == expected, (leaf, column)


def test_trees() -> None:
    rng = random.Random("trees")
    for _ in range(3 * ROUNDS):
        fields = [Field(number, f"c{number}", kind) for number, kind in enumerate(rng.sample(typed.KINDS, 3))]
        pools = {field.name: typed.pool(rng, field.type, 4) for field in fields}
        rows = [{name: rng.choice((None, *values)) for name, values in pools.items()} for _ in range(N)]
        arrays = [typed.stored(field.type, [row[field.name] for row in rows]) for field in fields]
        predicate = typed.tree(rng, fields, pools, 3)
        found = true_rows(predicate, arrays.__getitem__, N)
        assert found.tolist() == [matches(predicate, row) for row in rows], predicate


@pytest.mark.parametrize("kind", typed.KINDS)
def test_no_rows_and_nulls_only(kind: str) -> None:
    rng = random.Random(kind)
    field = Field(1, "c", kind)
    for _ in range(20):
        leaf = typed.leaf(rng, field, typed.pool(rng, kind, 3))
        assert true_rows(leaf, lambda _: typed.stored(kind, []), 0).tolist() == []
        expected = [matches(leaf, {"c": None})] * 3
        assert true_rows(leaf, lambda _: pa.nulls(3, pa.null()), 3).tolist() == expected, leaf


def test_constants_and_what_is_not_understood() -> None:
    def none(number: int) -> pa.Array:
        raise AssertionError("no column is needed")

    assert true_rows(ALWAYS, none, 2).tolist() == [True, True]
    assert true_rows(NEVER, none, 2).tolist() == [False, False]
    with pytest.raises(UsageError, match="cannot be decided on rows here"):
        true_rows(Opaque("f(x)", "unknown"), none, 2)


def test_dictionaries_as_readers_give_them() -> None:
    texts = pa.array(["a", "b", None, "a"]).dictionary_encode()
    leaf = Compare(Field(1, "c", "string"), Op.EQ, "a")
    assert true_rows(leaf, lambda _: texts, 4).tolist() == [True, False, False, True]
