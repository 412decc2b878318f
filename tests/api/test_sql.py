"""`rookery.sql`: ANALYZE is ours, every other statement is Spark's, errors included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import UsageError
from tests.lakehouse import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.usefixtures("shared_catalog")


@pytest.fixture
def goods(spark: SparkSession, own_table: NewTable) -> str:
    name = own_table("id bigint, `the price` int, At struct<x: int, y: int>", "goods")
    spark.range(0, 12, 1, 1).selectExpr(
        "id", "cast(id % 5 AS int) AS `the price`", "named_struct('x', 1, 'y', cast(id % 2 AS int)) AS At"
    ).writeTo(name).append()
    return name


def answer(spark: SparkSession, text: str) -> dict[str, float]:
    frame = rookery.sql(spark, text)
    assert frame.columns == ["column", "ndv", "ndv_low", "ndv_high", "kind"]
    return {row.column: row.ndv for row in frame.collect()}


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "ANALYZE TABLE {t} COMPUTE STATISTICS FOR ALL COLUMNS",
            {"id": 12, "the price": 5, "At.x": 1, "At.y": 2},
        ),
        ("ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS id, `the price`", {"id": 12, "the price": 5}),
        ("analyze table {t}\n compute statistics\n for columns ID;", {"id": 12}),
        ("ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS at . y", {"At.y": 2}),
        ("ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS `at`", {"At.x": 1, "At.y": 2}),
    ],
)
def test_analyze(spark: SparkSession, lake: Lake, goods: str, text: str, expected: dict[str, int]) -> None:
    assert answer(spark, text.format(t=goods)) == expected
    (statistics,) = lake.load(goods).metadata.statistics
    assert len(statistics.blob_metadata) == len(expected)


def test_names_are_resolved_as_spark_does(spark: SparkSession, goods: str) -> None:
    _, namespace, table = goods.split(".")
    statement = "ANALYZE TABLE {} COMPUTE STATISTICS FOR COLUMNS id"
    assert answer(spark, statement.format(f"{namespace}.{table}")) == {"id": 12}
    assert answer(spark, statement.format(f"`lake` . `{namespace}`.{table}")) == {"id": 12}
    spark.sql(f"USE lake.{namespace}")
    try:
        assert answer(spark, statement.format(table)) == {"id": 12}
    finally:
        for catalog in ("spark_catalog", "lake"):  # to go elsewhere and back forgets the namespace
            spark.catalog.setCurrentCatalog(catalog)


def test_bad_names(spark: SparkSession, goods: str) -> None:
    with pytest.raises(UsageError, match="no column 'nope'"):
        rookery.sql(spark, f"ANALYZE TABLE {goods} COMPUTE STATISTICS FOR COLUMNS nope")
    with pytest.raises(UsageError, match=f"no table {goods}x"):
        rookery.sql(spark, f"ANALYZE TABLE {goods}x COMPUTE STATISTICS FOR ALL COLUMNS")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) AS n FROM {t} WHERE `the price` = 1",
        "SHOW TBLPROPERTIES {t} ('format-version')",
        "DESCRIBE TABLE {t}",
        "-- ANALYZE TABLE x COMPUTE STATISTICS FOR ALL COLUMNS\nSELECT 1",
    ],
)
def test_other_statements_go_to_spark(spark: SparkSession, goods: str, text: str) -> None:
    text = text.format(t=goods)
    expected = spark.sql(text).collect()
    assert rookery.sql(spark, text).collect() == expected


def test_the_session_is_attached(spark: SparkSession, goods: str) -> None:
    rookery.analyze(spark, goods)
    text = f"SELECT id FROM {goods} WHERE id = 5"
    with rookery.attach(spark, cbo=True):
        assert rookery.sql(spark, text).collect() == [(5,)]
        assert spark.conf.get("spark.sql.cbo.enabled") == "true"  # attached already: its options stay
        assert rookery.queries(spark, last=1).queries[0].text == text
    assert rookery.sql(spark, text).collect() == [(5,)]
    assert rookery.queries(spark, last=1).queries[0].text == text
    assert spark.conf.get("spark.sql.cbo.enabled") == "false"


@pytest.mark.parametrize(
    "text",
    [
        "SELEKT 1",
        "SELECT * FROM lake.db.not_there",
        "ANALYZE TABLE {t} COMPUTE STATISTICS",
        "ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS",
        "ANALYZE TABLE spark_catalog.default.t COMPUTE STATISTICS FOR COLUMNS a",
        "ANALYZE TABLE {t} PARTITION (x = 1) COMPUTE STATISTICS FOR ALL COLUMNS",
    ],
)
def test_errors_are_sparks_own(spark: SparkSession, goods: str, text: str) -> None:
    from pyspark.errors import PySparkException

    text = text.format(t=goods)
    with pytest.raises(PySparkException) as sparks:
        spark.sql(text)
    with pytest.raises(PySparkException) as ours:
        rookery.sql(spark, text)
    assert type(ours.value) is type(sparks.value)
    assert ours.value.getCondition() == sparks.value.getCondition()
