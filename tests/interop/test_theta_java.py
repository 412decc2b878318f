"""Theta sketches between Rookery, the DataSketches that Iceberg ships, and the one for Python."""

from __future__ import annotations

import datasketches
import numpy as np
import pytest
from pyspark.sql import SparkSession

from rookery.puffin import THETA_V1, BlobMetadata, open_puffin
from rookery.sketch import MAX_THETA, ThetaSketch
from tests.interop.conftest import NewTable
from tests.interop.java import IcebergJava, JavaSketch

ROWS = 20_000
COLUMNS = {
    "a_boolean": "id % 2 = 0",
    "an_int": "cast(id % 1000 AS int)",
    "a_long": "id",
    "a_float": "cast(id AS float) / 3",
    "a_double": "cast(id % 7000 AS double) / 7",
    "a_decimal": "cast(id % 300 AS decimal(20, 2)) / 4",
    "a_date": "date_add(DATE'2020-01-01', cast(id % 365 AS int))",
    "a_timestamp": "timestamp_micros(id * 1000003)",
    "a_local_timestamp": "cast(timestamp_micros(id % 5000) AS timestamp_ntz)",
    "a_string": "concat('wert ä ', id)",
    "a_binary": "unhex(lpad(hex(id % 4097), 6, '0'))",
    "one_value": "'only'",
    "no_value": "cast(NULL AS string)",
    "mostly_null": "if(id % 100 = 0, id, NULL)",
}
DISTINCT = {
    "a_boolean": 2,
    "an_int": 1000,
    "a_decimal": 300,
    "a_date": 365,
    "one_value": 1,
    "no_value": 0,
    "mostly_null": 200,
}
Blobs = dict[str, tuple[BlobMetadata, bytes]]


def compute_stats(spark: SparkSession, name: str) -> Blobs:
    """Have Iceberg compute statistics, and read its blobs, by column."""
    (row,) = spark.sql(f"CALL lake.system.compute_table_stats(table => '{name}')").collect()
    fields = [field.name for field in spark.table(name).schema]
    with open_puffin(row.statistics_file) as reader:
        blobs = reader.read_many(reader.metadata.blobs)
        return {fields[blob.fields[0] - 1]: (blob, payload) for blob, payload in blobs}


def assert_same(ours: ThetaSketch, java: JavaSketch) -> None:
    assert (ours.theta, len(ours.hashes)) == (java.theta, java.retained)
    assert ours.estimate().value == pytest.approx(java.estimate, rel=1e-14)
    for deviations, bounds in java.bounds.items():
        estimate = ours.estimate(deviations)
        assert (estimate.low, estimate.high) == pytest.approx(bounds, rel=1e-12)


def python_sketch(distinct: int, lg_k: int = 12) -> datasketches.compact_theta_sketch:
    sketch = datasketches.update_theta_sketch(lg_k)
    for value in range(distinct):
        sketch.update(value)
    return sketch.compact()


@pytest.fixture
def table(spark: SparkSession, new_table: NewTable) -> str:
    frame = spark.range(ROWS).selectExpr(*(f"{sql} AS {name}" for name, sql in COLUMNS.items()))
    columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)
    name = new_table(columns)
    frame.writeTo(name).append()
    return name


def test_every_column_of_compute_table_stats(spark: SparkSession, java: IcebergJava, table: str) -> None:
    blobs = compute_stats(spark, table)
    assert blobs.keys() == COLUMNS.keys()
    estimating = 0
    for column, (blob, payload) in blobs.items():
        assert (blob.type, blob.codec) == (THETA_V1, "zstd")
        sketch = ThetaSketch.decode(payload)
        assert int(sketch.estimate().value) == int(blob.properties["ndv"]), column  # Java cuts, not rounds
        assert_same(sketch, java.theta(payload))
        estimating += sketch.theta < MAX_THETA
        if column in DISTINCT:
            assert sketch.estimate().value == DISTINCT[column]
        python = datasketches.compact_theta_sketch.deserialize(payload)
        assert sketch.estimate().value == python.get_estimate()
    assert estimating >= 4  # or the test says little about θ


def test_a_table_whose_rows_are_all_deleted(
    spark: SparkSession, java: IcebergJava, new_table: NewTable
) -> None:
    name = new_table("id bigint, word string")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"DELETE FROM {name} WHERE id > 0 OR word IS NULL")
    for blob, payload in compute_stats(spark, name).values():
        sketch = ThetaSketch.decode(payload)
        assert sketch.is_empty
        assert blob.properties["ndv"] == "0"
        assert_same(sketch, java.theta(payload))


SIZES = [0, 1, 2, 100, 4096, 10_000, 100_000]


@pytest.mark.parametrize("distinct", SIZES)
def test_ours_decode_in_java_and_python(java: IcebergJava, distinct: int) -> None:
    sketch = ThetaSketch.decode(python_sketch(distinct).serialize())
    payload = sketch.encode()
    for wrap in (False, True):
        decoded = java.theta(payload, wrap=wrap)
        assert_same(sketch, decoded)
        assert _hashes(decoded.plain, sketch) == sketch.hashes.tobytes()
    python = datasketches.compact_theta_sketch.deserialize(payload)
    assert sketch.estimate().value == python.get_estimate()
    assert np.array_equal(np.fromiter(python, np.uint64), sketch.hashes)


def _hashes(payload: bytes, sketch: ThetaSketch) -> bytes:
    """The end of a plain sketch. The preambles differ: Java notes a sampling rate of 1.0 where C++ has 0."""
    return payload[len(payload) - 8 * len(sketch.hashes) :]


@pytest.mark.parametrize("distinct", SIZES)
@pytest.mark.parametrize("lg_k", [5, 12])
def test_java_compressed_form(java: IcebergJava, distinct: int, lg_k: int) -> None:
    sketch = ThetaSketch.decode(python_sketch(distinct, lg_k).serialize())
    compressed = java.theta(sketch.encode()).compressed
    assert compressed[1] == (4 if distinct > 1 else 3)  # too little to compress keeps the older version
    assert ThetaSketch.decode(compressed) == sketch
    assert ThetaSketch.decode(java.theta(compressed, wrap=True).plain) == sketch


@pytest.mark.parametrize("lg_k", [5, 6, 7])
def test_bounds_of_small_samples(java: IcebergJava, lg_k: int) -> None:
    """Up to 120 samples Java too computes the binomial tails, but approximates where θ is small."""
    exact = 0
    for distinct in (60, 150, 400, 2_000, 30_000):
        sketch = ThetaSketch.decode(python_sketch(distinct, lg_k).serialize())
        samples = len(sketch.hashes)
        tabled = samples <= 120 and sketch.share < samples / 360
        exact += not tabled
        for deviations, bounds in java.theta(sketch.encode()).bounds.items():
            estimate = sketch.estimate(deviations)
            assert (estimate.low, estimate.high) == pytest.approx(bounds, rel=1e-2 if tabled else 1e-12)
    assert exact >= 2
