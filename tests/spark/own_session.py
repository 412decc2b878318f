"""A program with a cluster that analyses a table and queries two: `… TABLE EVENTS WANTED URI WAREHOUSE`."""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn

from pyspark.sql import SparkSession

import rookery
from rookery.collect import run
from rookery.spark.catalogs import ICEBERG_RUNTIME, SQLITE_JDBC
from tests.spark.attached_program import ask, catalog

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # not compiled for a long run


def tasks_by_executor(spark: SparkSession) -> dict[str, int]:
    context: Any = spark.sparkContext
    found = context._jsc.sc().statusStore().executorList(False)
    return {found.apply(i).id(): found.apply(i).totalTasks() for i in range(found.size())}


def not_here(*_: object) -> NoReturn:
    raise AssertionError("the driver read a file")


def main(table: str, events: str, wanted: str, uri: str, warehouse: str) -> None:
    mine = catalog(uri, warehouse) | {
        "spark.jars.packages": f"{ICEBERG_RUNTIME},{SQLITE_JDBC}",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "3",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("mine")
    quick = {f"spark.{where}.extraJavaOptions": QUICK for where in ("driver", "executor")}  # Spark adds to it
    for key, value in (mine | quick).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    run.LOCAL_BYTES = 0
    run._run_here = not_here  # type: ignore[assignment]
    report = rookery.analyze(spark, table)
    tasks = tasks_by_executor(spark)
    told = {
        "columns": {column.name: column.ndv for column in report.columns},
        "chunks": report.chunks,
        "files": report.files_read,
        "tasks": tasks,
        "unchanged": {key: spark.conf.get(key) for key in mine} == mine,
        "catalog": spark.catalog.currentCatalog(),
        "rows": spark.table(table).count(),  # the session is not stopped
        "is_the_active_one": SparkSession.getActiveSession() is spark,
        "connected": rookery.connect("lake").spark() is spark,
        "attached": ask(spark, events, wanted),
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
