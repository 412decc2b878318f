"""Keeping Spark's Python workers quick."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def no_jars_on_python_path(spark: SparkSession) -> Iterator[None]:
    """Keep jars off the path of the Python workers whose work is planned inside.

    Spark puts the jars of `spark.jars.packages` there, for packages that carry Python code. Workers then read
    the directory of each jar anew for every task: a quarter of a second for Iceberg's. Our work needs none.
    """
    context: Any = spark.sparkContext
    saved = context._python_includes
    context._python_includes = [name for name in saved or () if not name.endswith(".jar")]
    try:
        yield
    finally:
        context._python_includes = saved


def forget_jars() -> None:
    """Take jars off the path of this process, if earlier work has put them there. Called in a worker.

    Work that needs them puts them there again.
    """
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(".jar")]
    for entry in [entry for entry in sys.path_importer_cache if entry.endswith(".jar")]:
        del sys.path_importer_cache[entry]
