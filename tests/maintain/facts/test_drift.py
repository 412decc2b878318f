"""The bounds of drift against brute force, over the very values of files."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rookery.maintain.facts.drift import (
    Drift,
    _certainly_new,
    _new_at_most,
    _union,
    _width,
    from_stated,
    worst,
)
from rookery.model import Field
from rookery.prune.bounds import Bounds
from rookery.values.canonical import form_of

WHOLE = st.integers(-30, 30)
EDGES = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1])
FLOATS = st.sampled_from([-0.0, 0.0, math.nan, 1.5, -2.5, 3.0, math.inf, -math.inf, 1e-300])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": WHOLE,
    "long": WHOLE | EDGES,
    "date": WHOLE,
    "boolean": st.integers(0, 1),
    "double": FLOATS,
    "string": st.text("abc", max_size=3).map(str.encode),
    "decimal(9, 2)": st.integers(-9, 9).map(lambda n: Decimal(n) / 4),
}


@dataclass
class File:
    """What a file holds, and how much of it its entry tells."""

    values: list[Any]
    nulls: int
    slack: int  # by how many values of the whole its bounds are too wide
    bounded: bool
    counted: bool
    known: bool


@st.composite
def files(draw: st.DrawFn, kind: str) -> list[File]:
    return draw(
        st.lists(
            st.builds(
                File,
                st.lists(VALUES[kind], max_size=5),
                st.integers(0, 2),
                st.integers(0, 2),
                st.sampled_from([True, True, True, False]),
                st.sampled_from([True, True, True, False]),
                st.booleans(),
            ),
            min_size=1,
            max_size=7,
        )
    )


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def bounds_of(kind: str, found: list[File]) -> Bounds:
    """The bounds of files as manifests have them, some of them too wide, some of them missing."""
    every = sorted({value for file in found for value in file.values if not is_nan(value)})
    lower: list[Any] = []
    upper: list[Any] = []
    for file in found:
        numbers = [value for value in file.values if not is_nan(value)]
        if not file.bounded or not numbers:
            lower.append(None)
            upper.append(None)
            continue
        lower.append(every[max(every.index(min(numbers)) - file.slack, 0)])
        upper.append(every[min(every.index(max(numbers)) + file.slack, len(every) - 1)])
    form = form_of(kind)
    counts = [
        [len(file.values) + file.nulls if file.counted else -1 for file in found],
        [file.nulls if file.counted else -1 for file in found],
        [sum(map(is_nan, file.values)) if file.counted else -1 for file in found],
    ]
    if kind != "double":
        counts[2] = [0] * len(found)
    arrays = [np.array(each, np.int64) for each in counts]
    return Bounds(pa.array(lower, form), pa.array(upper, form), *arrays)


def distinct(found: list[File], which: Callable[[File], bool]) -> set[Any]:
    """The values, told apart as sketches do: by their bytes."""
    values = [value for file in found if which(file) for value in file.values]
    return {struct.pack(">d", value) if isinstance(value, float) else value for value in values}


cases = st.sampled_from(sorted(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), files(kind)))


@given(cases)
def test_what_is_certainly_new_is_new(case: tuple[str, list[File]]) -> None:
    kind, found = case
    known = np.array([file.known for file in found])
    told = _certainly_new(bounds_of(kind, found), ~known, known)
    brought = distinct(found, lambda file: not file.known) - distinct(found, lambda file: file.known)
    assert told <= len(brought)


@given(files("int"))
def test_certainly_new_are_the_heaps_that_touch_nothing_known(found: list[File]) -> None:
    bounds = bounds_of("int", found)
    known = np.array([file.known for file in found])
    spans = list(zip(bounds.lower.to_pylist(), bounds.upper.to_pylist(), strict=True))
    chosen = [
        number
        for number, file in enumerate(found)
        if spans[number][0] is not None and (file.known or (file.counted and file.values))
    ]
    heaps: list[set[int]] = []
    for number in chosen:
        low, high = spans[number]
        touched = [heap for heap in heaps if any(spans[i][0] <= high and low <= spans[i][1] for i in heap)]
        heaps = [heap for heap in heaps if heap not in touched] + [{number}.union(*touched)]
    apart = sum(not any(known[i] for i in heap) for heap in heaps)
    blind = any(file.known and not file.bounded and (file.values or not file.counted) for file in found)
    blind |= any(file.known and not file.values and not file.counted for file in found)
    assert _certainly_new(bounds, ~known, known) == (0 if blind else apart)


@given(cases, st.integers(1, 100))
def test_no_more_is_new_than_is_said(case: tuple[str, list[File]], number: int) -> None:
    kind, found = case
    bounds = bounds_of(kind, found)
    rows = np.array([len(file.values) + file.nulls for file in found])
    filled = np.where(bounds.values >= 0, bounds.values, rows) - np.maximum(bounds.nulls, 0)
    new = np.array([not file.known for file in found])
    told = _new_at_most(Field(number, "c", kind), bounds, filled, new)
    assert len(distinct(found, lambda file: not file.known)) <= told <= filled[new].sum()


@given(st.lists(st.tuples(WHOLE, st.integers(0, 12)), min_size=1, max_size=8))
def test_the_union_of_spans(spans: list[tuple[int, int]]) -> None:
    low = np.array([start for start, _ in spans])
    high = np.array([start + length for start, length in spans])
    every = {number for start, length in spans for number in range(start, start + length + 1)}
    assert _union(low, high) == len(every)
    assert _width(low, high).tolist() == [length + 1 for _, length in spans]


@given(st.lists(st.tuples(EDGES, EDGES).map(sorted), min_size=1, max_size=5))
def test_spans_at_the_edges_of_their_type(spans: list[list[int]]) -> None:
    reach, total = None, 0
    for low, high in sorted(spans):
        start = low if reach is None else max(low, reach + 1)
        total += max(high - start + 1, 0)
        reach = high if reach is None else max(reach, high)
    lows, highs = (np.array(each, np.int64) for each in zip(*spans, strict=True))
    assert math.isclose(_union(lows, highs), total, rel_tol=1e-12)


def test_how_far_a_number_has_moved() -> None:
    field = Field(1, "c", "int")
    grown = Drift(field, 10, 12, 20)
    assert (grown.at_least, grown.at_most) == (0.2, 1.0)
    shrunk = Drift(field, 10, 2, 5)
    assert (shrunk.at_least, shrunk.at_most) == (0.5, 0.8)
    unbounded = Drift(field, 10, 8, None)
    assert (unbounded.at_least, unbounded.at_most) == (0.0, None)
    never = Drift(field, None, 1, 20)
    assert (never.at_least, never.at_most) == (None, None)
    still = Drift(field, 10, 9, 11, moved=False)
    assert (still.at_least, still.at_most) == (0.0, 0.0)
    assert worst([grown, shrunk, never, still]) == (0.5, 1.0)
    assert worst([grown, unbounded]) == (0.2, None)
    assert worst([]) == (0.0, 0.0)


def test_what_others_state_is_exact_while_it_is_small() -> None:
    assert (from_stated(4_095).low, from_stated(4_095).high) == (4_095, 4_095)
    large = from_stated(100_000)
    assert 95_000 < large.low < 96_000
    assert 104_000 < large.high < 105_000
