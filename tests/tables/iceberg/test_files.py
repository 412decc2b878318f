"""The file set of a snapshot, against Iceberg's own metadata tables and its scan planning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.tables import FILE_SCHEMA, Table
from tests.collect.files import write
from tests.interop.conftest import NewTable
from tests.interop.java import IcebergJava

COLUMNS = "id bigint, part int, word string, x double, day date"


def fill(spark: SparkSession, name: str, start: int, count: int = 60) -> None:
    spark.sql(
        f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, CAST(id % 2 AS int), "
        "IF(id % 5 = 0, NULL, concat('w', id % 9)), IF(id % 4 = 0, double('NaN'), id / 3), "
        f"date_add(DATE'2024-01-01', CAST(id % 3 AS int)) FROM range({start}, {start + count})"
    )


def load(lake: Lake, name: str) -> Table:
    table, _ = rookery.table(name, lake).load()
    return table


def file_set(table: Table) -> pa.Table:
    snapshot = table.snapshot()
    assert snapshot is not None
    return table.read_files(table.file_lists(snapshot))


def entries(spark: SparkSession, name: str) -> dict[tuple[str, int], dict[str, Any]]:
    """What Iceberg's metadata table says of every live file, data and deletes, by path and offset."""
    rows = spark.sql(f"SELECT snapshot_id, sequence_number, data_file.* FROM {name}.entries WHERE status < 2")
    return {(row["file_path"], row.get("content_offset") or 0): row for row in rows.toArrow().to_pylist()}


SAME = {
    "content": "content",
    "size": "file_size_in_bytes",
    "rows": "record_count",
    "sequence_number": "sequence_number",
    "added_snapshot_id": "snapshot_id",
    "equality_ids": "equality_ids",
}
MAPS = {
    "column_sizes": "column_sizes",
    "value_counts": "value_counts",
    "null_counts": "null_value_counts",
    "nan_counts": "nan_value_counts",
    "lower_bounds": "lower_bounds",
    "upper_bounds": "upper_bounds",
}


def agree(spark: SparkSession, lake: Lake, name: str) -> pa.Table:
    """Every file, and everything that is said of it."""
    table = load(lake, name)
    found = file_set(table)
    assert found.schema == FILE_SCHEMA
    expected = entries(spark, name)
    rows = found.to_pylist()
    assert {(row["path"], row["content_offset"] or 0) for row in rows} == expected.keys()
    assert len(rows) == len(expected)
    for row in rows:
        theirs = expected[row["path"], row["content_offset"] or 0]
        for ours, name_there in SAME.items():
            assert row[ours] == theirs[name_there], ours
        for ours, name_there in MAPS.items():
            assert dict(row[ours] or ()) == dict(theirs[name_there] or ()), ours
        assert row["format"] == theirs["file_format"].lower()
        assert row["spec_id"] == theirs.get("spec_id", 0)
        assert row["referenced_data_file"] == theirs.get("referenced_data_file")
        assert row["content_size"] == theirs.get("content_size_in_bytes")
        assert json.loads(row["partition"]) == partition_of(table, row["spec_id"], theirs.get("partition"))
    return found


def partition_of(table: Table, spec_id: int, values: dict[str, Any] | None) -> list[Any]:
    """Iceberg shows all specs' fields side by side; here each file has those of its own."""
    return [_plain(values[field.name]) for field in table.table.specs()[spec_id].fields] if values else []


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int | str) else (value - EPOCH).days


EPOCH = pa.scalar(0, pa.date32()).as_py()


# -- the file set


@pytest.mark.parametrize("version", [1, 2, 3])
def test_data_files(spark: SparkSession, lake: Lake, new_table: NewTable, version: int) -> None:
    name = new_table(COLUMNS, version)
    fill(spark, name, 0)
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD part")
    fill(spark, name, 100)
    spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD part WITH bucket(2, id)")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD days(day)")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(1, word)")
    fill(spark, name, 200, 4)
    found = agree(spark, lake, name)
    assert len(set(found["spec_id"].to_pylist())) >= 3
    spark.sql(f"CALL lake.system.rewrite_manifests('{name}')")
    again = agree(spark, lake, name)  # entries that exist keep the numbers they had
    by_path = [("path", "ascending")]
    columns = [column for column in FILE_SCHEMA.names if column != "file_list"]
    assert again.select(columns).sort_by(by_path).equals(found.select(columns).sort_by(by_path))
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode'='copy-on-write')")
    spark.sql(f"DELETE FROM {name} WHERE id IN (3, 101)")
    after = agree(spark, lake, name)
    assert len(set(found["path"].to_pylist()) - set(after["path"].to_pylist())) == 2


@pytest.mark.parametrize("version", [2, 3], ids=["position deletes", "deletion vectors"])
def test_deletes(spark: SparkSession, lake: Lake, new_table: NewTable, version: int) -> None:
    name = new_table(COLUMNS, version)
    fill(spark, name, 0)
    fill(spark, name, 100)
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    found = agree(spark, lake, name)
    assert sorted(found["content"].to_pylist()) == [0, 0, 1, 1]
    referenced = [path for path in found["referenced_data_file"].to_pylist() if path]
    assert len(referenced) == (2 if version == 3 else 0)  # Spark's position deletes say it by their bounds
    formats = {row["format"] for row in found.to_pylist() if row["content"] == 1}
    assert formats == ({"puffin"} if version == 3 else {"parquet"})


def test_a_raised_table(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Version 1 made 2 made 3: manifests of all of them in one table."""
    name = new_table(COLUMNS, 1)
    fill(spark, name, 0)
    for version in (2, 3):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='{version}')")
        fill(spark, name, 100 * version)
        spark.sql(f"DELETE FROM {name} WHERE id % 20 = {version}")
        agree(spark, lake, name)
    assert load(lake, name).format_version == 3


def test_an_empty_table_and_an_emptied_one(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table(COLUMNS)
    assert load(lake, name).snapshot() is None
    fill(spark, name, 0)
    spark.sql(f"TRUNCATE TABLE {name}")
    assert file_set(load(lake, name)).num_rows == 0


def test_other_formats(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table(COLUMNS)
    for form in ("orc", "avro", "parquet"):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default'='{form}')")
        fill(spark, name, 0)
    assert sorted(agree(spark, lake, name)["format"].to_pylist()) == ["avro", "orc", "parquet"]


# -- deletes attached


def reached(table: Table) -> dict[str, set[tuple[str, int]]]:
    """For each data file the deletes that are attached to it, found one by one."""
    snapshot = table.snapshot()
    assert snapshot is not None
    manifests = table.file_lists(snapshot)
    data = table.read_files([manifest for manifest in manifests if manifest.is_data])
    deletes = table.read_files([manifest for manifest in manifests if not manifest.is_data])
    found: dict[str, set[tuple[str, int]]] = {path: set() for path in data["path"].to_pylist()}
    for number, row in enumerate(deletes.to_pylist()):
        attached = table.attached_deletes(data, deletes.slice(number, 1))
        for path, text in zip(found, attached, strict=True):
            if text:
                found[path].add((row["path"], row["content_offset"] or 0))
    together = table.attached_deletes(data, deletes)
    assert [bool(text) for text in together] == [bool(names) for names in found.values()]
    return found


def keys(table: Table) -> dict[str, str]:
    """The string by which each file's deletes are known."""
    snapshot = table.snapshot()
    assert snapshot is not None
    manifests = table.file_lists(snapshot)
    data = table.read_files([manifest for manifest in manifests if manifest.is_data])
    deletes = table.read_files([manifest for manifest in manifests if not manifest.is_data])
    attached = table.attached_deletes(data, deletes)
    return dict(zip(data["path"].to_pylist(), attached, strict=True))


@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
def test_position_deletes(
    spark: SparkSession,
    lake: Lake,
    java: IcebergJava,
    new_table: NewTable,
    granularity: str,
    partitioned: bool,
) -> None:
    name = new_table(COLUMNS)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.granularity'='{granularity}')")
    if partitioned:
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD part")
    fill(spark, name, 0)
    fill(spark, name, 100)
    spark.sql(f"DELETE FROM {name} WHERE id IN (3, 5, 101)")
    fill(spark, name, 200)  # later than the deletes
    spark.sql(f"DELETE FROM {name} WHERE id IN (205, 7)")
    planned = java.planned_deletes(name)
    assert reached(load(lake, name)) == planned
    assert sum(map(bool, planned.values())) >= 2


def test_deletion_vectors(spark: SparkSession, lake: Lake, java: IcebergJava, new_table: NewTable) -> None:
    name = new_table(COLUMNS, 3)
    for start in (0, 100, 200):
        fill(spark, name, start)
    spark.sql(f"DELETE FROM {name} WHERE id IN (3, 101)")  # two vectors in one file
    assert reached(load(lake, name)) == java.planned_deletes(name)
    before = keys(load(lake, name))
    spark.sql(f"DELETE FROM {name} WHERE id = 102")
    after = keys(load(lake, name))
    assert reached(load(lake, name)) == java.planned_deletes(name)
    assert sum(before[path] != after[path] for path in before) == 1


def test_a_vector_over_position_deletes(
    spark: SparkSession, lake: Lake, java: IcebergJava, new_table: NewTable
) -> None:
    name = new_table(COLUMNS, 2)
    fill(spark, name, 0)
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='3')")
    spark.sql(f"DELETE FROM {name} WHERE id = 5")
    assert reached(load(lake, name)) == java.planned_deletes(name)


def equality(java: IcebergJava, lake: Lake, name: str, ids: Sequence[int], partition: str = "") -> None:
    folder = Path(lake.load(name).location().removeprefix("file:")) / "data"
    path = folder / f"equality-{len(list(folder.glob('equality-*')))}.parquet"
    write(path, pa.table({"id": pa.array(ids, pa.int64())}))
    java.commit_deletes(name, [java.equality_deletes(name, str(path), ["id"], len(ids), partition)])


@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
def test_equality_deletes(
    spark: SparkSession, lake: Lake, java: IcebergJava, new_table: NewTable, partitioned: bool
) -> None:
    name = new_table(COLUMNS)
    if partitioned:
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD part")
    fill(spark, name, 0)
    equality(java, lake, name, [2, 4], "part=0" if partitioned else "")
    fill(spark, name, 100)
    equality(java, lake, name, [3, 101], "part=1" if partitioned else "")
    fill(spark, name, 200)
    planned = java.planned_deletes(name)
    assert reached(load(lake, name)) == planned
    assert sorted(map(len, planned.values())) == ([0, 0, 0, 1, 1, 1] if partitioned else [0, 1, 2])
    found = agree(spark, lake, name)
    assert [1] in found["equality_ids"].to_pylist()


def test_equality_deletes_of_an_unpartitioned_spec_reach_all_specs(
    spark: SparkSession, lake: Lake, java: IcebergJava, new_table: NewTable
) -> None:
    name = new_table(COLUMNS)
    fill(spark, name, 0)
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD part")
    fill(spark, name, 100)
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD part")
    equality(java, lake, name, [2, 102])
    planned = java.planned_deletes(name)
    assert set(map(len, planned.values())) == {1}
    assert reached(load(lake, name)) == planned


# -- ancestry and schemas


def test_snapshots_and_ancestry(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    name = new_table(COLUMNS)
    for start in (0, 100, 200):
        fill(spark, name, start)
    table = load(lake, name)
    history = [
        row.snapshot_id
        for row in spark.sql(f"SELECT * FROM {name}.history ORDER BY made_current_at").collect()
    ]
    current = table.snapshot()
    assert current is not None
    assert [snapshot.id for snapshot in table.ancestors(current)] == history[::-1]
    assert [snapshot.sequence_number for snapshot in table.ancestors(current)] == [3, 2, 1]


def test_the_current_snapshot_has_the_current_schema(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    """As engines read it; an older one has the schema of its time."""
    name = new_table("id int, word string")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    spark.sql(f"INSERT INTO {name} VALUES (2, 'b')")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN word TO text")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE bigint")
    table = load(lake, name)
    current = table.snapshot()
    assert current is not None
    assert [(field.name, field.type) for field in table.fields(current)] == [
        ("id", "long"),
        ("text", "string"),
    ]
    parent = table.snapshots[current.parent_id]
    assert [(field.name, field.type) for field in table.fields(parent)] == [("id", "int"), ("word", "string")]
