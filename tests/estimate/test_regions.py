"""Regions: the values that a predicate accepts are those that a test of each value accepts."""

from __future__ import annotations

import random

import pytest

from rookery.estimate.regions import FIRST, LAST, Interval, Region, after, before, key_of, region_of
from rookery.model import Compare, Field, In, IsNull, Op, Predicate, Value, all_of, any_of, leaves_of
from tests.prune import typed
from tests.where.naive import matches

NUMBER = Field(1, "x", "int")


def accepts(region: Region, value: Value | None) -> bool:
    if value is None:
        return region.nulls
    if isinstance(value, float) and value != value:
        return region.nans
    key = key_of(value)
    return any(each.start <= before(key) and after(key) <= each.end for each in region.intervals)


@pytest.mark.parametrize("kind", ["int", "double", "string", "decimal(9, 0)", "boolean", "binary"])
def test_a_region_accepts_what_the_predicate_accepts(kind: str) -> None:
    rng = random.Random(kind)
    field = Field(1, "x", kind)
    pool = typed.pool(rng, kind, 12)
    checked = 0
    for _ in range(400):
        predicate: Predicate = typed.tree(rng, [field], {"x": pool}, 2)
        region = region_of(predicate)
        if region is None:  # a pattern, or a predicate that says nothing of the column
            assert not list(leaves_of(predicate)) or any(
                getattr(leaf, "regex", None) is not None for leaf in leaves_of(predicate)
            )
            continue
        for value in (*pool, None):
            assert accepts(region, value) == matches(predicate, {"x": value}), (predicate, value)
            checked += 1
    assert checked > 2000


def test_two_comparisons_are_one_interval() -> None:
    between = all_of(Compare(NUMBER, Op.GT, 5), Compare(NUMBER, Op.LT, 9))
    assert region_of(between) == Region((Interval(before(6), after(8)),))
    assert region_of(all_of(Compare(NUMBER, Op.GT, 5), Compare(NUMBER, Op.LT, 7))) == Region(
        (Interval(before(6), after(6)),)
    )
    assert region_of(all_of(Compare(NUMBER, Op.GT, 5), Compare(NUMBER, Op.LT, 4))) == Region(())


def test_what_is_excluded_is_taken_from_one_range() -> None:
    region = region_of(In(NUMBER, (3, 7), negated=True))
    assert region is not None
    # Whole numbers: up to 2, 4 to 6, from 8 on.
    assert [each.start for each in region.intervals] == [FIRST, before(4), before(8)]
    double = Field(1, "x", "double")
    excluded = region_of(Compare(double, Op.NE, 4.0))
    assert excluded is not None
    assert excluded.parts() == ([Interval(FIRST, LAST)], [], [4.0])
    assert region_of(any_of(IsNull(NUMBER), Compare(NUMBER, Op.EQ, 1))) == Region(
        (Interval(before(1), after(1)),), nulls=True
    )
