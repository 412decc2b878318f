"""`spark.read.format("rookery")`: plain SQL over a pruned table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import UsageError
from rookery.spark.rookery_source import FilesPartition, RookeryDataSource, RookeryReader
from tests.lakehouse import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PREDICATES = [
    "id = 77", "id IN (3, 5, 399)", "id > 390 AND s LIKE 's1%'", "NOT (id > 5)", "s IS NULL", "n.x = 3",
    "d >= DATE'2024-12-01'", "t < TIMESTAMP'2024-01-01 02:00:00'", "p = 1.50", "f = double('NaN')", "id = -1",
    "s <=> 's3'", "id = 5 OR s = 's2'",
]  # fmt: skip


@pytest.fixture(scope="module")
def name(spark: SparkSession, lake: Lake) -> Iterator[str]:
    with tables(spark) as make:
        name = make(
            "id bigint, s string, d date, t timestamp, p decimal(9,2), f double, "
            "n struct<x: int>, a array<int>",
            **{"format-version": 3},
        )
        spark.range(0, 400, 1, 1).selectExpr(
            "id", "IF(id % 11 = 0, NULL, concat('s', id % 20)) s",
            "date_add(DATE'2024-01-01', CAST(id AS int)) d",
            "timestamp_seconds(1704067200 + id * 60) t", "CAST(id / 2 AS decimal(9,2)) p",
            "IF(id % 50 = 0, double('NaN'), id) f", "named_struct('x', CAST(id % 7 AS int)) n",
            "array(1, CAST(id AS int)) a",
        ).repartitionByRange(8, "id").writeTo(name).append()  # fmt: skip
        rookery.table(name, lake).add_index("bitmap", "s")
        rookery.analyze(spark, name, lake=lake)
        spark.sql(f"DELETE FROM {name} WHERE id % 13 = 0")
        yield name


@pytest.fixture
def pruned(spark: SparkSession, name: str) -> DataFrame:
    return spark.read.format("rookery").option("table", name).load()


@pytest.mark.parametrize("where", PREDICATES)
def test_rows(spark: SparkSession, name: str, pruned: DataFrame, where: str) -> None:
    expected = spark.table(name).where(where)
    found = pruned.where(where)
    assert pruned.schema == spark.table(name).schema
    assert sorted(map(repr, found.collect())) == sorted(map(repr, expected.collect()))


def test_a_view_in_plain_sql(spark: SparkSession, name: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen USING rookery OPTIONS (table '{name}')")
    text = "SELECT s, count(*) c FROM {} WHERE id BETWEEN 100 AND 180 GROUP BY s ORDER BY s"
    assert spark.sql(text.format("seen")).collect() == spark.sql(text.format(name)).collect()


def test_columns(spark: SparkSession, name: str) -> None:
    reader = spark.read.format("rookery").option("table", name)
    assert reader.option("columns", "id, S").load().where("id = 7").collect()[0].asDict() == {
        "id": 7,
        "s": "s7",
    }
    assert spark.read.format("rookery").schema("id bigint").option("table", name).load().count() == 400 - 31


def test_time_travel(spark: SparkSession, name: str) -> None:
    first = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at").first()
    assert first is not None
    old = spark.read.format("rookery").option("table", name).option("snapshot", str(first[0])).load()
    assert old.count() == 400


def reader_of(name: str) -> RookeryReader:
    source = RookeryDataSource({"table": name})
    reader = source.reader(type("Schema", (), {"names": ["id"]})())  # type: ignore[arg-type]
    assert isinstance(reader, RookeryReader)
    return reader


def test_filters_prune(name: str, lake: Lake, rookery_home: object) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan, In

    for filters, files in (([], 8), ([EqualTo(("id",), 77)], 1), ([In(("id",), (3, 399, None))], 2),
                           ([GreaterThan(("id",), 390), EqualTo(("id",), 3)], 0)):  # fmt: skip
        reader = reader_of(name)
        assert list(reader.pushFilters(filters)) == filters  # Spark applies them again
        partitions = reader.partitions()
        assert sum(len(found.files) for found in partitions if isinstance(found, FilesPartition)) == files


def test_bad_options(rookery_home: object) -> None:
    with pytest.raises(UsageError, match="no table was named"):
        RookeryDataSource({}).schema()
    with pytest.raises(UsageError, match="there is no table"):
        RookeryDataSource({"table": "db.nowhere"}).schema()


def test_bad_columns_and_snapshots(name: str) -> None:
    with pytest.raises(UsageError, match="there is no column 'nope'"):
        RookeryDataSource({"table": name, "columns": "id,nope"}).schema()
    with pytest.raises(UsageError, match="no snapshot"):
        RookeryDataSource({"table": name, "snapshot": "yesterday"}).schema()
