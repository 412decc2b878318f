"""The stage of bounds: a file that it leaves out has no matching row, one that is sure has no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from rookery.model import Compare, IsNull, Op
from rookery.prune import by_bounds
from tests.prune.random_tables import RandomTable, random_table
from tests.where.naive import matches


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> RandomTable:
    return random_table(tmp_path_factory.mktemp("bounds"), seed="bounds")


def test_no_file_with_a_matching_row_is_left_out(table: RandomTable) -> None:
    assert table.view().left_out(by_bounds.stage, 200) > 100


def test_every_row_of_a_sure_file_matches(table: RandomTable) -> None:
    view, sure = table.view(), 0
    for _ in range(200):
        predicate = table.predicate(depth=1)
        is_sure = by_bounds.sure_files(view.pruning(predicate), predicate)
        for rows in (rows for rows, yes in zip(view.rows, is_sure, strict=True) if yes):
            assert all(matches(predicate, row) for row in rows), predicate
        sure += int(is_sure.sum())
    assert sure > 50


def test_bounds_are_the_same_from_segments(tmp_path: Path) -> None:
    """Whether a file is known by a segment or by its manifest, it is left out for the same predicates."""
    table = random_table(tmp_path, seed="bounds from segments", commits=3)
    predicates = [table.predicate() for _ in range(40)]
    before = table.view()
    expected = [by_bounds.stage(before.pruning(each))[0].tolist() for each in predicates]
    table.analyse("c0")
    table.append_rows(table.random_rows(4))
    after = table.view()
    assert (before.files.fresh, after.files.fresh) == (len(before.rows), 1)
    places = [after.rows.index(rows) for rows in before.rows]
    found = [by_bounds.stage(after.pruning(each))[0][places].tolist() for each in predicates]
    assert found == expected
    assert after.left_out(by_bounds.stage, 50) > 20


def test_numbers_outside_the_bounds_are_left_out(tmp_path: Path) -> None:
    table = random_table(tmp_path, ("long", "string"), commits=0)
    table.append_rows(*([{"c0": n, "c1": None}, {"c0": n + 9, "c1": "x"}] for n in range(0, 40, 10)))
    table.append_rows([{"c0": None, "c1": None}])
    number, text = table.fields
    expected = {
        Compare(number, Op.EQ, 15): [1],
        Compare(number, Op.LT, 10): [0],
        Compare(number, Op.LE, 10): [0, 1],
        Compare(number, Op.GT, 29): [3],
        Compare(number, Op.GE, 29): [2, 3],
        IsNull(number): [4],
        IsNull(text, negated=True): [0, 1, 2, 3],
        Compare(text, Op.EQ, "y"): [],
    }
    view = table.view()
    order = [view.rows.index(rows) for rows in table.rows.values()]
    for predicate, kept in expected.items():
        may_match, note = by_bounds.stage(view.pruning(predicate))
        assert ([n for n, place in enumerate(order) if may_match[place]], note) == (kept, ""), predicate
