"""What bounds and counts prove: never that a row is missing which is there."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from rookery.model import Compare, Field, In, IsNaN, IsNull, Leaf, Like, Op, Value
from rookery.prune.bounds import UNKNOWN, Bounds, might_match, must_match
from rookery.values.row_filter import true_values
from tests.prune import typed
from tests.where.naive import matches, ordered

ROUNDS = 30
UNITS = 12
Unit = list[Value | None]


def units(rng: random.Random, values: Sequence[Value]) -> list[Unit]:
    """Units of few values each: empty ones, nulls alone, NaN alone, one value alone among them."""
    found: list[Unit] = []
    for _ in range(UNITS):
        some = rng.sample(list(values), rng.randrange(1, 4))
        found.append([rng.choice((None, *some)) for _ in range(rng.randrange(8))])
        if rng.random() < 0.2:
            found[-1] = [rng.choice((None, some[0]))] * rng.randrange(1, 3)
    return found


def numbers(unit: Unit) -> list[Any]:
    return [value for value in unit if value is not None and value == value]


def extremes(unit: Unit) -> tuple[Any, Any]:
    found = sorted(numbers(unit), key=ordered)
    return (found[0], found[-1]) if found else (None, None)


def counts(unit: Unit) -> tuple[int, int, int]:
    nulls = sum(value is None for value in unit)
    return len(unit), nulls, len(unit) - nulls - len(numbers(unit))


def tight(kind: str, given: Sequence[Unit]) -> Bounds:
    ends = [extremes(unit) for unit in given]
    lower, upper = (typed.arrow(kind, [end[side] for end in ends]) for side in (0, 1))
    return Bounds(
        lower, upper, *(np.array(column, np.int64) for column in zip(*map(counts, given), strict=True))
    )


def loose(rng: random.Random, kind: str, given: Sequence[Unit]) -> Bounds:
    """Bounds as writers leave them: cut, widened, or not there; counts that may be missing."""
    lower, upper, known = [], [], []
    for unit in given:
        low, high = extremes(unit)
        width = rng.choice((1, 2, 16))
        if isinstance(low, str):
            low, high = cut_text(low, width), raise_text(high, width)
        elif isinstance(low, bytes) and kind == "binary":
            low, high = low[:width], raise_bytes(high, width)
        if low is not None and rng.random() < 0.2:
            low = min(low, typed.value(rng, kind), key=ordered)
        if high is not None and rng.random() < 0.2:
            other = typed.value(rng, kind)
            high = max(high, other, key=ordered) if other == other else high
        if low == 0 and isinstance(low, float):
            low = rng.choice((0.0, -0.0))
        lower.append(None if rng.random() < 0.2 or low != low else low)
        upper.append(None if rng.random() < 0.2 else high)
        known.append([UNKNOWN if rng.random() < 0.3 else count for count in counts(unit)])
        if not kind.startswith(("float", "double")):
            known[-1][2] = 0
    ends = (typed.arrow(kind, lower), typed.arrow(kind, upper))
    return Bounds(*ends, *(np.array(column, np.int64) for column in zip(*known, strict=True)))


def cut_text(text: str, width: int) -> str:
    return text[:width]


def raise_text(text: str, width: int) -> str | None:
    """As Iceberg cuts an upper bound: the last letter that can be is raised, past the surrogates."""
    if len(text) <= width:
        return text
    for place in range(width - 1, -1, -1):
        code = ord(text[place]) + 1
        code = 0xE000 if 0xD800 <= code < 0xE000 else code
        if code <= 0x10FFFF:
            return text[:place] + chr(code)
    return None


def raise_bytes(data: bytes, width: int) -> bytes | None:
    if len(data) <= width:
        return data
    kept = data[:width].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def asked(rng: random.Random, kind: str) -> Iterator[tuple[Leaf, Bounds, list, np.ndarray, np.ndarray]]:  # type: ignore[type-arg]
    """Yield leaves with the bounds of units, the units, and in which unit each row lies and if it matches."""
    field = Field(1, "c", kind)
    for _ in range(ROUNDS):
        values = typed.pool(rng, kind, 8)
        given = units(rng, values)
        everything = typed.arrow(kind, [value for unit in given for value in unit])
        home = np.repeat(np.arange(len(given)), [len(unit) for unit in given])
        for bounds in (tight(kind, given), loose(rng, kind, given)):
            for _ in range(8):
                leaf = typed.leaf(rng, field, values)
                if isinstance(leaf, Leaf):
                    yield leaf, bounds, given, home, true_values(leaf, everything)


@pytest.mark.parametrize("kind", typed.KINDS)
def test_a_unit_with_a_matching_row_is_kept(kind: str) -> None:
    ruled_out = 0
    for leaf, bounds, given, home, matching in asked(random.Random(f"bounds {kind}"), kind):
        kept = might_match(leaf, bounds)
        for place in set(home[matching].tolist()):
            assert kept[place], (leaf, given[place], bounds.lower[place], bounds.upper[place])
        ruled_out += int((~kept).sum())
    assert ruled_out > ROUNDS


@pytest.mark.parametrize("kind", typed.KINDS)
def test_a_unit_that_surely_matches_has_no_other_row(kind: str) -> None:
    sure = 0
    for leaf, bounds, given, home, matching in asked(random.Random(f"surely {kind}"), kind):
        found = must_match(leaf, bounds)
        for place in set(home[~matching].tolist()):
            assert not found[place], (leaf, given[place], bounds.lower[place], bounds.upper[place])
        sure += int(found.sum())
    assert sure > ROUNDS / 10


@pytest.mark.parametrize("kind", typed.KINDS)
def test_tight_bounds_rule_out_what_lies_elsewhere(kind: str) -> None:
    rng = random.Random(f"tight {kind}")
    field = Field(1, "c", kind)
    decided = 0
    for _ in range(ROUNDS):
        values = typed.pool(rng, kind, 6)
        given = units(rng, values)
        bounds = tight(kind, given)
        for wanted in (rng.choice(values), typed.value(rng, kind)):
            for op in Op:
                leaf = Compare(field, op, wanted)
                if op is Op.NE and wanted != wanted:
                    continue  # that all is NaN is not looked for
                for kept, unit in zip(might_match(leaf, bounds).tolist(), given, strict=True):
                    assert kept == expected(leaf, unit), (leaf, unit)
                    decided += not kept
    assert decided > ROUNDS


def expected(leaf: Compare, unit: Unit) -> bool:
    """All that can be had from the ends and the counts: whether something between them would match."""
    low, high = extremes(unit)
    nan = any(value is not None and value != value for value in unit)
    ends = [value for value in (low, high) if value is not None] + ([math.nan] if nan else [])
    if leaf.op is Op.EQ and leaf.value == leaf.value:
        return low is not None and ordered(low) <= ordered(leaf.value) <= ordered(high)
    return any(matches(leaf, {"c": end}) for end in ends)


@pytest.mark.parametrize("kind", typed.KINDS)
def test_nulls_are_counted(kind: str) -> None:
    rng = random.Random(f"nulls {kind}")
    field = Field(1, "c", kind)
    for _ in range(ROUNDS // 4):
        given = units(rng, typed.pool(rng, kind, 4))
        for leaf in (IsNull(field), IsNull(field, True), IsNaN(field), IsNaN(field, True)):
            found = might_match(leaf, tight(kind, given)).tolist()
            assert found == [any(matches(leaf, {"c": value}) for value in unit) for unit in given], leaf


def test_a_long_list_is_looked_up_between_the_bounds() -> None:
    for kind in ("long", "double", "string", "uuid", "decimal(9, 0)"):
        rng = random.Random(f"list {kind}")
        field = Field(1, "c", kind)
        values = sorted({repr(v): v for v in typed.pool(rng, kind, 60) if v == v}.values(), key=ordered)
        middle = len(values) // 2
        low, high = values[: middle - 4], values[middle + 4 :]
        bounds = tight(kind, [list(low), list(high), [values[middle]]])
        kept = might_match(In(field, tuple(low)), bounds).tolist()
        assert kept[0]
        assert kept[1:] == [False, False], kind
        if kind != "decimal(9, 0)":  # decimals are compared by the ends of the list alone
            edges = might_match(In(field, (*low[:10], *high[-10:])), bounds).tolist()
            assert edges == [True, True, kind == "string" and edges[2]], kind


def test_a_prefix_that_ends_in_the_last_letter() -> None:
    field = Field(1, "c", "string")
    last = "\U0010ffff"
    given: list[Unit] = [["a" + last], ["a" + last + last, "b"], [last], ["b"], ["a"], [None]]
    bounds = tight("string", given)
    for prefix in ("a" + last, last, last + last, "a", "b"):
        leaf = Like(field, prefix)
        assert might_match(leaf, bounds).tolist() == [
            any(value is not None and str(value).startswith(prefix) for value in unit) for unit in given
        ], prefix
    assert might_match(Like(field, "a", negated=True), bounds).tolist() == [
        False,
        True,
        True,
        True,
        False,
        False,
    ]


def test_partitions_are_units_of_one_value() -> None:
    field = Field(1, "c", "double")
    values = [1.0, math.nan, None, -0.0]
    bounds = Bounds.of_values("double", typed.arrow("double", values))
    for leaf in (
        Compare(field, Op.EQ, 0.0),
        Compare(field, Op.GT, 0.5),
        Compare(field, Op.EQ, math.nan),
        IsNull(field),
        IsNaN(field),
        IsNaN(field, True),
        In(field, (1.0, 0.0), True),
    ):
        assert might_match(leaf, bounds).tolist() == [matches(leaf, {"c": value}) for value in values], leaf
