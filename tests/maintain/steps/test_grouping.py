"""The groups of rewrites, by partitions of one spec and of several.

`test_partition_evolution` compares them with those that Iceberg plans.
"""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from rookery.maintain.steps.grouping import delete_groups, rewrite_groups
from rookery.tables.partitioning import PartitionField
from tests.tables.memory_format import Identity

A, B = PartitionField(1000, 1, "a", Identity()), PartitionField(1001, 2, "b", Identity())
SPECS = {0: (), 1: (A,), 2: (A, B), 3: (B, A)}
Partition = tuple[int, list[object]]  # the number of its spec, and the values of the fields


def files(*partitions: Partition) -> pa.Table:
    """A file for each spec and partition."""
    return pa.table(
        {
            "spec_id": pa.array([spec for spec, _ in partitions], pa.int32()),
            "partition": [json.dumps(values) for _, values in partitions],
        }
    )


def positions(groups: NDArray[np.int64]) -> list[list[int]]:
    """The files of each group, by their positions."""
    by_group: defaultdict[int, list[int]] = defaultdict(list)
    for position, group in enumerate(groups.tolist()):
        by_group[group].append(position)
    return sorted(by_group.values())


@pytest.mark.parametrize(
    ("current", "partitions", "expected"),
    [
        (1, [], []),
        (1, [(1, ["x"]), (1, ["y"]), (1, ["x"])], [[0, 2], [1]]),
        # Files of other specs are in one group, with those of the current one that have only nulls.
        (1, [(1, ["x"]), (0, []), (2, ["x", 1]), (1, [None])], [[0], [1, 2, 3]]),
        (2, [(2, ["x", None]), (2, [None, None]), (1, ["x"]), (2, ["x", None])], [[0, 3], [1, 2]]),
        # A spec without fields has one partition, and so has the group of all others.
        (0, [(0, []), (0, []), (1, ["x"]), (2, ["x", 1])], [[0, 1, 2, 3]]),
    ],
)
def test_data_files(
    current: int, partitions: list[tuple[int, list[object]]], expected: list[list[int]]
) -> None:
    assert positions(rewrite_groups(files(*partitions), current)) == expected


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ([], []),
        ([(1, ["x"]), (1, ["y"]), (1, ["x"])], [[0, 2], [1]]),
        # What a spec lacks is null.
        ([(1, ["x"]), (2, ["x", None]), (2, ["x", 1])], [[0, 1], [2]]),
        ([(0, []), (1, [None]), (2, [None, None]), (2, [None, 1])], [[0, 1, 2], [3]]),
        # The order of the fields in a spec does not count; the same text in another field does.
        ([(2, ["x", "y"]), (3, ["y", "x"]), (3, ["x", "y"])], [[0, 1], [2]]),
        # Numbers and texts that look alike are different.
        ([(1, ["1"]), (1, [1])], [[0], [1]]),
    ],
)
def test_position_deletes(partitions: list[Partition], expected: list[list[int]]) -> None:
    assert positions(delete_groups(files(*partitions), SPECS)) == expected
