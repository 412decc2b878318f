"""The toy kind on real Spark: it is sent to the executors, and its parts come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.collect import plan
from rookery.collect import run as running
from rookery.model.cache import clear_caches
from tests.indexes import toy as module
from tests.lakehouse import NewTable


@pytest.fixture
def shipped() -> Iterator[None]:
    """Executors may lack the tests, not the kind: its module goes along."""
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.usefixtures("toy", "shipped")
@pytest.mark.parametrize("split", [plan.SPLIT_BYTES, 100])
def test_built_by_executors(
    spark: SparkSession, lake: Lake, new_table: NewTable, monkeypatch: pytest.MonkeyPatch, split: int
) -> None:
    monkeypatch.setattr(running, "LOCAL_BYTES", 0)
    monkeypatch.setattr(plan, "SPLIT_BYTES", split)
    name = new_table("id bigint, word string")
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('write.parquet.row-group-size-bytes'='2000', "
        "'write.parquet.row-group-check-min-record-count'='10', "
        "'write.parquet.row-group-check-max-record-count'='10')"
    )
    for number in range(3):
        spark.sql(
            f"INSERT INTO {name} SELECT id, repeat(IF(id % 2 = 0, 'a', 'z'), {2 + 3 * number} + id % 2) word "
            f"FROM range({number * 600}, {(number + 1) * 600}, 1, 1)"
        )
    table = rookery.table(name, lake)
    table.add_index("lengths", "word")
    table.add_index("bloom", "id")
    rookery.analyze(spark, name, lake=lake, columns=["id"])
    clear_caches()
    assert {view.built for view in table.indexes().indexes} == {"built"}
    (stage,) = (stage for stage in table.explain("word = 'bbbbb'").stages if stage.name == "lengths")
    assert (stage.files_in, stage.files_out, stage.note) == (3, 1, "")
    counts = spark.sql(f"SELECT word, count(*) FROM {name} GROUP BY word").collect()
    assert len(counts) == 6
    for word, count in counts:
        assert table.count(f"word = '{word}'") == count
    assert table.count("id = 700") == 1
