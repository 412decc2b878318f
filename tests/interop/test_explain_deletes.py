"""`explain` looks at data files only: in whatever format deletes are written, it does not read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from tests.interop.conftest import NewTable


@pytest.mark.parametrize("deletes", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("data", ["parquet", "orc", "avro"])
def test_delete_files_are_not_read(
    spark: SparkSession, lake: Lake, new_table: NewTable, data: str, deletes: str
) -> None:
    name = new_table("id int, s string")
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES "
        f"('write.format.default'='{data}', 'write.delete.format.default'='{deletes}')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 'a' FROM range(0, 50, 1, 1)")
    spark.sql(f"INSERT INTO {name} SELECT id, 'a' FROM range(50, 100, 1, 1)")
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 7")
    files = spark.sql(f"SELECT file_path, content FROM {name}.all_files").collect()
    for file in files:
        if file.content:
            Path(file.file_path.removeprefix("file:")).unlink()
    assert {file.content for file in files} == {0, 1}
    report = rookery.table(name, lake).explain("id = 60")
    left = {file.path for file in report.files}
    assert left <= {file.file_path for file in files if not file.content}
    assert len(left) == (2 if data == "avro" else 1)  # Avro has no bounds
