"""The embedded session: which Iceberg runs, which catalogs it knows, and that it keeps quiet."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from rookery.api.lake import Lake
from rookery.spark import session
from rookery.spark.sessions import log_path
from rookery.tables.config import CatalogConfig
from rookery.tables.iceberg.opening import open_pyiceberg

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "wort": ["eins", "zwei", "größer"]})


@pytest.fixture
def name(spark: SparkSession) -> Iterator[str]:
    """A name for a table in the shared catalog; the table is dropped at the end."""
    name = f"db.s_{uuid.uuid4().hex[:12]}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name} PURGE")


def rows(table: Table) -> pa.Table:
    return table.scan().to_arrow().sort_by("id").cast(ROWS.schema)


def test_iceberg_version(spark: SparkSession) -> None:
    assert spark._jvm.org.apache.iceberg.IcebergBuild.version() == "1.12.0"
    assert spark.version.startswith("4.1.")


def test_python_does_not_import_from_the_jars(spark: SparkSession) -> None:
    paths = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.path).first()
    assert not [path for path in [*sys.path, *paths] if "iceberg-spark-runtime" in path]


def test_made_by_spark_read_by_python(spark: SparkSession, lake: Lake, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} (id bigint, wort string) USING iceberg")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'eins'), (2, 'zwei'), (3, 'größer')")
    assert rows(lake.load(name)) == ROWS
    assert lake.load(f"lake.{name}").metadata == lake.load(name).metadata


def test_made_by_python_read_by_spark(spark: SparkSession, lake: Lake, name: str) -> None:
    table = lake.catalog.create_table(name, ROWS.schema)
    table.append(ROWS)
    assert spark.sql(f"SELECT * FROM lake.{name} ORDER BY id").toArrow() == ROWS
    spark.sql(f"INSERT INTO {name} VALUES (4, 'vier')")
    assert table.refresh().scan().to_arrow().num_rows == 4


def test_the_catalog_is_the_default(spark: SparkSession, lake: Lake, name: str) -> None:
    assert spark.catalog.currentCatalog() == "lake"
    spark.sql(f"CREATE TABLE {name} (id bigint)")  # with neither catalog nor format named
    assert lake.catalog.table_exists(name)


def test_twice_is_once(spark: SparkSession, lake: Lake) -> None:
    assert session(lake.config) is spark
    assert session("lake") is spark
    assert lake.spark() is spark


def test_what_the_jvm_prints_goes_to_the_log(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    marker = f"printed {uuid.uuid4()}"
    stream = spark._jvm.java.lang.System.err
    stream.println(marker)
    stream.flush()
    assert marker in log_path().read_text()
    assert capfd.readouterr() == ("", "")


@pytest.mark.spark
def test_starting_prints_nothing(tmp_path: Path) -> None:
    """A session of its own: what a JVM says while it starts cannot be caught later."""
    program = "import rookery; print(rookery.connect('lake').spark().range(3).count())"
    home = {"ROOKERY_HOME": str(tmp_path), "PYICEBERG_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **home},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("3\n", "")
    assert "resolving dependencies" in (tmp_path / "logs" / "spark.log").read_text()


def test_a_second_catalog(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "not there yet"
    config = CatalogConfig(
        "other",
        {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"},
    )
    try:
        assert session(config) is spark
        spark.sql("CREATE NAMESPACE other.ns")
        spark.sql("CREATE TABLE other.ns.t AS SELECT 1L AS id, 'eins' AS wort")
        assert rows(open_pyiceberg(config).load_table("ns.t")) == ROWS.slice(0, 1)
        assert spark.catalog.currentCatalog() == "lake"
        spark.sql("DROP TABLE other.ns.t PURGE")
    finally:
        for key in ("", ".type", ".uri", ".warehouse", ".jdbc.schema-version"):
            spark.conf.unset(f"spark.sql.catalog.other{key}")
