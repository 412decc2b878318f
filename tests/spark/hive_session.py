"""A program whose session has a Hive metastore as its catalog: what attached queries read of a table in it.

Run as `python -m tests.spark.hive_session FOLDER`. The metastore is Hive's own, from the jars that Spark
includes; it runs in the JVM of the session and keeps its tables in Derby.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake

FILES, ROWS = 10, 1_000
NAME = "prod.db.events"


def session(lake: Lake, folder: Path) -> SparkSession:
    """Start a session that has the catalog `prod`, which the configuration of Python lacks."""
    hive = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/metastore;create=true",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.metastore.schema.verification": "false",
        "datanucleus.connectionPoolingType": "none",  # Spark lacks the jars of the default one
        "iceberg.engine.hive.lock-enabled": "false",  # whose tables are not created
    }
    catalog = "spark.sql.catalog.prod"
    conf = {f"spark.hadoop.{key}": value for key, value in hive.items()}
    conf |= {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hive",
        f"{catalog}.warehouse": str(folder / "warehouse"),
    }
    spark = lake.spark(master="local[2]", conf={"spark.driver.memory": "1g", **conf})
    jvm: Any = spark._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(folder / "derby.log"))
    return spark


def fill(spark: SparkSession) -> None:
    """Create a table in which only sketches tell which files have a key or a word."""
    spark.sql("CREATE NAMESPACE prod.db")
    spark.sql(f"CREATE TABLE {NAME} (id bigint, key string, word string) USING iceberg")
    rows = spark.range(0, ROWS, 1, FILES)
    columns = "id", "md5(cast(id AS string)) AS key", f"md5(cast(id DIV {ROWS // FILES} AS string)) AS word"
    rows.selectExpr(*columns).writeTo(NAME).option("distribution-mode", "none").append()


def look_up(spark: SparkSession, where: str) -> dict[str, Any]:
    """Run a plain query; tell whether its rows are right, and how many files each scan has read."""
    text = f"SELECT id FROM {NAME} WHERE {where}"
    alone = spark.newSession().sql(text).collect()
    found = spark.sql(text).collect()
    scans = [scan for query in rookery.queries(spark).queries if query.text == text for scan in query.tables]
    return {
        "rows": len(found),
        "right": sorted(found) == sorted(alone),
        "files_read": [scan.files_read for scan in scans],
    }


def main(folder: str) -> None:
    lake = rookery.connect("lake")
    spark = session(lake, Path(folder))
    fill(spark)
    report = rookery.analyze(spark, NAME)
    (status,) = rookery.connect("prod", spark=spark).status("db.*").tables
    told = {
        "files": report.files_read,
        "committed": report.committed,
        "status": status.table,
        "word": look_up(spark, "word = md5('3')"),
        "key": look_up(spark, "key = md5('777')"),
        "absent": look_up(spark, "key = md5('1777')"),
    }
    sys.stdout.write(json.dumps(told) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
