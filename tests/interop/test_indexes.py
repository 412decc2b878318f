"""The life of indexes on real tables: whatever happens to them, answers are Spark's, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.lake import Lake
from rookery.collect import plan
from rookery.indexes.bitmap import whole_index
from rookery.indexes.bloom import matrices
from rookery.model.cache import clear_caches
from tests.interop.analysis import kept
from tests.interop.conftest import NewTable

COLUMNS = "id int, word string, status string"
LOOKUPS = ["id = 7", "id = 207", "id IN (3, 45, 99999)", "word = 'w31'", "status = 'b'", "status IS NULL"]
COUNTED = ["status IN ('a', 'c')", "status = 'a' AND id < 50", "id > 150 AND status <> 'b'"]


def rows(start: int, end: int, files: int = 1) -> str:
    return (
        f"SELECT CAST(id AS int) id, concat('w', id % 50) word, "
        f"CASE WHEN id % 7 = 0 THEN NULL ELSE substr('abc', CAST(id % 3 AS int) + 1, 1) END status "
        f"FROM range({start}, {end}, 1, {files})"
    )


def append(spark: SparkSession, name: str, start: int, end: int, files: int = 1) -> None:
    spark.sql(f"INSERT INTO {name} {rows(start, end, files)}")


class Watched:
    """A table with indexes that is asked before and after each analysis what Spark is asked too."""

    def __init__(self, spark: SparkSession, lake: Lake, name: str) -> None:
        self.spark, self.lake, self.name = spark, lake, name
        self.expected = {("bloom", "id"), ("bloom", "word"), ("bitmap", "status")}

    @property
    def handle(self) -> Any:
        return rookery.table(self.name, self.lake)

    def declare(self) -> None:
        self.handle.add_index("bloom", "id")
        self.handle.add_index("bloom", "word")
        self.handle.add_index("bitmap", "status")

    def assert_answers(self, *more: str) -> None:
        clear_caches()
        table = self.handle
        frame = self.spark.table(self.name).toArrow().to_pylist()
        conditions = [*LOOKUPS, *COUNTED, *more]
        asked = ", ".join(f"count_if({where}) c{n}" for n, where in enumerate(conditions))
        counts = self.spark.sql(f"SELECT {asked} FROM {self.name}").first()
        assert counts is not None
        everything = Counter(map(repr, map(_sorted, frame)))
        for number, where in enumerate(conditions):
            found = table.read(where).to_pylist()
            assert len(found) == counts[number], where
            assert table.count(where) == counts[number], where
            assert not Counter(map(repr, map(_sorted, found))) - everything, where

    def assert_declared(self) -> None:
        found = {(view.kind, view.column) for view in self.handle.indexes().indexes}
        assert found == self.expected

    def assert_covered(self) -> None:
        for view in self.handle.indexes().indexes:
            assert view.files_covered == view.files, view
        assert {view.built for view in self.handle.indexes().indexes} <= {"built", "nothing to index yet"}

    def analyse(self, *, files: int | None = None, full: bool = False) -> None:
        report = rookery.analyze(self.spark, self.name, lake=self.lake, full=full)
        if files is not None:
            assert report.files_read == files

    def step(self, statement: str, *, files: int | None = None, more: tuple[str, ...] = ()) -> None:
        """Do something to the table; ask before the next analysis, and after it."""
        self.spark.sql(statement)
        self.assert_answers(*more)
        self.assert_declared()
        self.analyse(files=files)
        self.assert_answers(*more)
        self.assert_declared()
        self.assert_covered()


def _sorted(row: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(row.items())


@pytest.fixture
def watched(spark: SparkSession, lake: Lake, new_table: NewTable) -> Iterator[Watched]:
    yield Watched(spark, lake, new_table(COLUMNS))
    clear_caches()


def test_from_an_empty_table_on(watched: Watched, spark: SparkSession, lake: Lake) -> None:
    watched.declare()
    watched.assert_declared()
    assert {view.built for view in watched.handle.indexes().indexes} == {"nothing to index yet"}
    assert watched.handle.read("id = 7").num_rows == 0
    append(spark, watched.name, 0, 240, files=8)
    assert {view.built for view in watched.handle.indexes().indexes} == {
        "declared; the next analyze builds it"
    }
    watched.analyse(files=8)  # in the one pass that counts distinct values too
    state = kept(watched.name, lake)
    assert {entry.files for entry in state.header.segments} == {8}
    watched.assert_covered()
    watched.assert_answers()
    append(spark, watched.name, 240, 270)
    assert {view.built for view in watched.handle.indexes().indexes} == {
        "covers 8 of 9 files; analyze completes it"
    }
    watched.assert_answers()
    watched.analyse(files=1)
    watched.assert_covered()
    watched.analyse(files=0)
    watched.analyse(files=9, full=True)
    watched.assert_declared()
    watched.assert_covered()
    watched.assert_answers()


def test_after_an_analysis_and_dropped_again(watched: Watched, spark: SparkSession, lake: Lake) -> None:
    append(spark, watched.name, 0, 60)
    watched.analyse(files=1)
    watched.declare()
    watched.assert_answers()
    watched.analyse(files=1)  # an index is built of files that are known
    watched.assert_covered()
    watched.handle.drop_index("bloom", "word")
    watched.handle.drop_index("bitmap", "status")
    watched.expected = {("bloom", "id")}
    watched.assert_declared()
    watched.assert_answers()
    append(spark, watched.name, 60, 90)
    watched.analyse(files=1)
    state = kept(watched.name, lake)
    built = {(index.kind, index.field_id) for entry in state.header.segments for index in entry.indexes}
    assert built == {("bloom", 1)}
    watched.assert_declared()
    watched.assert_answers()


MODES = {
    "copy-on-write": (2, "copy-on-write"),
    "position deletes": (2, "merge-on-read"),
    "deletion vectors": (3, "merge-on-read"),
}


@pytest.mark.parametrize("mode", MODES)
def test_deletes_and_updates(spark: SparkSession, lake: Lake, new_table: NewTable, mode: str) -> None:
    version, how = MODES[mode]
    name = new_table(COLUMNS, version)
    modes = ", ".join(f"'write.{what}.mode'='{how}'" for what in ("delete", "update", "merge"))
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({modes})")
    watched = Watched(spark, lake, name)
    watched.declare()
    append(spark, name, 0, 240, files=4)
    watched.analyse()
    watched.step(f"DELETE FROM {name} WHERE id IN (7, 33, 207)")
    watched.step(
        f"UPDATE {name} SET status = 'd', id = id + 1000 WHERE id % 20 = 5",
        more=("id = 1045", "status = 'd'"),
    )
    if mode == "copy-on-write":
        return
    # Files with deletes attached are indexed all the same, by what is in them.
    state = kept(name, lake)
    assert any(state.header.delete_manifests)
    explained = watched.handle.explain("id = 207")
    bloom = next(stage for stage in explained.stages if stage.name == "bloom filter check")
    assert "not indexed" not in bloom.note
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    )
    watched.assert_answers()
    watched.analyse()
    watched.assert_covered()
    watched.assert_answers()


def test_what_happens_to_tables(watched: Watched, spark: SparkSession, lake: Lake) -> None:
    name = watched.name
    watched.declare()
    append(spark, name, 0, 240, files=4)
    watched.analyse()
    first = lake.load(name).metadata.current_snapshot_id
    watched.step(f"CALL lake.system.rewrite_manifests('{name}')", files=0)
    watched.step(
        f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all','true'))"
    )
    watched.step(f"INSERT OVERWRITE {name} {rows(100, 220)}", files=1)
    watched.step(f"CALL lake.system.rollback_to_snapshot('{name}', {first})")
    watched.step(f"INSERT INTO {name} {rows(300, 330)}", files=1)
    watched.step(f"ALTER TABLE {name} ADD COLUMN extra int", files=0)
    watched.step(
        f"INSERT INTO {name} SELECT *, 5 FROM ({rows(400, 430)})",
        files=1,
        more=("extra = 5", "extra IS NULL"),
    )
    watched.step(f"ALTER TABLE {name} ALTER COLUMN id TYPE bigint", files=6, more=("id = 405",))
    state = kept(name, lake)
    assert {index.type for index in state.header.indexes if index.field_id == 1} == {"long"}
    watched.step(f"INSERT INTO {name} SELECT *, 6 FROM ({rows(500, 530)})", files=1, more=("id = 505",))
    watched.step(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id)", files=0)
    watched.step(f"INSERT INTO {name} SELECT *, 7 FROM ({rows(600, 630)})", files=2, more=("id = 605",))
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', "
        "older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
    )
    watched.assert_answers()
    watched.assert_declared()
    watched.analyse(files=0)
    watched.assert_answers()
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN status TO condition")
    watched.expected = {("bloom", "id"), ("bloom", "word"), ("bitmap", "condition")}
    watched.assert_declared()
    assert (
        watched.handle.count("condition = 'b'")
        == spark.sql(f"SELECT * FROM {name} WHERE condition = 'b'").count()
    )
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN condition TO status")
    watched.expected = {("bloom", "id"), ("bloom", "word"), ("bitmap", "status")}
    spark.sql(f"ALTER TABLE {name} DROP COLUMN word")
    watched.analyse()
    columns = {view.column for view in watched.handle.indexes().indexes}
    assert columns == {"id", "status", "field 2, which was dropped"}
    assert watched.handle.count("id = 605") == 1
    watched.handle.drop_index("bloom", "field 2, which was dropped")
    assert {view.column for view in watched.handle.indexes().indexes} == {"id", "status"}


def test_replaced_and_made_anew(watched: Watched, spark: SparkSession, lake: Lake) -> None:
    name = watched.name
    append(spark, name, 0, 60)
    watched.declare()
    watched.analyse()
    # Ids are reused by name, though the types are others.
    spark.sql(
        f"CREATE OR REPLACE TABLE {name} USING iceberg AS "
        f"SELECT concat('x', id) id, CAST(id AS bigint) word, status FROM ({rows(0, 90)})"
    )
    for _ in range(2):
        clear_caches()
        assert watched.handle.count("id = 'x7'") == 1
        assert watched.handle.count("word = 7") == 1
        assert (
            watched.handle.count("status = 'b'")
            == spark.sql(f"SELECT * FROM {name} WHERE status = 'b'").count()
        )
        watched.assert_declared()
        watched.analyse()
    watched.assert_covered()
    spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg")
    append(spark, name, 5, 30)
    watched.expected = set()
    watched.assert_declared()  # another table, though of that name and in that place
    watched.assert_answers()
    watched.analyse()
    watched.assert_answers()


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_other_formats_are_kept(spark: SparkSession, lake: Lake, watched: Watched, kind: str) -> None:
    name = watched.name
    watched.declare()
    append(spark, name, 0, 60)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default'='{kind}')")
    append(spark, name, 60, 120)
    rookery.analyze(spark, name, lake=lake, columns=["status"])  # so that only indexes know of ids
    clear_caches()
    explained = watched.handle.explain("id = 100000")
    other = [file.path for file in explained.files if file.path.endswith(kind)]
    bloom = next(stage for stage in explained.stages if stage.name == "bloom filter check")
    by_bounds = next(stage for stage in explained.stages if stage.name == "manifest file scan")
    if by_bounds.files_out:
        assert other, bloom
    explained = watched.handle.explain("id = 70 OR id = 7")
    assert {file.path.rpartition(".")[2] for file in explained.files} == {kind, "parquet"}
    found = watched.handle.scan(spark, "id = 70").count()
    assert found == 1


def test_files_in_several_parts(
    watched: Watched, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups of a file that tasks share: the same bitmaps, and no value is missing from the filter."""
    name = watched.name
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('write.parquet.row-group-size-bytes'='2000', "
        "'write.parquet.row-group-check-min-record-count'='10', "
        "'write.parquet.row-group-check-max-record-count'='10')"
    )
    append(spark, name, 0, 2000)
    watched.declare()
    found = {}
    for split in (plan.SPLIT_BYTES, 100):
        monkeypatch.setattr(plan, "SPLIT_BYTES", split)
        watched.analyse(full=True)
        _, store = watched.handle.load()
        with store.open_segment(kept(name, lake).header.segments[0]) as segment:
            found[split] = (matrices(segment, 1), whole_index(segment, 3), matrices(segment, 2))
        watched.assert_answers()
    whole, parts = found.values()
    assert whole == parts
    bitmap = parts[1]
    assert bitmap is not None
    assert bitmap.covered.all()
