from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rookery.api.lake import Lake
from tests.lakehouse import NewTable
from tests.safety.places import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def new_table(own_table: NewTable) -> NewTable:
    return own_table


@pytest.fixture
def place(spark: SparkSession, lake: Lake, tmp_path: Path) -> Iterator[Place]:
    real, alias, namespace = tmp_path / "real", tmp_path / "alias", f"n{uuid.uuid4().hex[:8]}"
    real.mkdir()
    alias.symlink_to(real)
    spark.sql(f"CREATE NAMESPACE lake.{namespace}")
    yield Place(spark, lake, real, alias, namespace)
    for identifier in lake.catalog.list_tables(namespace):
        lake.catalog.drop_table(identifier)
    spark.sql(f"DROP NAMESPACE lake.{namespace}")
