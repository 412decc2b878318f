"""Tables made by hand, asked as the random ones are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from tests.differential.asking import Asking
from tests.differential.columns import Column
from tests.differential.history import Version
from tests.differential.predicates import Asked
from tests.differential.sessions import UTC
from tests.differential.tally import Tally
from tests.differential.truth import Copy
from tests.differential.world import Finds, World, world_of
from tests.lakehouse import NewTable, tables


@pytest.fixture(scope="module")
def new_table(spark: SparkSession) -> Iterator[NewTable]:
    with tables(spark) as make:
        yield make


@pytest.fixture(scope="module")
def world(spark: SparkSession, lake: Lake) -> Iterator[World]:
    with world_of(spark, lake) as world:
        yield world


Check = Callable[..., None]


@pytest.fixture
def check(world: World) -> Check:
    """Compare the answers to some predicates, of the table or of a snapshot of it."""

    def ask(name: str, *asked: str, snapshot: int | None = None) -> None:
        version = None if snapshot is None else Version(snapshot, [])
        source = name if snapshot is None else f"{name} VERSION AS OF {snapshot}"
        copy = Copy.of(world.other, source, "directed")
        columns = [Column("id", "long", [1])]
        asking = Asking(world, random.Random(1), name, UTC, version, columns, copy, Tally(), Finds())
        predicates = [Asked("TRUE"), *map(Asked, asked)]
        asking.compare(predicates, by_spark=predicates)
        copy.drop()

    return ask
