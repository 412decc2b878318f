"""An analysis in this process: states, segments and statistics are those of Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.analyze import AnalyzeReport
from rookery.api.lake import Lake
from rookery.collect import distributions, run
from rookery.model import UsageError
from rookery.sidecar import State
from rookery.sketch.blob_types import HLL_V1
from tests.interop.analysis import blobs_of, compute_table_stats, kept, statistics_path
from tests.interop.conftest import NewTable
from tests.interop.test_carried_blobs import UNKNOWN, register_foreign
from tests.interop.test_statistics_file import planned_rows
from tests.safety.watch import folder

ROWS = 180  # quantiles of so few values are exact
COLUMNS = """id bigint, word string, amount decimal(9, 2), day date, ratio double,
    place struct<city: string, at: timestamp>, tags array<string>, sizes map<string, int>"""
VALUES = (
    "id",
    "concat('w', id % 70) AS word",
    "CAST(id % 31 AS decimal(9, 2)) AS amount",
    "date_add(DATE '2024-01-01', CAST(id % 40 AS int)) AS day",
    "id / 7 AS ratio",
    "named_struct('city', IF(id % 5 = 0, null, concat('c', id % 9)), 'at', timestamp_seconds(id)) AS place",
    "array(concat('t', id % 3), concat('t', id % 11)) AS tags",
    "map('a', CAST(id % 13 AS int)) AS sizes",
)
OPTIONS: dict[str, Any] = {
    "histogram": ["amount", "day"],
    "top_k": ["word"],
    "column_sets": [["word", "day"], ["amount", "id"]],
}


@pytest.fixture
def on_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark's tasks read small files too."""
    monkeypatch.setattr(run, "LOCAL_BYTES", 0)
    monkeypatch.setattr(distributions, "LOCAL_BYTES", 0)


def append(spark: SparkSession, name: str, start: int, files: int = 3) -> None:
    spark.range(start, start + ROWS, 1, files).selectExpr(*VALUES).writeTo(name).append()


@dataclass
class Result:
    """All that an analysis has left, and what it reported."""

    state: State
    segments: list[bytes]
    statistics: bytes
    report: AnalyzeReport


def analyzed(spark: SparkSession, lake: Lake, name: str, engine: str, **options: Any) -> Result:
    report = rookery.analyze(spark, name, lake=lake, engine=engine, **options)
    state = kept(name, lake)
    segments = [(folder(lake, name) / entry.name).read_bytes() for entry in state.header.segments]
    path = Path(statistics_path(name, lake).removeprefix("file:"))
    return Result(state, segments, path.read_bytes(), report)


def spread(state: State) -> dict[int, Any]:
    """Quantiles and frequent values; their sketches hold values in any order."""
    ranks = [0, 0.25, 0.5, 0.75, 1]
    found: dict[int, Any] = {key: each.at(ranks) for key, each in state.quantiles.items()}
    return found | {key: dict(each.top(ROWS)) for key, each in state.frequent.items()}


def assert_same(local: Result, other: Result) -> None:
    unnamed = [
        replace(
            each.state.header,
            statistics_at={},  # when they were declared
            segments=tuple(replace(entry, name="") for entry in each.state.header.segments),
        )
        for each in (local, other)
    ]
    assert unnamed[0] == unnamed[1]
    assert local.state.files == other.state.files
    assert local.state.thetas == other.state.thetas
    assert local.segments == other.segments
    assert local.statistics == other.statistics
    assert spread(local.state) == spread(other.state)
    same = [field.name for field in fields(AnalyzeReport) if field.name != "seconds"]
    assert [getattr(local.report, each) for each in same] == [getattr(other.report, each) for each in same]


@pytest.mark.parametrize("version", [1, 2])
def test_the_same_as_on_spark(
    spark: SparkSession, lake: Lake, new_table: NewTable, on_executors: None, version: int
) -> None:
    name = new_table(COLUMNS, version=version)
    append(spark, name, 0)
    append(spark, name, ROWS // 2)
    table = rookery.table(name, lake)
    table.add_index("bloom", "id")
    table.add_index("bitmap", "word")
    by_spark = analyzed(spark, lake, name, "spark", **OPTIONS)
    assert len(by_spark.state.header.indexes) == 2
    local = analyzed(spark, lake, name, "local", full=True, **OPTIONS)
    assert local.report.committed
    assert_same(local, by_spark)
    append(spark, name, 5 * ROWS)
    refreshed = analyzed(spark, lake, name, "local")
    assert refreshed.report.files_read == 3
    assert not rookery.analyze(spark, name, lake=lake, engine="spark").committed
    assert rookery.table(name, lake).count(f"id = {5 * ROWS + 7} AND word = 'w{(5 * ROWS + 7) % 70}'") == 1


def test_files_with_deletes(spark: SparkSession, lake: Lake, new_table: NewTable, on_executors: None) -> None:
    name = new_table(COLUMNS)
    append(spark, name, 0)
    spark.sql(f"DELETE FROM {name} WHERE id % 7 = 3")
    by_spark = analyzed(spark, lake, name, "spark", **OPTIONS)
    assert by_spark.report.chunks["engine"]
    local = analyzed(spark, lake, name, "local", full=True, **OPTIONS)
    assert not local.report.chunks.get("engine")
    same = replace(local.report, chunks=by_spark.report.chunks)
    assert_same(replace(local, report=same), by_spark)
    assert local.report.rows_read == ROWS - len(range(3, ROWS, 7))


def metadata_of(lake: Lake, name: str) -> dict[str, Any]:
    location = lake.load(name).metadata_location
    text = Path(location.removeprefix("file:")).read_text()
    metadata: dict[str, Any] = json.loads(text, object_hook=_without_empty_keys)
    return metadata


def _without_empty_keys(stated: dict[str, Any]) -> dict[str, Any]:
    """Java omits an empty list of identifier fields, PyIceberg states it."""
    return {key: value for key, value in stated.items() if (key, value) != ("identifier-field-ids", [])}


@pytest.mark.parametrize("version", [1, 2])
def test_what_others_have_in_the_metadata_stays(
    spark: SparkSession, lake: Lake, new_table: NewTable, cost_based: None, version: int
) -> None:
    """Snapshots, branches, tags, properties, orders, and the statistics of other snapshots."""
    name = new_table("id bigint, word string COMMENT 'a word'", version=version)
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id)")
    for start in (0, ROWS):
        spark.range(start, start + ROWS, 1, 1).selectExpr("id", "concat('w', id % 9) AS word").writeTo(
            name
        ).append()
        compute_table_stats(spark, name)
    spark.sql(f"CALL lake.system.compute_partition_stats(table => '{name}')")
    spark.sql(f"ALTER TABLE {name} CREATE TAG first RETAIN 30 DAYS")
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH work")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('theirs'='of theirs')")
    spark.sql(f"ALTER TABLE {name} WRITE ORDERED BY id DESC")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN later int")
    before = metadata_of(lake, name)
    assert rookery.analyze(spark, name, lake=lake, engine="local").committed
    after = metadata_of(lake, name)
    differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert differing <= {"statistics", "last-updated-ms", "metadata-log"}
    assert after["metadata-log"][:-1] == before["metadata-log"]
    assert after["last-updated-ms"] >= before["last-updated-ms"]
    current = after["current-snapshot-id"]
    theirs = [each for each in before["statistics"] if each["snapshot-id"] != current]
    assert theirs
    assert [each for each in after["statistics"] if each["snapshot-id"] != current] == theirs
    spark.sql(f"REFRESH TABLE {name}")
    assert planned_rows(spark.sql(f"SELECT * FROM {name} WHERE word = 'w1'")) == 2 * ROWS / 9


@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
def test_blobs_of_others_are_carried(
    spark: SparkSession, lake: Lake, new_table: NewTable, is_named: bool
) -> None:
    name = new_table("id bigint, word string")
    spark.range(0, ROWS, 1, 1).selectExpr("id", "concat('w', id % 7) AS word").writeTo(name).append()
    register_foreign(spark, lake, name, is_named=is_named)
    assert rookery.analyze(spark, name, lake=lake, engine="local").committed
    assert {HLL_V1, UNKNOWN} <= {blob.type for blob in blobs_of(statistics_path(name, lake))}
    (file,) = lake.load(name).metadata.statistics
    assert (HLL_V1 in {blob.type for blob in file.blob_metadata}) == is_named
    assert not rookery.analyze(spark, name, lake=lake, engine="spark").committed


def test_left_to_spark(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """What this process cannot do is refused before anything is written; `auto` does it on Spark."""
    newer, orc = new_table("id bigint", version=3), new_table("id bigint")
    spark.sql(f"ALTER TABLE {orc} SET TBLPROPERTIES ('write.format.default'='orc')")
    for name, why in ((newer, "format version 3"), (orc, "1 file of format ORC")):
        spark.range(0, 9, 1, 1).writeTo(name).append()
        with pytest.raises(UsageError, match=why) as raised:
            rookery.table(name, lake).analyze(engine="local")
        assert "spark" in (raised.value.hint or "")
        assert not folder(lake, name).exists()
        asked: list[bool] = []

        def session(asked: list[bool] = asked) -> SparkSession:
            asked.append(True)
            return spark

        assert rookery.analyze(session, name, lake=lake).committed
        assert asked
    assert [column.ndv for column in rookery.table(orc, lake).stats().columns] == [9]


def test_files_without_field_ids(
    spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path: Path
) -> None:
    """That columns are found by name shows only when a file is read: `auto` begins again on Spark."""
    name = new_table("id bigint")
    source = f"`parquet`.`{tmp_path}/plain`"
    spark.range(0, 9, 1, 1).write.parquet(f"{tmp_path}/plain")
    spark.sql(f"CALL lake.system.add_files(table => '{name}', source_table => '{source}')")
    with pytest.raises(UsageError, match="has no field ids"):
        rookery.table(name, lake).analyze(engine="local")
    assert lake.load(name).metadata.statistics == []
    assert rookery.analyze(lambda: spark, name, lake=lake).chunks == {"engine": 1}


def test_a_session_that_is_given_is_used(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table("id bigint")
    spark.range(0, 9, 1, 1).writeTo(name).append()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rookery.tables.iceberg.commit.register_statistics", None)
        assert rookery.analyze(spark, name, lake=lake).committed
        spark.range(0, 9, 1, 1).writeTo(name).append()
        assert rookery.table(name, spark=spark).analyze().committed
