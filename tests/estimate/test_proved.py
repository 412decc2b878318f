"""Of random tables and predicates: what is exact is true, and what is proved holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.transforms import IdentityTransform

from rookery.estimate.selection import select
from rookery.model import Certainty
from rookery.prune.cascade import prune
from tests.estimate.analysed import analyse
from tests.prune.random_tables import KINDS, RandomTable, View, random_table
from tests.where.naive import matches

WIDE = tuple(kind for kind in KINDS if kind not in ("time",))


def check(view: View, rounds: int) -> tuple[int, int]:
    """Compare estimates with the rows; return how many were exact, and how many had proved bounds."""
    exact = proven = 0
    for _ in range(rounds):
        predicate = view.made.predicate()
        true = sum(matches(predicate, row) for rows in view.rows for row in rows)
        found = select(prune(view.table, view.snapshot, view.files, predicate))
        assert found.rows.low <= found.rows.value <= found.rows.high, predicate
        if found.rows.kind is Certainty.EXACT:
            assert found.rows.value == true, (predicate, found.rows)
            exact += 1
        if found.proven:
            assert found.rows.low <= true <= found.rows.high, (predicate, true, found.rows)
            proven += 1
        by_file = [sum(matches(predicate, row) for row in rows) for rows in view.rows]
        assert all(found.least <= by_file), predicate
        assert all(by_file <= found.most), predicate
    return exact, proven


@pytest.mark.parametrize("seed", ["one", "two"])
def test_by_manifests_alone(tmp_path: Path, seed: str) -> None:
    table = random_table(tmp_path, WIDE, seed)
    exact, proven = check(table.view(), 120)
    assert exact > 8
    assert proven == 120


@pytest.mark.parametrize("seed", ["four", "five"])
def test_with_sketches_indexes_and_newer_files(tmp_path: Path, seed: str) -> None:
    table = random_table(tmp_path, WIDE, seed)
    names = list(table.kinds)
    for name in names[:4]:
        table.add_index("bitmap", name)
    table.add_index("bloom", names[5])
    able = [name for name, kind in table.kinds.items() if not kind.startswith(("binary", "fixed", "boolean"))]
    analyse(table, histogram=able, top_k=names, column_sets=((names[1], names[2]), (names[6], names[10])))
    exact, proven = check(table.view(), 120)
    assert exact > 20
    assert proven > 40
    table.append_rows(table.random_rows(5))
    exact, proven = check(table.view(), 60)
    assert exact > 2
    assert proven > 4


def test_partitions(tmp_path: Path) -> None:
    table = RandomTable(tmp_path, ("string", "int", "date", "long"), "partitions")
    table.append_rows(table.random_rows(20))
    table.partition_by(c0=IdentityTransform(), c1=IdentityTransform())
    for _ in range(3):
        table.append_rows(table.random_rows(20))
    exact, _ = check(table.view(), 120)
    assert exact > 10
