"""Tables to analyse, and what is exactly true of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTable = Callable[..., str]


@contextmanager
def tables(spark: SparkSession, namespace: str | None = None) -> Iterator[NewTable]:
    """Give a maker of tables in a namespace of their own; all of it is dropped at the end."""
    namespace = namespace or f"n{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE NAMESPACE lake.{namespace}")
    made: list[str] = []

    def make(columns: str, name: str = "", *, partitioned: str = "", **properties: object) -> str:
        name = f"lake.{namespace}.{name or 't' + uuid.uuid4().hex[:8]}"
        stated = {"format-version": "2", "write.delete.mode": "merge-on-read"}
        stated |= {key.replace("_", "-"): str(value) for key, value in properties.items()}
        said = ", ".join(f"'{key}'='{value}'" for key, value in stated.items())
        by = f"PARTITIONED BY ({partitioned})" if partitioned else ""
        spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {by} TBLPROPERTIES ({said})")
        made.append(name)
        return name

    try:
        yield make
    finally:
        for name in made:
            spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"DROP NAMESPACE lake.{namespace}")


def distinct(spark: SparkSession, table: str, columns: list[str], where: str = "true") -> dict[str, int]:
    """Count exactly, with Spark."""
    counts = ", ".join(f"count(DISTINCT `{column}`) AS `{column}`" for column in columns)
    row = spark.sql(f"SELECT {counts} FROM {table} WHERE {where}").first()
    assert row is not None
    return dict(row.asDict())
