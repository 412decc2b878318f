"""Which files a rewrite takes: the arrays against Iceberg's rules, spelt out file by file."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rookery.maintain.steps import packing
from rookery.maintain.steps.packing import PackingSizes, chosen

MIB = 1 << 20
WANTED = PackingSizes(512 * MIB, 384 * MIB, int(512 * MIB * 1.8), 3)


def by_rule(sizes: list[int], groups: list[int], forced: list[bool], wanted: PackingSizes) -> set[int]:
    """The same, as Iceberg's planner says it."""
    parts: defaultdict[int, list[int]] = defaultdict(list)
    for number, size in enumerate(sizes):
        if size < wanted.small or size > wanted.large or forced[number]:
            parts[groups[number]].append(number)
    taken: set[int] = set()
    for part in parts.values():
        bins: list[list[int]] = [[]]
        for number in part:
            if bins[-1] and sum(sizes[each] for each in bins[-1]) + sizes[number] > packing.GROUP_BYTES:
                bins.append([])
            bins[-1].append(number)
        for found in bins:
            total = sum(sizes[number] for number in found)
            enough = len(found) > 1 and len(found) >= wanted.min_files
            if (
                enough
                or (len(found) > 1 and total > wanted.target)
                or total > wanted.large
                or any(forced[number] for number in found)
            ):
                taken |= set(found)
    return taken


FILES = st.lists(
    st.tuples(
        st.sampled_from(
            [0, 1, 100 * MIB, 383 * MIB, 384 * MIB, 512 * MIB, 900 * MIB, 922 * MIB, 40 << 30, 70 << 30]
        ),
        st.integers(-1, 3),
        st.booleans(),
    ),
    max_size=40,
)


@given(FILES, st.integers(1, 6))
def test_the_files_that_iceberg_would_take(files: list[tuple[int, int, bool]], min_files: int) -> None:
    sizes = [size for size, _, _ in files]
    groups = [group for _, group, _ in files]
    forced = [flag and size % 2 == 0 for size, _, flag in files]
    wanted = PackingSizes(WANTED.target, WANTED.small, WANTED.large, min_files)
    taken = chosen(np.array(sizes, np.int64), np.array(groups, np.int64), wanted, np.array(forced, bool))
    assert len(set(taken.tolist())) == len(taken)
    assert set(taken.tolist()) == by_rule(sizes, groups, forced, wanted)


def test_all_files_where_all_are_to_be_rewritten() -> None:
    sizes = np.array([512 * MIB, 1], np.int64)
    assert sorted(chosen(sizes, np.array([0, 1]), WANTED, all_files=True).tolist()) == [0, 1]
    assert chosen(sizes, np.array([0, 1]), WANTED).tolist() == []
