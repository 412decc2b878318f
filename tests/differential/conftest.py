"""Tables made by hand, asked as the random ones are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.api.where import bind
from rookery.model import StorageError
from tests.differential.asking import Asking, Held, prune_all
from tests.differential.columns import Column
from tests.differential.history import Version
from tests.differential.predicates import Asked
from tests.differential.sessions import UTC
from tests.differential.tally import Tally
from tests.differential.truth import Copy
from tests.differential.world import Finds, World, world_of


@pytest.fixture(scope="module")
def world(spark: SparkSession, lake: Lake) -> Iterator[World]:
    with world_of(spark, lake) as world:
        yield world


Check = Callable[..., None]
BY_SPARK = 4  # of the predicates of a check are read by Spark too, which takes longest


@contextmanager
def asking_of(world: World, rng: random.Random, name: str, snapshot: int | None = None) -> Iterator[Asking]:
    """Predicates about a table or a snapshot of it, which stop at the first find."""
    version = None if snapshot is None else Version(snapshot, [])
    source = name if snapshot is None else f"{name} VERSION AS OF {snapshot}"
    copy = Copy.of(world.other, source, "directed")
    columns = [Column("id", "long", [1])]
    try:
        yield Asking(world, rng, name, UTC, version, columns, copy, Tally(), Finds())
    finally:
        copy.drop()


@pytest.fixture(scope="module")
def rng() -> random.Random:
    """Chance, which is not the same in each check: seldom is the data source asked too."""
    return random.Random(1)


@pytest.fixture
def check(world: World, rng: random.Random) -> Check:
    """Compare the answers to some predicates, of the table or of a snapshot of it."""

    def ask(name: str, *asked: str, snapshot: int | None = None, by_spark: int = BY_SPARK) -> None:
        with asking_of(world, rng, name, snapshot) as asking:
            predicates = [Asked("TRUE"), *map(Asked, asked)]
            asking.compare(predicates, by_spark=predicates[:: 1 + len(predicates) // by_spark])

    return ask


@pytest.fixture
def check_files(world: World, rng: random.Random) -> Check:
    """Compare what metadata alone decides: which files may match, and counts, where those need no reading."""

    def ask(name: str, *asked: str) -> None:
        handle = Held.of(rookery.table(name, world.lake))
        table, store = handle.load()
        snapshot = table.snapshot()
        with asking_of(world, rng, name) as asking:
            truth = asking.copy.answer([Asked("TRUE"), *map(Asked, asked)], UTC)
            assert [each.sql for each in truth.asked][1:] == list(asked)  # Spark takes them all
            for place, each in enumerate(truth.asked):
                mask = truth.matrix[:, place]
                pruning = prune_all(table, store, snapshot, bind(each.sql, table, snapshot, "UTC"))
                asking.check_files(pruning, mask, each.sql)
                with suppress(
                    StorageError
                ):  # a file would have to be read, in a format that is not read here
                    assert handle.count(each.sql) == int(mask.sum()), each.sql

    return ask
