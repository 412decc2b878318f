"""Tables in folders whose names mean something in a URL: every call takes the location as it stands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.io.file_io import LocationFileIO
from rookery.maintain.pipeline import maintain_table
from rookery.maintain.steps.step import Outcome
from tests.maintain.tending import BRISK, maintained_of, missing_files

ODD = ["q?x=1#f", "a%20b%zz", "a b+c&d=e [a]{b}*ä–ö;'\\:"]
NAMESPACE = "odd_locations"


@pytest.fixture(scope="module", autouse=True)
def namespace(spark: SparkSession) -> Iterator[None]:
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")
    yield
    spark.sql(f"DROP NAMESPACE lake.{NAMESPACE}")


@pytest.mark.parametrize("odd", ODD)
def test_all_calls(spark: SparkSession, lake: Lake, tmp_path: Path, odd: str) -> None:
    name, folder = f"lake.{NAMESPACE}.t{ODD.index(odd)}", tmp_path / odd / "t"
    location = f"file:{folder}".replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(
        f"CREATE TABLE {name} (id bigint, word string) USING iceberg LOCATION '{location}' "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    try:
        spark.sql(f"INSERT INTO {name} SELECT id, concat('w', id % 10) FROM range(0, 100, 1, 6)")
        lake.load(name).append(pa.table({"id": [1000], "word": ["x"]}))
        spark.catalog.refreshTable(name)
        spark.sql(f"DELETE FROM {name} WHERE id = 7")
        table = rookery.table(name, lake)
        table.add_index("bloom", "id")
        assert {c.name: c.ndv for c in rookery.analyze(spark, name, lake=lake).columns} == {
            "id": 100,
            "word": 11,
        }
        assert all(column.coverage == 1 for column in table.stats().columns)
        assert (table.read("id = 5").num_rows, table.count("id = 7"), table.count("id < 10")) == (1, 0, 9)
        assert table.scan(spark, "id = 5").count() == 1
        assert spark.read.format("rookery").option("table", name).load().where("id = 5").count() == 1
        assert rookery.sql(spark, f"SELECT * FROM {name} WHERE id = 1000", lake).count() == 1
        run = maintain_table(maintained_of(lake, name, spark, replace(BRISK)))
        assert run.outcome is Outcome.DONE, run
        assert missing_files(lake, name) == []
        assert table.count() == 100
        assert os.listdir(tmp_path) == [odd]
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_a_deleted_file_is_the_one_that_was_named(tmp_path: Path) -> None:
    io = LocationFileIO()
    for path in (tmp_path / "a", tmp_path / "a#b", tmp_path / "a?b"):
        with io.new_output(f"file:{path}").create() as stream:
            stream.write(path.name.encode())
    assert io.new_input(f"file://{tmp_path}/a#b").open().read() == b"a#b"
    io.delete(io.new_input(f"file:{tmp_path}/a#b"))
    io.delete(f"{tmp_path}/a?b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("location", "parsed"),
    [
        ("s3://bucket/a?b#c", ("s3", "bucket", "bucket/a?b#c")),
        ("S3A://bucket/a%20b", ("s3a", "bucket", "bucket/a%20b")),
        ("hdfs://host:8020/a;b", ("hdfs", "host:8020", "/a;b")),
        ("gs://bucket", ("gs", "bucket", "bucket")),
        ("file:/a#b", ("file", "", "/a#b")),
    ],
)
def test_locations_are_not_parsed_as_urls(location: str, parsed: tuple[str, str, str]) -> None:
    assert LocationFileIO.parse_location(location) == parsed
