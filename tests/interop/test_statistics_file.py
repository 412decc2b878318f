"""A statistics file of ours, registered through Java, seen by PyIceberg and used by Spark's optimizer."""

from __future__ import annotations

from pathlib import Path

import datasketches
import pytest
from pyspark.sql import DataFrame, SparkSession

from rookery.api.lake import Lake
from rookery.puffin import THETA_V1, Blob, Writer, WrittenFile, open_puffin
from rookery.sketch import ThetaSketch
from tests.interop.conftest import NewTable
from tests.interop.java import IcebergJava

ROWS = 9_000
WORDS = 8


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def table(spark: SparkSession, new_table: NewTable, request: pytest.FixtureRequest) -> str:
    name = new_table("id bigint, word string", version=request.param)
    spark.range(ROWS).selectExpr("id", f"concat('w', id % {WORDS}) AS word").writeTo(name).append()
    return name


def sketch_of_words() -> ThetaSketch:
    sketch = datasketches.update_theta_sketch()
    for number in range(WORDS):
        sketch.update(f"w{number}")
    return ThetaSketch.decode(sketch.compact().serialize())


def write_statistics(java: IcebergJava, name: str, sketches: dict[int, ThetaSketch]) -> WrittenFile:
    table = java.table(name)
    snapshot = table.currentSnapshot()
    location = f"{table.location()}/metadata/{snapshot.snapshotId()}-rookery.stats"
    with Writer(location) as writer:
        for field, sketch in sketches.items():
            writer.add(
                Blob(
                    THETA_V1,
                    sketch.encode(),
                    fields=(field,),
                    snapshot_id=snapshot.snapshotId(),
                    sequence_number=snapshot.sequenceNumber(),
                    properties={"ndv": str(int(sketch.estimate().value))},
                )
            )
    java.register_statistics(name, snapshot.snapshotId(), writer.written)
    return writer.written


def planned_rows(frame: DataFrame) -> int:
    """What the optimizer expects the query to return."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().rowCount().get()))


def test_pyiceberg_lists_it(lake: Lake, java: IcebergJava, table: str) -> None:
    written = write_statistics(java, table, {2: sketch_of_words()})
    loaded = lake.load(table)
    (statistics,) = loaded.metadata.statistics
    assert statistics.snapshot_id == loaded.metadata.current_snapshot_id
    assert statistics.statistics_path == written.location
    assert (
        statistics.file_size_in_bytes
        == written.size
        == Path(written.location.removeprefix("file:")).stat().st_size
    )
    assert statistics.file_footer_size_in_bytes == written.footer_size
    (blob,) = statistics.blob_metadata
    assert (blob.type, blob.fields, blob.properties) == (THETA_V1, [2], {"ndv": str(WORDS)})
    sizes = {"file_size": statistics.file_size_in_bytes, "footer_size": statistics.file_footer_size_in_bytes}
    with open_puffin(statistics.statistics_path, **sizes) as reader:
        assert ThetaSketch.decode(reader.read(reader.blob(0))) == sketch_of_words()


def test_spark_plans_with_it(spark: SparkSession, java: IcebergJava, table: str, cost_based: None) -> None:
    query = f"SELECT * FROM {table} WHERE word = 'w1'"
    assert planned_rows(spark.sql(query)) == ROWS  # nothing is known: all rows may match
    write_statistics(java, table, {2: sketch_of_words()})
    assert planned_rows(spark.sql(query)) == ROWS / WORDS
    assert "rowCount=1.13E+3" in spark.sql(f"EXPLAIN COST {query}").first()[0]


def test_it_takes_the_place_of_icebergs_own(
    spark: SparkSession, lake: Lake, java: IcebergJava, table: str, cost_based: None
) -> None:
    """The sketches that Iceberg computed, in a file of ours: the same plans from another writer."""
    (row,) = spark.sql(f"CALL lake.system.compute_table_stats(table => '{table}')").collect()
    with open_puffin(row.statistics_file) as reader:
        sketches = {
            blob.fields[0]: ThetaSketch.decode(payload)
            for blob, payload in reader.read_many(reader.metadata.blobs)
        }
    assert sketches.keys() == {1, 2}
    assert sketches[2] == sketch_of_words()  # two engines, one hash
    queries = [f"SELECT * FROM {table} WHERE {condition}" for condition in ("word = 'w1'", "id = 17")]
    before = [planned_rows(spark.sql(query)) for query in queries]
    written = write_statistics(java, table, sketches)
    assert [file.statistics_path for file in lake.load(table).metadata.statistics] == [written.location]
    assert [planned_rows(spark.sql(query)) for query in queries] == before
    assert max(before) < ROWS
