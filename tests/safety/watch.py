"""What must hold whatever has happened: the table reads, its metadata is whole, the statistics are right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rookery
from rookery.api.lake import Lake
from rookery.puffin import THETA_V1, open_puffin
from rookery.sketch import ThetaSketch
from tests.lakehouse import distinct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ["id", "word"]


def make_rows(
    spark: SparkSession, name: str, start: int, end: int, modulo: int = 7, *, files: int = 1
) -> None:
    """Append one file, or some at once."""
    rows = spark.range(start, end, 1, files).selectExpr("id", f"concat('w', id % {modulo}) AS word")
    rows.writeTo(name).append()


def folder(lake: Lake, name: str) -> Path:
    """Where the table's states and segments are kept."""
    return Path(lake.load(name).location().removeprefix("file://") + ".rookery")


def rows_of(lake: Lake, name: str) -> list[tuple[int, str]]:
    """All rows, as PyIceberg reads them."""
    table = lake.load(name).scan().to_arrow()
    return sorted(zip(table["id"].to_pylist(), table["word"].to_pylist(), strict=True))


def assert_whole(lake: Lake, name: str) -> None:
    """Every statistics file that is registered is there, is as long as stated and says what is stated."""
    for file in lake.load(name).metadata.statistics:
        path = Path(file.statistics_path.removeprefix("file:"))
        assert path.stat().st_size == file.file_size_in_bytes
        with open_puffin(path, footer_size=file.file_footer_size_in_bytes) as reader:
            found = {
                blob.fields[0]: str(int(ThetaSketch.decode(payload).estimate().value))
                for blob, payload in reader.read_many(reader.metadata.blobs)
            }
        assert {blob.type for blob in file.blob_metadata} == {THETA_V1}
        assert {blob.fields[0]: blob.properties["ndv"] for blob in file.blob_metadata} == found


def assert_right(spark: SparkSession, lake: Lake, name: str, where: str = "true") -> None:
    """What is known is current, covers everything, and is what an exact count says."""
    stats = rookery.table(name, lake).stats()
    assert stats.freshness == "current"
    assert {column.coverage for column in stats.columns} == {1.0}
    exact = distinct(spark, name, COLUMNS, where)
    assert {column.name: column.ndv for column in stats.columns} == exact
    assert_whole(lake, name)
    table = lake.load(name)
    current = table.metadata.current_snapshot_id
    (registered,) = [file for file in table.metadata.statistics if file.snapshot_id == current]
    names = {field.field_id: field.name for field in table.schema().fields}
    assert {names[blob.fields[0]]: int(blob.properties["ndv"]) for blob in registered.blob_metadata} == exact
