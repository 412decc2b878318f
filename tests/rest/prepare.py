"""A program with a session of its own for a REST catalog: makes a table, analyses it, tells what it saw.

Run as `python -m tests.rest.prepare TABLE SECRET…`, with the catalogs configured in `.pyiceberg.yaml`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import requests
from pyspark.sql import SparkSession

import rookery
from tests.rest.catalog_server import AS_CREDENTIALS, NEW_KEYS

FILES, ROWS = 20, 20_000


def exposed(secrets: list[str]) -> list[str]:
    """Return where any user of the machine could read one of the secrets: in a command line."""
    mine = str(os.getpid())  # on whose command line the test itself has put them
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue  # ended meanwhile
        if process.name != mine and any(secret in line for secret in secrets) and "java" in line:
            found.append(line[:200])
    return found


def environments(spark: SparkSession, secrets: list[str]) -> list[str]:
    """Return which variables of the JVM hold a secret."""
    variables = dict(spark._jvm.java.lang.System.getenv())
    return [name for name, value in variables.items() if any(secret in value for secret in secrets)]


def attached_lookups(spark: SparkSession, name: str) -> dict[str, tuple[list[str], list[int]]]:
    """Look a key up by plain SQL; return what was found, and how many files were read, by catalog.

    Python does not know the second catalog. The server sends it the keys of the store in another way.
    """
    for key, value in spark.conf.getAll.items():
        if key.startswith("spark.sql.catalog.prod"):
            spark.conf.set(key.replace("prod", "sparks_own", 1), value)
    spark.conf.set(f"spark.sql.catalog.sparks_own.header.{AS_CREDENTIALS}", "true")
    found = {}
    for catalog in ("prod", "sparks_own"):
        table = name.replace("prod", catalog, 1)
        text = f"SELECT word FROM {table} WHERE id = 4712"
        words = [row.word for row in spark.sql(text).collect()]
        scans = [
            scan for query in rookery.queries(spark).queries if query.text == text for scan in query.tables
        ]
        found[catalog] = words, [scan.files_read for scan in scans]
    return found


def through_the_session(spark: SparkSession, name: str) -> dict[str, Any]:
    """Use a table of a catalog that Python does not know, also when the keys of its store have expired."""
    name = name.replace("prod", "sparks_own", 1)
    handle = rookery.table(name, spark=spark)
    _, store = handle.load()
    told = {"freshness": handle.stats().freshness, "count": handle.count("id = 4712")}
    uri = handle.lake.properties["uri"]
    requests.post(f"{uri}{NEW_KEYS}", timeout=60).raise_for_status()
    told["states"] = len(store.states())
    spark.sql(f"INSERT INTO {name} VALUES (-1, 'new')")
    report = rookery.analyze(spark, name)
    return told | {"files_read": report.files_read, "count of new": handle.count("id = -1")}


def main(name: str, *secrets: str) -> None:
    lake = rookery.connect("prod")
    spark = lake.spark(master="local[2]", conf={"spark.driver.memory": "1g"})
    spark.sql(f"CREATE TABLE {name} (id bigint, word string) USING iceberg")
    frame = spark.range(0, 2 * ROWS, 2).selectExpr("id", "concat('word ', id % 1000) AS word")
    frame.repartitionByRange(FILES, "word").writeTo(name).append()
    handle = rookery.table(name, lake)
    handle.add_index("bloom", "id", fpp=1e-6)
    report = rookery.analyze(spark, name, lake=lake)
    folder = lake.load(name).location() + "/metadata"
    puffin = spark.read.format("puffin").option("table", name).load(folder)
    shown = spark.sql("SET -v").where("key LIKE 'spark.sql.catalog.%'").collect()
    shown += spark.sql("SET").collect()
    told = {
        "packages": spark.conf.get("spark.jars.packages"),
        "exposed": exposed(list(secrets)),
        "environment": environments(spark, list(secrets)),
        "shown": [row.key for row in shown if any(secret in str(row.value) for secret in secrets)],
        "files_read": report.files_read,
        "ndv": {column.name: column.ndv for column in report.columns},
        "rows": spark.newSession().table(name).where("id >= 200").count(),
        "attached": attached_lookups(spark, name),
        "scanned": handle.scan(spark, "id = 4712").count(),
        "source": spark.read.format("rookery").option("table", name).load().where("id = 4712").count(),
        "blobs": puffin.count(),
        "freshness": handle.stats().freshness,
    }
    told["through the session"] = through_the_session(spark, name)
    sys.stdout.write(json.dumps(told) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
