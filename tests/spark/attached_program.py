"""Queries of an attached session, in a program that is submitted: `… EVENTS WANTED URI WAREHOUSE`."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import rookery


def catalog(uri: str, warehouse: str) -> dict[str, str]:
    """The settings of a session of one's own that knows the embedded catalog."""
    return {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.jdbc.schema-version": "V1",
        "spark.sql.catalog.lake.uri": uri.replace("sqlite:///", "jdbc:sqlite:").replace("?timeout=30", ""),
        "spark.sql.catalog.lake.warehouse": warehouse,
    }


def ask(spark: SparkSession, events: str, wanted: str) -> dict[str, Any]:
    """Look up a key, and join by keys; tell the rows and how many files of *events* were read.

    There is no Python for the executors: they need neither Rookery nor an interpreter.
    """
    spark.conf.set("spark.sql.execution.pyspark.python", "/nowhere/python")
    texts = {
        "lookup": f"SELECT id FROM {events} WHERE key = md5('77')",
        "join": f"SELECT e.id FROM {events} e JOIN {wanted} w ON e.key = w.key WHERE w.id IN (3, 503)",
    }
    told = {}
    with rookery.attach(spark, least_bytes=0):
        for name, text in texts.items():
            rows = sorted(row.id for row in spark.sql(text).collect())
            (query,) = rookery.queries(spark, last=1).queries
            (scan,) = (scan for scan in query.tables if scan.table == events)
            told[name] = {"rows": rows, "files": scan.files_read, "by": scan.skipped_by}
    return told


def main(events: str, wanted: str, uri: str, warehouse: str) -> None:
    builder = SparkSession.builder
    for key, value in catalog(uri, warehouse).items():
        builder = builder.config(key, value)
    told = ask(builder.getOrCreate(), events, wanted)
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
