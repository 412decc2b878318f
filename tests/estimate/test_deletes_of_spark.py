"""Deletes as Spark writes them: position deletes in format version 2, deletion vectors in 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import Certainty
from tests.lakehouse import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_are_subtracted(
    spark: SparkSession, lake: Lake, new_table: NewTable, version: int
) -> None:
    name = new_table("id bigint, word string", format_version=version)
    frame = spark.range(0, 4000, 1, 4).selectExpr("id", "concat('w', id % 10) word")
    frame.sortWithinPartitions("id").writeTo(name).append()
    table = rookery.table(name, lake)
    table.add_index("bitmap", "word")
    rookery.analyze(spark, name, top_k=["word"], lake=lake)
    assert table.estimate("word = 'w3'").rows.kind is Certainty.EXACT
    spark.sql(f"DELETE FROM {name} WHERE id % 5 = 0 AND id < 2000")
    report = table.estimate()
    assert (report.rows.value, report.rows.kind) == (3600, Certainty.EXACT)
    for where in ("word = 'w3'", "word = 'w5'", "id < 300", "id >= 3000", "word <> 'w5' AND id < 1500"):
        found, true = table.estimate(where), table.count(where)
        assert found.rows.low <= true <= found.rows.high, where
        assert found.proven, where
        if found.rows.kind is Certainty.EXACT:
            assert found.rows.value == true
    assert table.estimate("id >= 3000").rows.kind is Certainty.EXACT, "those files have no deletes"
    assert table.estimate("id < 300").rows.value == pytest.approx(240, rel=0.1)
