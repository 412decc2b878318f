"""`spark.read.format("rookery")`: plain SQL over a pruned table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import UsageError
from rookery.model.cache import clear_caches
from rookery.sidecar import store
from rookery.spark.rookery_source import FilesPartition, RookeryDataSource
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


@contextmanager
def pushdown(spark: SparkSession, enabled: bool) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", str(enabled).lower())
    try:
        yield
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def source(spark: SparkSession, name: str, **options: str) -> DataFrame:
    return spark.read.format("rookery").option("table", name).options(**options).load()


def rows(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


@pytest.mark.parametrize("where", PREDICATES)
def test_rows(spark: SparkSession, name: str, where: str) -> None:
    frame, expected = source(spark, name, where=where), spark.table(name).where(where)
    assert rows(frame) == rows(expected)
    assert frame.schema == expected.schema


def test_a_view_in_plain_sql(spark: SparkSession, name: str) -> None:
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW seen USING rookery "
        f"OPTIONS (table '{name}', where 'id BETWEEN 100 AND 180')"
    )
    text = "SELECT s, count(*) c FROM {} WHERE id BETWEEN 100 AND 180 GROUP BY s ORDER BY s"
    assert spark.sql(text.format("seen")).collect() == spark.sql(text.format(name)).collect()
    assert spark.sql("SELECT count(*) FROM seen").first() == spark.sql(
        f"SELECT count(*) FROM {name} WHERE id BETWEEN 100 AND 180"
    ).first()  # fmt: skip


@pytest.fixture(scope="module")
def relation(spark: SparkSession, name: str) -> Iterator[str]:
    source(spark, name).createOrReplaceTempView("one_relation")
    yield "one_relation"
    spark.catalog.dropTempView("one_relation")


@pytest.mark.parametrize(
    "queries",
    [
        ["SELECT * FROM {t} WHERE id = 5", "SELECT count(*) FROM {t}"],
        ["SELECT count(*) FROM {t} WHERE id < 100", "SELECT count(*) FROM {t} WHERE id > 300"],
        ["SELECT id FROM {t} WHERE id = 5 UNION ALL SELECT id FROM {t} WHERE id = 6"],
        ["SELECT id FROM {t} WHERE id NOT IN (SELECT id FROM {t} WHERE id < 50)"],
        ["SELECT count(*) FROM {t} WHERE id < 9 EXCEPT SELECT count(*) FROM {t}"],
        ["SELECT a.id, b.s FROM {t} a JOIN {t} b ON a.id = b.id + 1 WHERE a.id = 8"],
        ["SELECT a.id, b.s FROM {t} a LEFT JOIN (SELECT * FROM {t} WHERE id > 390) b USING (id)"],
        ["SELECT id, (SELECT max(id) FROM {t} WHERE s = 's1') m FROM {t} WHERE s = 's2'"],
        ["WITH few AS (SELECT * FROM {t} WHERE id < 3) SELECT count(*) FROM few, {t}"],
    ],
)
def test_scans_of_one_relation_do_not_filter_each_other(
    spark: SparkSession, name: str, relation: str, queries: list[str]
) -> None:
    with pushdown(spark, True):
        for query in queries:
            assert rows(spark.sql(query.format(t=relation))) == rows(spark.sql(query.format(t=name)))


@pytest.mark.parametrize("enabled", [False, True], ids=["pushdown off", "pushdown on"])
def test_a_frame_is_filtered_anew_each_time(spark: SparkSession, name: str, enabled: bool) -> None:
    with pushdown(spark, enabled):
        frame = source(spark, name)
        found = [frame.where(f"id < {below}").count() for below in (5, 300)]
        assert found == [spark.table(name).where(f"id < {below}").count() for below in (5, 300)]
        assert frame.count() == spark.table(name).count()


def test_scans_of_one_relation_without_pushdown(spark: SparkSession, name: str, relation: str) -> None:
    query = "SELECT a.id, b.s FROM {t} a LEFT JOIN (SELECT * FROM {t} WHERE id > 390) b USING (id)"
    with pushdown(spark, False):
        assert rows(spark.sql(query.format(t=relation))) == rows(spark.sql(query.format(t=name)))


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


@pytest.mark.parametrize(
    "where, files", [(None, 8), ("id = 77", 1), ("id IN (3, 399)", 2), ("id > 390 AND id = 3", 0)]
)
def test_the_option_where_prunes(name: str, rookery_home: object, where: str | None, files: int) -> None:
    options = {"table": name} if where is None else {"table": name, "where": where}
    reader = RookeryDataSource(options).reader(type("Schema", (), {"names": ["id"]})())  # type: ignore[arg-type]
    partitions = reader.partitions()
    assert sum(len(each.files) for each in partitions if isinstance(each, FilesPartition)) == files


def test_what_is_read_to_plan_is_cached_in_the_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_caches()
    reads: list[str] = []
    read = store.read_state
    monkeypatch.setattr(
        store, "read_state", lambda path, *more, **how: (reads.append(path), read(path, *more, **how))[1]
    )
    for number in (3, 77):
        reader = RookeryDataSource({"table": name, "where": f"id = {number}"}).reader(
            type("Schema", (), {"names": ["id"]})()  # type: ignore[arg-type]
        )
        assert len(reader.partitions()) == 1
        assert len(reads) == 1


def test_local_times_are_in_the_zone_of_the_option(spark: SparkSession, name: str) -> None:
    where = "t < TIMESTAMP '2024-01-01 02:00:00'"
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        expected = rows(spark.table(name).where("t < TIMESTAMP '2024-01-01 11:00:00'"))
        assert rows(source(spark, name, where=where)) == expected
        later = where.replace("02:", "11:")
        assert rows(source(spark, name, where=later, time_zone="Asia/Tokyo")) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_bad_predicate(name: str) -> None:
    with pytest.raises(UsageError, match="no column 'nope'"):
        RookeryDataSource({"table": name, "where": "nope = 1"}).schema()


def test_bad_options(rookery_home: object) -> None:
    with pytest.raises(UsageError, match="no table was named"):
        RookeryDataSource({}).schema()
    with pytest.raises(UsageError, match="there is no table"):
        RookeryDataSource({"table": "db.nowhere"}).schema()
    with pytest.raises(UsageError, match="there is no option 'were'"):
        RookeryDataSource({"table": "db.nowhere", "were": "id = 1"}).schema()


def test_bad_columns_and_snapshots(name: str) -> None:
    with pytest.raises(UsageError, match="there is no column 'nope'"):
        RookeryDataSource({"table": name, "columns": "id,nope"}).schema()
    with pytest.raises(UsageError, match="is not a snapshot"):
        RookeryDataSource({"table": name, "snapshot": "yesterday"}).schema()
