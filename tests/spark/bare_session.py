"""A program whose session has no Iceberg, is then stopped, and then loses its JVM: what each call says."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import rookery


def main() -> None:
    lake = rookery.connect("lake")
    lake.catalog.create_namespace("db")
    rows = pa.table({"id": pa.array(range(100), pa.int64())})
    lake.catalog.create_table("db.t", rows.schema).append(rows)
    table = rookery.table("db.t", lake)
    said: list[tuple[str, str, str, str, bool]] = []

    def tell(state: str, spark: SparkSession) -> None:
        calls: dict[str, Callable[[], Any]] = {
            "analyze": lambda: rookery.analyze(spark, "db.t", lake=lake),
            "scan": lambda: table.scan(spark, "id = 1"),
            "register": lambda: rookery.spark.register(spark),
            "sql": lambda: rookery.sql(spark, "SELECT 1", lake),
            "sql analyze": lambda: rookery.sql(
                spark, "ANALYZE TABLE lake.db.t COMPUTE STATISTICS FOR ALL COLUMNS", lake
            ),
        }
        for name, call in calls.items():
            try:
                call()
            except Exception as error:  # noqa: BLE001  # whatever a call says is what is asked for
                ours = isinstance(error, rookery.RookeryError)
                hint = error.hint if isinstance(error, rookery.RookeryError) else None
                said.append((state, name, str(error), hint or "", ours))
            else:
                said.append((state, name, "", "", True))

    builder = SparkSession.builder.master("local[1]").config("spark.driver.memory", "512m")
    builder = builder.config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    bare = builder.config("spark.ui.enabled", "false").getOrCreate()
    tell("bare", bare)
    bare.stop()
    tell("stopped", bare)
    again = SparkSession.builder.master("local[1]").getOrCreate()
    gateway: Any = again.sparkContext._gateway
    gateway.proc.kill()
    gateway.proc.wait()
    tell("gone", again)
    _, store = table.load()
    sys.stdout.write(json.dumps({"said": said, "states": len(store.states())}) + "\n")


if __name__ == "__main__":
    main()
