"""What other writers keep in a statistics file survives analysis, such as an HLL sketch."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api import puffin_files
from rookery.api.lake import Lake
from rookery.puffin import DELETION_VECTOR_V1, THETA_V1, Blob, BlobMetadata, Writer, open_puffin
from rookery.sketch import HllSketch, ThetaSketch
from rookery.sketch.blob_types import HLL_V1
from rookery.tables.iceberg.jvm import register_statistics
from tests.interop.analysis import blobs_of, compute_table_stats, statistics_path
from tests.interop.conftest import NewTable
from tests.lakehouse import append_ids

ROWS = 900
UNKNOWN = "somebodys-histogram-v1"


@pytest.fixture
def table(spark: SparkSession, new_table: NewTable) -> str:
    name = new_table("id bigint, word string")
    append(spark, name)
    return name


append = partial(append_ids, start=0, rows=ROWS, columns=("concat('w', id % 7) AS word",))


def sketch_by_spark(spark: SparkSession, name: str) -> bytes:
    row = spark.sql(f"SELECT hll_sketch_agg(id, 12) FROM {name}").first()
    assert row is not None
    return bytes(row[0])


def register_foreign(spark: SparkSession, lake: Lake, name: str, *, is_named: bool) -> bytes:
    """A statistics file of another writer, with an HLL sketch that the table's metadata names or does not."""
    loaded = lake.load(name)
    snapshot = loaded.current_snapshot()
    assert snapshot is not None
    ids = (snapshot.snapshot_id, snapshot.sequence_number or 0)
    payload = sketch_by_spark(spark, name)
    with Writer(f"{loaded.location()}/metadata/foreign-{snapshot.snapshot_id}.stats") as writer:
        writer.add(Blob(HLL_V1, payload, (1,), *ids, properties={"ndv": str(ROWS), "by": "them"}))
        writer.add(Blob(UNKNOWN, b"of theirs", (2,), *ids, codec="lz4"))
        writer.add(Blob(DELETION_VECTOR_V1, b"in the wrong file", (2,), *ids, codec="none"))
        writer.add(Blob(THETA_V1, ThetaSketch(np.array([5], np.uint64)).encode(), (1,), *ids))
    names = (lambda blob: True) if is_named else (lambda blob: blob.type == THETA_V1)
    register_statistics(spark, lake.table_name(name), snapshot.snapshot_id, writer.written, names)
    return payload


def by_type(lake: Lake, name: str) -> dict[str, list[BlobMetadata]]:
    found: dict[str, list[BlobMetadata]] = {}
    for blob in blobs_of(statistics_path(name, lake)):
        found.setdefault(blob.type, []).append(blob)
    return found


def named_types(lake: Lake, name: str) -> set[str]:
    metadata = lake.load(name).metadata
    (file,) = [file for file in metadata.statistics if file.snapshot_id == metadata.current_snapshot_id]
    return {blob.type for blob in file.blob_metadata}


def payload_of(lake: Lake, name: str, blob: BlobMetadata) -> bytes:
    with open_puffin(statistics_path(name, lake)) as reader:
        return reader.read(blob)


@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
def test_blobs_of_the_same_snapshot_stay(spark: SparkSession, lake: Lake, table: str, is_named: bool) -> None:
    payload = register_foreign(spark, lake, table, is_named=is_named)
    before = by_type(lake, table)
    assert rookery.analyze(spark, table, lake=lake).committed
    after = by_type(lake, table)
    for kind in (HLL_V1, UNKNOWN, DELETION_VECTOR_V1):
        (old,), (new,) = before[kind], after[kind]
        assert (new.fields, new.snapshot_id, new.sequence_number) == (
            old.fields,
            old.snapshot_id,
            old.sequence_number,
        )
        assert (new.codec, new.length, new.properties) == (old.codec, old.length, old.properties)
    assert payload_of(lake, table, after[HLL_V1][0]) == payload
    assert HllSketch.decode(payload).estimate().value == pytest.approx(ROWS, rel=0.05)
    assert [blob.fields for blob in after[THETA_V1]] == [(1,), (2,)]  # ours, in the place of theirs
    assert named_types(lake, table) - {DELETION_VECTOR_V1} == (
        {THETA_V1, HLL_V1, UNKNOWN} if is_named else {THETA_V1}
    )
    assert not rookery.analyze(spark, table, lake=lake).committed


def test_blobs_of_an_earlier_snapshot_are_carried(
    spark: SparkSession, lake: Lake, table: str, cost_based: None
) -> None:
    payload = register_foreign(spark, lake, table, is_named=True)
    first = lake.load(table).metadata.current_snapshot_id
    for _ in range(2):  # from their file, and then from ours
        append(spark, table)
        rookery.analyze(spark, table, lake=lake)
        current = lake.load(table).metadata.current_snapshot_id
        found = by_type(lake, table)
        (hll,), (unknown,) = found[HLL_V1], found[UNKNOWN]
        assert hll.snapshot_id == unknown.snapshot_id == first != current  # it says what it is of
        assert payload_of(lake, table, hll) == payload
        assert payload_of(lake, table, unknown) == b"of theirs"
        assert DELETION_VECTOR_V1 not in found  # a copy of which deletes nothing
        assert {blob.snapshot_id for blob in found[THETA_V1]} == {current}
        assert [blob.fields for blob in found[THETA_V1]] == [(1,), (2,)]
    view = puffin_files.inspect(statistics_path(table, lake))
    assert [blob.summary["kind"] for blob in view.blobs if blob.summary and "kind" in blob.summary] == [
        "HLL_8"
    ]
    assert (
        spark.sql(f"SELECT * FROM {table} WHERE word = 'w1'").count() == 3 * 129
    )  # Spark plans with the rest


def test_a_sketch_of_a_column_that_is_gone(
    spark: SparkSession, lake: Lake, table: str, cost_based: None
) -> None:
    register_foreign(spark, lake, table, is_named=True)
    spark.sql(f"ALTER TABLE {table} DROP COLUMN id")
    rookery.analyze(spark, table, lake=lake)
    found = by_type(lake, table)
    assert [blob.fields for blob in found[HLL_V1]] == [(1,)]  # of this snapshot: it stays in the file
    assert HLL_V1 not in named_types(lake, table)  # but Spark would fail on its name
    assert spark.sql(f"SELECT * FROM {table} WHERE word = 'w1'").count() == 129
    spark.sql(f"INSERT INTO {table} VALUES ('new')")
    rookery.analyze(spark, table, lake=lake)
    assert by_type(lake, table).keys() == {THETA_V1, UNKNOWN}


def test_nothing_is_taken_past_a_newer_file(spark: SparkSession, lake: Lake, table: str) -> None:
    """Iceberg's own analysis carries nothing: the nearest file decides, as it does for Trino."""
    register_foreign(spark, lake, table, is_named=False)
    append(spark, table)
    compute_table_stats(spark, table)
    append(spark, table)
    rookery.analyze(spark, table, lake=lake)
    assert by_type(lake, table).keys() == {THETA_V1}
