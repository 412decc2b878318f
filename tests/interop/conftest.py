from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from tests.interop.java import IcebergJava
from tests.lakehouse import drop

NewTable = Callable[..., str]


@pytest.fixture(scope="session")
def java(spark: SparkSession) -> IcebergJava:
    return IcebergJava(spark)


@pytest.fixture
def new_table(spark: SparkSession) -> Iterator[NewTable]:
    """Make tables of a format version, with names of their own; they are dropped at the end."""
    made: list[str] = []

    def make(columns: str, version: int = 2) -> str:
        name = f"lake.db.t_{uuid.uuid4().hex[:12]}"
        spark.sql(
            f"CREATE TABLE {name} ({columns}) USING iceberg TBLPROPERTIES "
            f"('format-version'='{version}', 'write.delete.mode'='merge-on-read')"
        )
        made.append(name)
        return name

    yield make
    drop(spark, made)


@pytest.fixture
def cost_based(spark: SparkSession) -> Iterator[None]:
    """Let Spark plan by costs."""
    spark.conf.set("spark.sql.cbo.enabled", "true")
    yield
    spark.conf.unset("spark.sql.cbo.enabled")
