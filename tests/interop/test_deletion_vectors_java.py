"""Deletion vectors between Rookery, Iceberg Java's position index, and Spark's merge-on-read deletes."""

from __future__ import annotations

import uuid

import numpy as np
import pytest
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from rookery.io import open_source
from rookery.puffin import DeletionVector, Writer, open_puffin
from tests.interop.conftest import NewTable
from tests.interop.java import IcebergJava

Positions = dict[str, set[int]]
Array = NDArray[np.int64]

_random = np.random.default_rng(20240817)
SETS = {
    "empty": np.empty(0, np.int64),
    "zero": np.array([0]),
    "sparse": np.arange(0, 2**31, 10_000_019),
    "unsigned lows": np.array([2**31 - 1, 2**31, 2**32 - 1]),
    "array at its limit": np.arange(0, 2 * 4096, 2),
    "bitset": np.arange(0, 60_000, 3),
    "runs": np.concatenate([np.arange(s, s + 500) for s in range(0, 10**6, 50_000)]),
    "whole containers": np.arange(0, 3 * 2**16),
    "above 2^32": 2**32 + np.arange(0, 5000, 7),
    "keys with gaps": np.array([1, 2**34 + 5, 2**40]),
    "mixed": np.concatenate(
        [np.arange(100), np.arange(70_000, 140_000, 2), np.array([2**33]), 2**35 + np.arange(9000)]
    ),
}
for _number, _high in enumerate((2**12, 2**17, 2**24, 2**36, 2**41)):
    SETS[f"random {_number}"] = np.unique(_random.integers(0, _high, 3000))


@pytest.mark.parametrize("positions", SETS.values(), ids=SETS.keys())
class TestIndex:
    def test_ours_read_in_java(self, java: IcebergJava, positions: Array) -> None:
        assert np.array_equal(
            java.positions(DeletionVector.of(positions).encode(), len(positions)), positions
        )

    def test_java_reads_here(self, java: IcebergJava, positions: Array) -> None:
        payload = java.reserialize(DeletionVector.of(positions).encode(), len(positions))
        decoded = DeletionVector.decode(payload, cardinality=len(positions))
        assert np.array_equal(decoded.positions(), positions)
        if len(positions) == 0 or positions.max() < 2**32:  # above, Java fills gaps with empty bitmaps
            assert payload == DeletionVector.of(positions).encode()


def test_ranges_made_in_java(java: IcebergJava) -> None:
    ranges = [(0, 10), (65_530, 70_000), (2**31 - 3, 2**31 + 3), (2**32 - 2, 2**32 + 2), (2**38, 2**38 + 9)]
    decoded = DeletionVector.decode(java.serialize_ranges(ranges))
    assert decoded == DeletionVector.merge(DeletionVector.of_range(*ends) for ends in ranges)


def test_java_writes_the_empty_keys_too(java: IcebergJava) -> None:
    payload = java.serialize_ranges([(5, 6), (2**34, 2**34 + 100)])
    assert int.from_bytes(payload[8:16], "little") == 5  # keys 0 to 4, of which 1 to 3 hold nothing
    ours = DeletionVector.of([5, *range(2**34, 2**34 + 100)])
    assert int.from_bytes(ours.encode()[8:16], "little") == 2
    assert DeletionVector.decode(payload) == ours


def test_java_has_a_lower_limit(java: IcebergJava) -> None:
    """The specification allows positions up to 2^63 - 1; Java has no place for the last key."""
    with pytest.raises(PySparkException, match="Key is too large"):
        java.positions(DeletionVector.of([2**63 - 1]).encode(), 1)


# -- Spark's


def rows_by_file(spark: SparkSession, name: str) -> Positions:
    """The positions of the rows that a scan returns, for each data file."""
    found: Positions = {}
    columns = spark.sql(f"SELECT _file, _pos FROM {name}").toArrow().to_pydict()
    for file, position in zip(columns["_file"], columns["_pos"], strict=True):
        found.setdefault(file, set()).add(position)
    return found


def gone(before: Positions, after: Positions) -> Positions:
    removed = {file: positions - after.get(file, set()) for file, positions in before.items()}
    return {file: positions for file, positions in removed.items() if positions}


def vectors(spark: SparkSession, name: str) -> list[Row]:
    return spark.sql(
        "SELECT file_path, file_format, record_count, referenced_data_file, content_offset, "
        f"content_size_in_bytes FROM {name}.delete_files"
    ).collect()


def read_by_range(row: Row) -> DeletionVector:
    """As an engine does it: the manifest says where in the file."""
    with open_source(row.file_path) as source:
        payload = source.read(row.content_offset, row.content_size_in_bytes)
    return DeletionVector.decode(payload, cardinality=row.record_count)


def read_by_footer(row: Row) -> DeletionVector:
    with open_puffin(row.file_path) as reader:
        (blob,) = [blob for blob in reader.metadata.blobs if blob.offset == row.content_offset]
        assert blob.properties["referenced-data-file"] == row.referenced_data_file
        return DeletionVector.from_blob(blob, reader.read(blob), row.file_path)


def fill(spark: SparkSession, name: str, files: int, rows: int) -> None:
    for number in range(files):
        spark.range(number * rows, (number + 1) * rows, 1, 1).writeTo(name).append()


def test_spark_deletes(spark: SparkSession, new_table: NewTable) -> None:
    name = new_table("id bigint", version=3)
    fill(spark, name, files=4, rows=20_000)
    before = rows_by_file(spark, name)
    assert len(before) == 4
    for condition in (
        "id < 20000 AND id % 3 = 0",  # a bitset
        "id BETWEEN 21000 AND 29000",  # a run
        "id IN (40000, 41234, 59999)",
        "id % 7000 = 1",  # merges with all of them, and begins one on the last file
    ):
        spark.sql(f"DELETE FROM {name} WHERE {condition}")
        expected = gone(before, rows_by_file(spark, name))
        rows = vectors(spark, name)
        assert {row.file_format for row in rows} == {"PUFFIN"}
        assert len(rows) == len(expected)
        assert {row.referenced_data_file: set(read_by_range(row)) for row in rows} == expected
        assert {row.referenced_data_file: set(read_by_footer(row)) for row in rows} == expected
    assert len(expected) == 4


# -- ours, in a table


@pytest.fixture
def files_of_ten(spark: SparkSession, new_table: NewTable) -> tuple[str, list[str]]:
    """A table of three files, of ids 0-9, 10-19, 20-29, in this order; and their locations."""
    name = new_table("id bigint", version=3)
    fill(spark, name, files=3, rows=10)
    rows = spark.sql(f"SELECT _file, min(id) FROM {name} GROUP BY _file ORDER BY 2").collect()
    return name, [row[0] for row in rows]


def ids(spark: SparkSession, name: str) -> list[int]:
    return [row.id for row in spark.sql(f"SELECT id FROM {name} ORDER BY id").collect()]


def commit(java: IcebergJava, name: str, deleted: dict[str, list[int]]) -> None:
    """Write one Puffin file with a vector for each data file, and commit it as Java's writers would."""
    location = f"{java.table(name).location()}/data/{uuid.uuid4()}.puffin"
    placed = []
    with Writer(location) as writer:
        for data_file, positions in deleted.items():
            vector = DeletionVector.of(positions)
            placed.append((data_file, writer.add(vector.blob(data_file)), vector.cardinality))
    java.commit_deletes(
        name,
        [
            java.delete_file(location, writer.written.size, data_file, blob.offset, blob.length, cardinality)
            for data_file, blob, cardinality in placed
        ],
    )


def test_ours_delete_rows(
    spark: SparkSession, java: IcebergJava, files_of_ten: tuple[str, list[str]]
) -> None:
    name, (first, second, _) = files_of_ten
    commit(java, name, {first: [0, 3, 9], second: list(range(10))})
    assert ids(spark, name) == [1, 2, 4, 5, 6, 7, 8, *range(20, 30)]


def test_one_for_another_file_changes_nothing(
    spark: SparkSession, java: IcebergJava, files_of_ten: tuple[str, list[str]]
) -> None:
    name, (first, *_) = files_of_ten
    commit(java, name, {first + ".gone": [0, 1, 2], first: [5]})
    assert ids(spark, name) == [id for id in range(30) if id != 5]


def test_spark_merges_into_ours(
    spark: SparkSession, java: IcebergJava, files_of_ten: tuple[str, list[str]]
) -> None:
    name, (first, _, third) = files_of_ten
    commit(java, name, {first: [0, 3], third: [1]})
    spark.sql(f"DELETE FROM {name} WHERE id IN (7, 8)")
    assert ids(spark, name) == [id for id in range(30) if id not in (0, 3, 7, 8, 21)]
    found = {
        row.referenced_data_file: read_by_footer(row).positions().tolist() for row in vectors(spark, name)
    }
    assert found == {first: [0, 3, 7, 8], third: [1]}
