"""The stage of the manifest list: files of a manifest are left out together, and only if none can match."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
)

from rookery.model import Compare, IsNaN, IsNull, Op
from rookery.prune import by_file_list, by_partition
from tests.prune.random_tables import RandomTable, random_table

CASES: list[tuple[str, Transform[Any, Any]]] = [
    ("int", IdentityTransform()),
    ("double", IdentityTransform()),
    ("long", TruncateTransform(10)),
    ("timestamp", DayTransform()),
    ("string", TruncateTransform(2)),
    ("int", BucketTransform(50)),
]


def partitioned(folder: Path, kind: str, transform: Transform[Any, Any]) -> RandomTable:
    table = random_table(folder, (kind, "long"), seed=f"lists {kind} {transform}", commits=0)
    table.append_rows(table.random_rows(3))  # of the spec without partitions
    table.partition_by(c0=transform)
    for _ in range(4):
        table.append_rows(table.random_rows(3))
    return table


@pytest.mark.parametrize(("kind", "transform"), CASES)
def test_no_file_with_a_matching_row_is_left_out(
    tmp_path: Path, kind: str, transform: Transform[Any, Any]
) -> None:
    table = partitioned(tmp_path, kind, transform)
    assert table.view().left_out(by_file_list.stage, 40) > 0


def test_files_of_a_manifest_share_its_verdict(tmp_path: Path) -> None:
    table = partitioned(tmp_path, "int", IdentityTransform())
    view, seen = table.view(), 0
    for _ in range(40):
        pruning = view.pruning(table.predicate())
        may_match, note = by_file_list.stage(pruning)
        verdicts = {(place, bool(kept)) for place, kept in zip(view.files.lists, may_match, strict=True)}
        assert len(verdicts) == len(view.files.live.lists) == 5
        kept = sum(kept for _, kept in verdicts)
        assert note == f"{kept} of 5 manifests may match; 5 had to be decoded"
        # What bounds of a manifest exclude, each partition in it excludes.
        assert not (by_partition.stage(pruning)[0] & ~may_match).any()
        seen += kept
    assert 0 < seen < 200


def test_manifests_that_the_state_knows_are_not_decoded(tmp_path: Path) -> None:
    table = partitioned(tmp_path, "int", IdentityTransform())
    table.analyse()
    table.append_rows(table.random_rows(3))
    view = table.view()
    never = Compare(table.fields[0], Op.EQ, 123_456_789)
    _, note = by_file_list.stage(view.pruning(never))
    assert note.endswith("of 6 manifests may match; 1 had to be decoded")
    assert (np.bincount(view.files.lists, minlength=6) > 0).all()
    assert view.left_out(by_file_list.stage, 40) > 0


def test_nulls_in_a_manifest_are_stated(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("long",), commits=0)
    table.partition_by(c0=IdentityTransform())
    for values in ([1, 2], [None, 5], [9]):
        table.append_rows([{"c0": value} for value in values])
    (field,) = table.fields
    view = table.view()
    for predicate in (IsNull(field), IsNull(field, negated=True), Compare(field, Op.GT, 5)):
        may_match, _ = by_file_list.stage(view.pruning(predicate))
        by_list = [set(view.files.lists[view.matching(predicate)])]
        assert [set(view.files.lists[may_match])] == by_list, predicate


def test_nan_in_a_manifest_is_greater_than_its_bounds(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("double",), commits=0)
    table.partition_by(c0=IdentityTransform())
    for values in ([1.0, math.nan], [1.0], [math.nan]):
        table.append_rows([{"c0": value} for value in values])
    (field,) = table.fields
    view = table.view()
    for predicate in (Compare(field, Op.GT, 5.0), IsNaN(field), Compare(field, Op.EQ, math.nan)):
        may_match, _ = by_file_list.stage(view.pruning(predicate))
        by_list = set(view.files.lists[view.matching(predicate)])
        assert (set(view.files.lists[may_match]), len(by_list)) == (by_list, 2), predicate


def test_a_manifest_is_judged_by_its_own_spec(tmp_path: Path) -> None:
    """Two specs have different columns at the same place."""
    table = random_table(tmp_path, ("long", "long"), commits=0)
    table.partition_by(c0=IdentityTransform())
    table.append_rows([{"c0": 5, "c1": 100}])
    table.partition_by(c1=IdentityTransform())
    table.append_rows([{"c0": 5, "c1": 200}])
    view = table.view()
    for number, field in enumerate(table.fields):
        for value in (5, 100, 200):
            may_match, _ = by_file_list.stage(view.pruning(Compare(field, Op.EQ, value)))
            other_spec = [row[0]["c1"] == (200 if number == 0 else 100) for row in view.rows]
            expected = view.matching(Compare(field, Op.EQ, value)) | other_spec
            assert may_match.tolist() == expected.tolist()
