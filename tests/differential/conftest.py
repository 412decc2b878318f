"""Tables made by hand, asked as the random ones are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from tests.differential.columns import Column
from tests.differential.history import Version, World
from tests.differential.predicates import Asked
from tests.differential.run import Asking, Tally, prepared
from tests.interop.java import IcebergJava
from tests.lakehouse import NewTable, tables


@pytest.fixture(scope="module")
def new_table(spark: SparkSession) -> Iterator[NewTable]:
    with tables(spark) as make:
        yield make


@pytest.fixture(scope="module")
def world(spark: SparkSession, lake: Lake) -> Iterator[World]:
    with prepared(spark):
        yield World(spark, lake, IcebergJava(spark))


Check = Callable[..., None]


@pytest.fixture
def check(world: World) -> Check:
    """Compare the answers to some predicates, of the table or of a snapshot of it."""

    def ask(name: str, *asked: str, snapshot: int | None = None) -> None:
        version = None if snapshot is None else Version(snapshot, [])
        columns = [Column("id", "long", [1])]
        asking = Asking(world, random.Random(1), name, "UTC", version, columns, Tally())
        asking.compare([Asked("TRUE"), *map(Asked, asked)], by_spark=1)

    return ask
