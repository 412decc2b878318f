"""A fixed part of the differential tests; `python -m tests.differential` goes on as long as it is told."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rookery.prune import cascade
from rookery.prune.cascade import Pruning
from rookery.read import table_reader as reading
from tests.differential.columns import leaf, make, rows
from tests.differential.predicates import Predicates
from tests.differential.queries import Parts
from tests.differential.query_forms import make as make_query
from tests.differential.run import Size, run_case
from tests.differential.tally import Tally
from tests.differential.truth import rows_of
from tests.differential.world import Find, World

SEED = "suite4"  # whose cases are worth something
CASES = 2
CAUGHT = 1  # a case in Parquet, in which a mistake is seen
SIZE = Size(tables=2, predicates=70, earlier=15, by_spark=4, queries=9, source_queries=0)
SMALL = Size(tables=1, predicates=30, earlier=0, by_spark=0, unread=0, queries=0, source_queries=0)


@pytest.fixture(scope="module")
def tally() -> Tally:
    return Tally()


@pytest.mark.parametrize("number", range(CASES))
def test_rows_are_those_that_spark_reads(world: World, tally: Tally, number: int) -> None:
    run_case(world, SEED, number, tally, SIZE)


@pytest.mark.spark
def test_the_cases_are_worth_something(tally: Tally) -> None:
    """After the others: most predicates were decided, many files were skipped, and rows were told apart."""
    assert tally.tables == CASES * (SIZE.tables + 1), "run the whole module"
    asked = tally.predicates + tally.left_to_spark
    assert tally.predicates > max(0.6 * asked, tally.refused.total())
    assert tally.matching > 0.2 * asked
    assert tally.skipping > 0.2 * asked
    assert tally.files_skipped > 0.1 * tally.files
    assert tally.expressions > 0.02 * asked
    assert tally.queries.total() > 0.6 * CASES * SIZE.queries
    assert tally.query_tables_pruned > 0.05 * tally.query_tables


def test_a_file_that_is_skipped_wrongly_is_a_find(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(pruning: Pruning) -> tuple[np.ndarray, str]:  # type: ignore[type-arg]
        keep = np.ones(len(pruning.files), bool)
        keep[-1] = False
        return keep, ""

    monkeypatch.setattr(cascade, "CASCADE", (*cascade.CASCADE, ("wrong", wrong)))
    with pytest.raises(
        Find, match=rf"--seed {SEED} --case {CAUGHT}(?s:.)*files with matching rows were skipped"
    ):
        run_case(world, SEED, CAUGHT, Tally(), SMALL)


def test_a_row_that_is_lost_is_a_find(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = reading._read_all
    monkeypatch.setattr(reading, "_read_all", lambda *a, **k: (part[1:] for part in honest(*a, **k)))
    with pytest.raises(Find, match=r"rows lost, such as"):
        run_case(world, SEED, CAUGHT, Tally(), SMALL)


def test_a_seed_determines_its_cases() -> None:
    def made(seed: str) -> tuple[object, ...]:
        rng = random.Random(seed)
        columns = [make(rng, f"c{number}") for number in range(5)]
        table = rows(rng, columns, 20)
        maker = Predicates(rng, columns)
        parts = Parts(rng, {"d1": [*columns, leaf(rng, "k", "int")], "d2": [leaf(rng, "k", "int")]})
        queries = [make_query(parts) for _ in range(50)]
        return repr(columns), rows_of(table), [maker.make() for _ in range(20)], queries

    assert made("a") == made("a")
    assert made("a") != made("b")
