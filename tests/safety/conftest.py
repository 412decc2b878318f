from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.lakehouse import NewTable, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def new_table(spark: SparkSession) -> Iterator[NewTable]:
    with tables(spark) as make:
        yield make
