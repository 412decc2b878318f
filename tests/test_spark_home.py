"""The archive of classes serves the session of the tests: Java does not say that one does not fit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark_home import ARCHIVE, HOME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_archive_is_in_use(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    memory = Path(f"/proc/{gateway.proc.pid}/maps")
    if os.environ.get("SPARK_HOME") != str(HOME) or not memory.exists():
        pytest.skip("there is no archive, or no way to see it")
    assert str(ARCHIVE) in memory.read_text()
