"""The values of one column that a predicate accepts: intervals, and whether null and NaN are among them.

So `x > 5 AND x < 9` is one interval, and `x = 1 OR x = 1` one value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

from rookery.model import (
    And,
    Compare,
    In,
    IsNaN,
    IsNull,
    Leaf,
    Like,
    Op,
    Or,
    Predicate,
    Value,
    leaves_of,
)
from rookery.model.type_names import base_type
from rookery.prune.bounds import successor
from rookery.values.canonical import is_float

Key: TypeAlias = Any
"""A value in the order of its type: numbers as they are, text and binaries as bytes."""

Cut: TypeAlias = tuple[Any, ...]
"""A place between values: before all, before or after one, or after all; tuples sort as these do."""

FIRST: Cut = (-1,)
LAST: Cut = (1,)
_WHOLE_NUMBERS = frozenset(
    {"boolean", "int", "long", "date", "time", "decimal", "timestamp", "timestamptz"}
    | {"timestamp_ns", "timestamptz_ns"}
)


def before(key: Key) -> Cut:
    """Return the place before a value."""
    return (0, key, 0)


def after(key: Key) -> Cut:
    """Return the place after a value."""
    return (0, key, 1)


@dataclass(frozen=True, slots=True)
class Interval:
    """The values between two places."""

    start: Cut = FIRST
    end: Cut = LAST

    @property
    def is_point(self) -> bool:
        """Whether it is a single value."""
        return len(self.start) > 1 and self.end == after(self.start[1]) and self.start[2] == 0


@dataclass(frozen=True, slots=True)
class Region:
    """Disjoint intervals in ascending order, and whether null and NaN are accepted too."""

    intervals: tuple[Interval, ...]
    nulls: bool = False
    nans: bool = False

    @property
    def points(self) -> tuple[Key, ...] | None:
        """The values, if there are only single ones, and no null or NaN."""
        if self.nulls or self.nans or not all(each.is_point for each in self.intervals):
            return None
        return tuple(each.start[1] for each in self.intervals)

    def parts(self) -> tuple[list[Interval], list[Key], list[Key]]:
        """Return ranges, single values in addition to them, and single values that the ranges lack.

        >>> Region((Interval(FIRST, before(4)), Interval(after(4)))).parts()
        ([Interval(start=(-1,), end=(1,))], [], [4])
        >>> Region((Interval(FIRST, after(3)), Interval(before(5)))).parts()
        ([Interval(start=(-1,), end=(1,))], [], [4])
        """
        ranges: list[Interval] = []
        lacking: list[Key] = []
        added = [each.start[1] for each in self.intervals if each.is_point]
        for each in self.intervals:
            if each.is_point:
                continue
            excluded = _only_value_between(ranges[-1].end, each.start) if ranges else None
            if excluded is not None:
                lacking.append(excluded)
                ranges[-1] = Interval(ranges[-1].start, each.end)
            else:
                ranges.append(each)
        return ranges, added, lacking


def _only_value_between(end: Cut, start: Cut) -> Key | None:
    """The value that alone lies between two intervals; None if there are more."""
    if len(end) == 1 or len(start) == 1:
        return None
    (_, last, last_is_within), (_, first, first_is_excluded) = end, start
    if last == first and first_is_excluded and not last_is_within:
        return first
    # Intervals of whole numbers include their ends.
    is_whole = isinstance(first, int) and last_is_within and not first_is_excluded
    return first - 1 if is_whole and first - last == 2 else None


EVERY_VALUE = (Interval(),)


def region_of(predicate: Predicate) -> Region | None:
    """Return the values that a predicate on one column accepts; None if they are not intervals."""
    if isinstance(predicate, And | Or):
        parts = [region_of(part) for part in predicate.parts]
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return None
        joined = _intersection(known) if isinstance(predicate, And) else _union(known)
        kind = next(leaf.field.type for leaf in leaves_of(predicate))
        return _normal(kind, joined)
    if isinstance(predicate, Leaf):
        region = _region(predicate)
        return None if region is None else _normal(predicate.field.type, region)
    return None


def key_of(value: Value) -> Key:
    """Return a predicate's value as it is ordered."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return int(value) if isinstance(value, bool) else value


def prefix_region(prefix: str, *, negated: bool = False) -> Region:
    """Return the texts that begin with a prefix, or those that do not."""
    key = key_of(prefix)
    next_key = successor(key)
    end = LAST if next_key is None else before(next_key)
    if not negated:
        return Region((Interval(before(key), end),))
    return Region(tuple(_nonempty((Interval(FIRST, before(key)), Interval(end, LAST)))))


def _region(leaf: Leaf) -> Region | None:
    if isinstance(leaf, IsNull):
        return Region(EVERY_VALUE, nans=True) if leaf.negated else Region((), nulls=True)
    if isinstance(leaf, IsNaN):
        return Region(EVERY_VALUE, nulls=True) if leaf.negated else Region((), nans=True)
    if isinstance(leaf, In):
        return _listed(leaf)
    if isinstance(leaf, Like):
        return None if leaf.regex is not None else prefix_region(leaf.prefix, negated=leaf.negated)
    return _compared(leaf)


def _compared(leaf: Compare) -> Region:
    if isinstance(leaf.value, float) and math.isnan(leaf.value):
        numbers = EVERY_VALUE if leaf.op in (Op.LT, Op.LE, Op.NE) else ()
        return Region(numbers, nans=leaf.op in (Op.EQ, Op.LE, Op.GE))
    key = key_of(leaf.value)
    match leaf.op:
        case Op.EQ:
            return Region((Interval(before(key), after(key)),))
        case Op.NE:
            return Region(_without((key,)), nans=True)
        case Op.LT:
            return Region((Interval(FIRST, before(key)),))
        case Op.LE:
            return Region((Interval(FIRST, after(key)),))
        case Op.GT:
            return Region((Interval(after(key), LAST),), nans=True)  # NaN is the greatest
    return Region((Interval(before(key), LAST),), nans=True)


def _listed(leaf: In) -> Region:
    numbers = [v for v in leaf.values if not (isinstance(v, float) and math.isnan(v))]
    keys = tuple(sorted({key_of(value) for value in numbers}))
    has_nan = len(numbers) < len(leaf.values)
    if leaf.negated:
        return Region(_without(keys), nans=not has_nan)
    return Region(tuple(Interval(before(key), after(key)) for key in keys), nans=has_nan)


def _without(keys: tuple[Key, ...]) -> tuple[Interval, ...]:
    starts = (FIRST, *map(after, keys))
    ends = (*map(before, keys), LAST)
    return tuple(Interval(start, end) for start, end in zip(starts, ends, strict=True))


def _intersection(regions: list[Region]) -> Region:
    return reduce(_both, regions)


def _both(first: Region, second: Region) -> Region:
    found = []
    left = right = 0
    while left < len(first.intervals) and right < len(second.intervals):
        one, other = first.intervals[left], second.intervals[right]
        found.append(Interval(max(one.start, other.start), min(one.end, other.end)))
        if one.end <= other.end:
            left += 1
        else:
            right += 1
    return Region(tuple(_nonempty(found)), first.nulls and second.nulls, first.nans and second.nans)


def _union(regions: list[Region]) -> Region:
    merged: list[Interval] = []
    for each in sorted((each for region in regions for each in region.intervals), key=_start):
        if merged and each.start <= merged[-1].end:
            merged[-1] = Interval(merged[-1].start, max(merged[-1].end, each.end))
        else:
            merged.append(each)
    return Region(tuple(merged), any(r.nulls for r in regions), any(r.nans for r in regions))


def _start(interval: Interval) -> Cut:
    return interval.start


def _nonempty(intervals: Iterable[Interval]) -> Iterator[Interval]:
    return (each for each in intervals if each.start < each.end)


def _normal(kind: str, region: Region) -> Region:
    """Intervals of whole numbers end at whole numbers: `x > 5 AND x < 7` is 6. Only floats have NaN."""
    nans = region.nans and is_float(kind)
    if base_type(kind) not in _WHOLE_NUMBERS:
        return Region(region.intervals, region.nulls, nans)
    moved = (Interval(_whole(each.start, up=True), _whole(each.end, up=False)) for each in region.intervals)
    return Region(tuple(_nonempty(moved)), region.nulls, nans)


def _whole(cut: Cut, *, up: bool) -> Cut:
    if len(cut) == 1:
        return cut
    _, key, side = cut
    if up:
        return before(key + 1) if side else cut
    return cut if side else after(key - 1)
