"""Tables too large for whole sketches: what is true is found, what is not is never sure."""

from __future__ import annotations

import numpy as np
import pytest

from rookery.discover import ForeignKey, foreign_keys, overlaps, same_values, unique_keys
from rookery.discover.confidence import contained_confidence, share_confidence, unique_confidence
from tests.discover.columns import column

SURE = 0.99
SEEDS = range(12)


def sizes(seed: int) -> tuple[np.random.Generator, int]:
    random = np.random.default_rng(seed)
    return random, int(random.integers(10_000, 120_000))


def between(*columns: object, least: float = SURE) -> list[ForeignKey]:
    return foreign_keys(overlaps(columns), least)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reference_is_found(seed: int) -> None:
    random, count = sizes(seed)
    spread = int(random.integers(1, 5))
    parent = np.arange(1, count + 1) * spread
    child = random.choice(parent, count // 2)
    (key,) = between(column("o", "customer_id", child), column("customers", "id", parent))
    assert (key.columns, key.parent_columns, key.containment) == (("customer_id",), ("id",), 1.0)
    assert SURE <= key.confidence < 1
    assert key.coverage == pytest.approx(len(np.unique(child)) / count, abs=0.03)
    assert key.likely == "high"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_column_with_missing_values_is_not_named(seed: int) -> None:
    """One value in fifty is missing: a sample of hundreds shows that."""
    random, count = sizes(seed)
    parent = np.arange(count)
    child = np.repeat(np.append(parent, random.choice(count, count // 50, False) - 2 * count), 2)
    within = {"low": 0, "high": count}  # the bounds tell nothing here
    child_facts = column("o", "customer_id", child, **within)
    assert between(child_facts, column("customers", "id", parent)) == []
    (key,) = between(child_facts, column("customers", "id", parent), least=0)
    assert key.confidence == 0
    assert key.containment == pytest.approx(0.98, abs=0.01)


def test_one_value_beyond_the_bounds_is_seen() -> None:
    """No sample would show it, but it is the greatest."""
    parent = np.arange(100_000)
    child = np.repeat(np.append(parent, 100_000), 2)
    assert between(column("o", "x", child), column("p", "x", parent)) == []
    assert len(between(column("o", "x", child, tight=False), column("p", "x", parent))) == 1  # deleted rows


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("repeated", [0.2, 0.06])
def test_a_parent_with_repeats_is_not_named(seed: int, repeated: float) -> None:
    """Drawn at random from a range that makes so many repeats."""
    random, count = sizes(seed)
    parent = random.integers(0, int(count / (2 * repeated)), count)
    child = random.choice(parent, count // 2)
    assert between(column("o", "customer_id", child), column("customers", "id", parent)) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["long", "timestamp", "string"])
def test_values_that_look_unique_by_chance(seed: int, kind: str) -> None:
    """One in a thousand is repeated, which no sample shows: times, amounts, texts."""
    random, count = sizes(seed)
    values = random.integers(0, count * 500, count)
    assert len(np.unique(values)) < count
    facts = column("events", "at", [f"t{v}" for v in values] if kind == "string" else values, kind)
    assert 0.5 < unique_confidence(facts) < SURE
    assert unique_keys([facts], SURE) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_that_are_given_out_are_unique(seed: int) -> None:
    random, count = sizes(seed)
    for values in (np.arange(count), np.arange(count) * 4, random.integers(0, 2**62, count)):
        assert len(np.unique(values)) == count
        assert SURE <= unique_confidence(column("t", "id", values)) < 1


def test_a_value_in_two_files_is_a_repeat() -> None:
    assert unique_confidence(column("t", "id", np.arange(50_000), in_two_files=True)) == 0


def test_few_values_among_many_are_not_sure() -> None:
    """Of seven values hardly one is in the sample of a large table, even if all are there."""
    few, many = column("l", "linenumber", np.arange(1, 8)), column("o", "id", np.arange(1_000_000))
    assert between(few, many) == []
    assert contained_confidence(few.distinct, many.sketch.share) < 0.1


@pytest.mark.parametrize("missing", [0.005, 0.02, 0.1])
def test_confidence_is_honest(missing: float) -> None:
    """If this share is missing, samples that show none are as rare as the confidence says."""
    random = np.random.default_rng(7)
    values, share, trials = 2_000, 0.1, 4_000
    unseen = (random.random((trials, int(values * missing))) >= share).all(axis=1).mean()
    assert unseen <= 1 - contained_confidence(values, share) + 0.02


def test_same_values() -> None:
    random = np.random.default_rng(3)
    values = random.integers(0, 2**60, 60_000)
    nearly, other = values[: int(len(values) * 0.98)], np.append(values, random.integers(0, 2**60, 20_000))
    columns = [column(name, "v", each) for name, each in (("a", values), ("b", nearly), ("c", other))]
    columns.append(column("d", "v", random.permutation(values)))
    found = same_values(overlaps(columns), SURE)
    assert {(pair.table, pair.other_table) for pair in found} == {("a", "b"), ("a", "d"), ("b", "d")}
    by_pair = {(pair.table, pair.other_table): pair for pair in found}
    assert by_pair["a", "d"].jaccard == 1
    assert by_pair["a", "b"].jaccard == pytest.approx(0.98, abs=0.01)


def test_a_share_of_a_sample() -> None:
    assert share_confidence(0, 0, 0.95, 10, 0.5) == 0
    assert share_confidence(95, 100, 0.95, 100, 1.0) == 1
    assert share_confidence(94, 100, 0.95, 100, 1.0) == 0
    assert share_confidence(950, 1000, 0.95, 10_000, 0.1) == pytest.approx(0.5)
