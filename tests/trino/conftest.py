"""One Trino for all tests that need one, on the catalog that Spark and Rookery have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.trino.client import Trino
from tests.trino.install import installation
from tests.trino.server import running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def trino(
    spark: SparkSession, rookery_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Trino]:
    with running(installation(), rookery_home, tmp_path_factory.mktemp("trino")) as server:
        yield server
