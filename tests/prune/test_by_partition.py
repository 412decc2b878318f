"""The stage of partitions: through every transform, and over all specs that the table has had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
)

from rookery.model import Compare, IsNull, Op
from rookery.prune import by_partition
from tests.prune.random_tables import RandomTable, random_table

CASES: list[tuple[str, Transform[Any, Any]]] = [
    ("int", BucketTransform(3)),
    ("long", TruncateTransform(10)),
    ("date", MonthTransform()),
    ("timestamp", DayTransform()),
    ("string", IdentityTransform()),
    ("string", TruncateTransform(2)),
]


def partitioned(folder: Path, kind: str, transform: Transform[Any, Any]) -> RandomTable:
    table = random_table(folder, (kind, "long"), seed=f"{kind} {transform}", commits=0)
    table.partition_by(c0=transform)
    for _ in range(2):
        table.append_rows(table.random_rows(6))
    return table


@pytest.mark.parametrize(("kind", "transform"), CASES)
def test_no_file_with_a_matching_row_is_left_out(
    tmp_path: Path, kind: str, transform: Transform[Any, Any]
) -> None:
    table = partitioned(tmp_path, kind, transform)
    assert table.view().left_out(by_partition.stage, 40) > 0


def test_with_identity_the_value_decides(tmp_path: Path) -> None:
    table = partitioned(tmp_path, "int", IdentityTransform())
    field, other = table.fields
    view = table.view()
    for predicate in (IsNull(field), *(Compare(field, op, v) for op in Op for v in table.pools["c0"])):
        assert by_partition.stage(view.pruning(predicate))[0].tolist() == view.matching(predicate).tolist()
    may_match, note = by_partition.stage(view.pruning(Compare(other, Op.EQ, 1)))
    assert (may_match.all(), note) == (True, "not partitioned by these columns")


def test_files_of_every_spec_are_judged_by_their_own(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("int", "string", "date"), seed="specs", commits=1)
    specs: tuple[dict[str, Transform[Any, Any]], ...] = (
        {"c0": IdentityTransform()},
        {"c1": TruncateTransform(1), "c0": BucketTransform(2)},
        {"c2": MonthTransform()},
        {},
    )
    for spec in specs:
        table.partition_by(**spec)
        table.append_rows(table.random_rows(6))
    view = table.view()
    assert len(set(view.files.files["spec_id"].to_pylist())) == 4
    assert view.left_out(by_partition.stage, 80) > 80


def test_files_without_a_partition_of_the_column_are_kept(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("long",), commits=0)
    table.append_rows([{"c0": 5}])
    table.partition_by(c0=IdentityTransform())
    table.append_rows([{"c0": 5}], [{"c0": 6}])
    table.partition_by(c0=VoidTransform())
    table.append_rows([{"c0": 5}])
    view = table.view()
    may_match, _ = by_partition.stage(view.pruning(Compare(table.fields[0], Op.EQ, 99)))
    kept = [
        spec for spec, kept in zip(view.files.files["spec_id"].to_pylist(), may_match, strict=True) if kept
    ]
    assert sorted(kept) == [0, 2]
    assert sorted(view.files.files["spec_id"].to_pylist()) == [0, 1, 1, 2]


def test_a_table_without_partitions(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("long",), commits=1)
    may_match, note = by_partition.stage(table.view().pruning(Compare(table.fields[0], Op.EQ, 99)))
    assert (may_match.all(), note) == (True, "the table has no partitions")
