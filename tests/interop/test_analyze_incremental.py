"""A refresh pays for what is new, and ends where a full recollection would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import rookery
from rookery.api.analyze import AnalyzeReport
from rookery.api.lake import Lake
from rookery.model import UsageError
from rookery.sketch import MAX_THETA, K
from tests.collect.files import write
from tests.interop.analysis import (
    all_exact,
    expected_hashes,
    kept,
    recollected,
    rows_of,
    same_below,
    statistics_path,
)
from tests.interop.conftest import NewTable
from tests.interop.java import IcebergJava

COLUMNS = "id bigint, word string, part int"


class Analyst:
    """Runs statements on one table, and analyses it."""

    def __init__(self, spark: SparkSession, lake: Lake, name: str) -> None:
        self.spark = spark
        self.lake = lake
        self.name = name

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("TABLE_NAME", self.name))

    def call(self, procedure: str, **arguments: object) -> None:
        said = "".join(f", {key} => {value}" for key, value in arguments.items())
        self.spark.sql(f"CALL lake.system.{procedure}(table => '{self.name}'{said})")

    def append(self, *starts: int, count: int = 60) -> None:
        """Add a file for each start, or one a partition, in one commit."""
        columns = ", ".join(
            _expression(f.name, f.dataType.simpleString()) for f in self.spark.table(self.name).schema
        )
        ids = f"array({', '.join(map(str, starts))})[id DIV {count}] + id % {count} AS id"
        ranges = f"range(0, {count * len(starts)}, 1, {len(starts)})"
        self.sql(f"INSERT INTO TABLE_NAME SELECT {columns} FROM (SELECT {ids} FROM {ranges})")

    def analyze(self, **options: object) -> AnalyzeReport:
        return rookery.analyze(self.spark, self.name, lake=self.lake, **options)  # type: ignore[arg-type]

    def exact(self) -> None:
        all_exact(self.spark, self.name, self.lake)

    def snapshot(self) -> int:
        current = self.lake.load(self.name).metadata.current_snapshot_id
        assert current is not None
        return current

    def data_files(self) -> dict[str, int]:
        """Path and size of the live files."""
        rows = self.spark.sql(f"SELECT file_path, file_size_in_bytes FROM {self.name}.data_files").collect()
        return {row[0]: row[1] for row in rows}

    def metadata_files(self) -> set[Path]:
        return set(Path(self.lake.load(self.name).location().removeprefix("file:")).glob("metadata/*"))


def _expression(name: str, kind: str) -> str:
    if kind.startswith("struct<"):
        inside = [piece.split(":") for piece in kind[len("struct<") : -1].split(",")]
        return f"named_struct({', '.join(f'{n!r}, {_expression(n, k)}' for n, k in inside)})"
    if kind == "string":
        return f"IF(id % 11 = 0, NULL, concat('{name[0]}', id % 37))"
    modulus = {"id": 10**9, "part": 3}.get(name, 23)
    return f"CAST(id % {modulus} AS {kind})"


@pytest.fixture
def analyst(spark: SparkSession, lake: Lake, new_table: NewTable) -> Analyst:
    """A table of two files, not analyzed yet."""
    found = Analyst(spark, lake, new_table(COLUMNS))
    found.append(0, 40)
    return found


@contextmanager
def unreadable(paths: set[str]) -> Iterator[None]:
    """Put data files out of reach: whoever needs them fails."""
    moved = [Path(path.removeprefix("file:")) for path in paths]
    for path in moved:
        path.rename(path.with_suffix(".away"))
    yield
    for path in moved:
        path.with_suffix(".away").rename(path)


# -- nothing new, little new


def test_nothing_changed(analyst: Analyst) -> None:
    first = analyst.analyze()
    assert first.files_read == 2
    assert first.committed
    before, location = analyst.metadata_files(), analyst.lake.load(analyst.name).metadata_location
    with unreadable(set(analyst.data_files())):
        again = analyst.analyze()
    assert (again.files_read, again.bytes_read, again.values, again.committed) == (0, 0, 0, False)
    assert again.columns == first.columns
    assert analyst.metadata_files() == before
    assert analyst.lake.load(analyst.name).metadata_location == location


@pytest.mark.parametrize("version", [1, 2, 3])
def test_one_appended_file(spark: SparkSession, lake: Lake, new_table: NewTable, version: int) -> None:
    """Again and again, so that the newest of several states must be found."""
    analyst = Analyst(spark, lake, new_table(COLUMNS, version))
    analyst.append(0)
    analyst.analyze()
    for number in range(1, 4):
        known = set(analyst.data_files())
        analyst.append(30 * number)
        (new,) = analyst.data_files().keys() - known
        with unreadable(known):
            report = analyst.analyze()
        assert (report.files_read, report.files_to_read) == (1, 1)
        assert report.values == 3 * 60
        assert 0 < report.bytes_read <= analyst.data_files()[new]
    analyst.exact()


def test_removed_files_leave(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    analyst = Analyst(spark, lake, new_table(COLUMNS))
    analyst.sql("ALTER TABLE TABLE_NAME ADD PARTITION FIELD part")
    analyst.append(0, count=90)
    assert analyst.analyze().files_read == 3
    analyst.sql("DELETE FROM TABLE_NAME WHERE part = 1")  # whole files, by metadata alone
    with unreadable(set(analyst.data_files())):
        report = analyst.analyze()
    assert (report.files_read, report.committed) == (0, True)
    assert [column.ndv for column in report.columns if column.name in ("id", "part")] == [60, 2]
    analyst.exact()


def test_a_table_emptied_and_filled_again(analyst: Analyst) -> None:
    analyst.analyze()
    analyst.sql("TRUNCATE TABLE TABLE_NAME")
    assert [column.ndv for column in analyst.analyze().columns] == [0, 0, 0]
    assert not analyst.analyze().committed
    analyst.append(0)
    assert analyst.analyze().files_read == 1
    analyst.exact()


def test_everything_anew(analyst: Analyst) -> None:
    first = analyst.analyze()
    report = analyst.analyze(full=True)
    assert (report.files_read, report.columns) == (2, first.columns)
    analyst.exact()
    assert not analyst.analyze().files_read


def test_a_dry_run_reads_and_writes_nothing(analyst: Analyst) -> None:
    analyst.analyze()
    analyst.append(100)
    before = analyst.metadata_files()
    report = analyst.analyze(dry_run=True)
    assert (report.files, report.files_to_read, report.files_read, report.committed) == (3, 1, 0, False)
    assert analyst.metadata_files() == before
    assert analyst.analyze().files_read == 1


# -- deletes


@pytest.mark.parametrize("version", [2, 3], ids=["position deletes", "deletion vectors"])
def test_deletes_on_read(spark: SparkSession, lake: Lake, new_table: NewTable, version: int) -> None:
    analyst = Analyst(spark, lake, new_table(COLUMNS, version))
    analyst.append(0, 60, 120)
    analyst.analyze()
    analyst.sql("DELETE FROM TABLE_NAME WHERE id BETWEEN 10 AND 30")
    report = analyst.analyze()
    assert (report.files_read, dict(report.chunks)) == (1, {"engine": 3})
    analyst.exact()
    assert not analyst.analyze().committed
    analyst.sql("DELETE FROM TABLE_NAME WHERE id = 5 OR id = 130")  # on the first file again, and on the last
    assert analyst.analyze().files_read == 2
    analyst.exact()
    analyst.call("rewrite_data_files", options="map('delete-file-threshold', '1', 'min-input-files', '1')")
    report = analyst.analyze()
    assert set(report.chunks) <= {"pages", "arrow"}
    analyst.exact()


def test_rows_deleted_to_the_last(analyst: Analyst) -> None:
    analyst.analyze()
    analyst.sql("DELETE FROM TABLE_NAME WHERE id < 40 OR id >= 60")
    analyst.analyze()
    analyst.sql("DELETE FROM TABLE_NAME WHERE id IN (SELECT id FROM TABLE_NAME)")
    report = analyst.analyze()
    assert [column.ndv for column in report.columns] == [0, 0, 0]


def test_equality_deletes(analyst: Analyst, java: IcebergJava, tmp_path: Path) -> None:
    """Spark writes none; Flink does. They reach all older files, and none that come later."""
    analyst.analyze()
    location = f"{analyst.lake.load(analyst.name).location().removeprefix('file:')}/data/equality.parquet"
    write(Path(location), pa.table({"id": pa.array([3, 50, 51], pa.int64())}))
    java.commit_deletes(analyst.name, [java.equality_deletes(analyst.name, location, ["id"], 3)])
    analyst.append(50, count=5)
    report = analyst.analyze()
    assert report.files_read == 3
    assert report.chunks == {"engine": 6, "pages": 3}
    assert report.columns[0].ndv == 100 - 1
    analyst.exact()


def test_partitions_with_odd_names(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Files are known by their paths to two readers, which must spell them alike."""
    analyst = Analyst(spark, lake, new_table("id bigint, place string"))
    analyst.sql("ALTER TABLE TABLE_NAME ADD PARTITION FIELD place")
    places = ["a b", "50%", "x/y=z", "ä+ö", "日本", "?#&", "%20"]
    rows = [f"({n}, '{place}'), ({n + 100}, '{place}')" for n, place in enumerate(places)]
    analyst.sql(f"INSERT INTO TABLE_NAME VALUES {', '.join(rows)}")
    analyst.analyze()
    analyst.exact()
    analyst.sql("DELETE FROM TABLE_NAME WHERE id < 100")
    report = analyst.analyze()
    assert report.chunks == {"engine": 14}
    analyst.exact()


# -- columns


def test_a_renamed_column(analyst: Analyst) -> None:
    analyst.analyze()
    analyst.sql("ALTER TABLE TABLE_NAME RENAME COLUMN word TO text")
    with unreadable(set(analyst.data_files())):
        report = analyst.analyze(columns=["text"])  # no snapshot has that name yet
        assert (report.files_read, report.committed) == (0, False)
    assert [column.name for column in analyst.analyze().columns] == ["id", "text", "part"]
    analyst.append(100)
    assert analyst.analyze().files_read == 1
    analyst.exact()


def test_a_renamed_column_by_the_engine(analyst: Analyst) -> None:
    analyst.sql("DELETE FROM TABLE_NAME WHERE id = 7")
    analyst.sql("ALTER TABLE TABLE_NAME RENAME COLUMN word TO text")
    assert analyst.analyze().chunks == {"engine": 3, "pages": 3}
    analyst.exact()


def test_a_dropped_and_an_added_column(analyst: Analyst) -> None:
    analyst.analyze()
    analyst.sql("ALTER TABLE TABLE_NAME DROP COLUMN word")
    analyst.sql("ALTER TABLE TABLE_NAME ADD COLUMN word string")  # the name again, another column
    with unreadable(set(analyst.data_files())):
        report = analyst.analyze()
    assert {column.name: column.ndv for column in report.columns} == {"id": 100, "part": 3, "word": 0}
    old = set(analyst.data_files())
    analyst.append(100)
    with unreadable(old):
        assert analyst.analyze().files_read == 1
    analyst.exact()
    analyst.call("rewrite_manifests")
    with unreadable(set(analyst.data_files())):
        assert analyst.analyze().files_read == 0
    analyst.exact()


def test_reordered_columns(analyst: Analyst) -> None:
    analyst.analyze()
    analyst.sql("ALTER TABLE TABLE_NAME ALTER COLUMN part FIRST")
    analyst.append(100)
    assert analyst.analyze().files_read == 1
    analyst.exact()


def test_promoted_columns(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """Their bytes are others now, so their old hashes are of no use; other columns are not touched."""
    analyst = Analyst(spark, lake, new_table("id bigint, i int, f float, d decimal(9, 2), s struct<x: int>"))
    analyst.append(0)
    analyst.analyze()
    for column, kind in (("i", "bigint"), ("f", "double"), ("d", "decimal(18, 2)"), ("s.x", "bigint")):
        analyst.sql(f"ALTER TABLE TABLE_NAME ALTER COLUMN {column} TYPE {kind}")
        report = analyst.analyze()
        assert sum(report.chunks.values()) == 1
        analyst.exact()
    analyst.append(100)
    assert analyst.analyze().files_read == 1
    analyst.exact()


def test_a_promoted_column_in_a_group(analyst: Analyst) -> None:
    """Files of both types, of which one is read by the engine: the same pairs all over."""
    analyst.sql("ALTER TABLE TABLE_NAME ALTER COLUMN part TYPE bigint")
    analyst.append(0)
    analyst.append(40)
    analyst.sql("DELETE FROM TABLE_NAME WHERE id = 1000 OR id = 0")
    report = analyst.analyze(column_sets=[["part", "word"]])
    assert set(report.chunks) == {"pages", "arrow", "engine"}
    exact = analyst.spark.sql(f"SELECT count(DISTINCT part, word) FROM {analyst.name}").first()
    assert report.columns[-1].ndv == exact[0]
    analyst.sql("ALTER TABLE TABLE_NAME ALTER COLUMN part FIRST")
    assert not analyst.analyze().files_read


def test_a_promoted_column_that_is_left_out(analyst: Analyst) -> None:
    analyst.analyze()
    analyst.sql("ALTER TABLE TABLE_NAME ALTER COLUMN part TYPE bigint")
    analyst.append(100)
    analyst.analyze(columns=["id"])
    analyst.analyze()
    analyst.exact()


def test_an_added_column_with_a_default(
    spark: SparkSession, lake: Lake, new_table: NewTable, java: IcebergJava
) -> None:
    """Version 3: rows of older files have the default, though no file holds it."""
    analyst = Analyst(spark, lake, new_table("id bigint", 3))
    analyst.append(0)
    analyst.analyze()
    java.add_column_with_default(analyst.name, "extra", 42)
    analyst.analyze()
    analyst.exact()
    analyst.append(100)
    analyst.analyze()
    analyst.exact()
    analyst.analyze(full=True)
    analyst.exact()


def test_some_columns_then_all(analyst: Analyst) -> None:
    report = analyst.analyze(columns=["id"])
    assert [column.name for column in report.columns] == ["id"]
    assert report.chunks == {"pages": 2}
    report = analyst.analyze()
    assert report.chunks == {"pages": 4}  # the other two columns
    assert report.files == 2
    analyst.exact()
    analyst.append(100)
    assert analyst.analyze(exclude=["id"]).chunks == {"pages": 2}
    assert 1 not in statistics_columns(analyst)  # what is not known of this snapshot is not said
    assert analyst.analyze().chunks == {"pages": 1}
    analyst.exact()
    assert not analyst.analyze().committed


def statistics_columns(analyst: Analyst) -> set[int]:
    metadata = analyst.lake.load(analyst.name).metadata
    (found,) = [s for s in metadata.statistics if s.snapshot_id == metadata.current_snapshot_id]
    return {blob.fields[0] for blob in found.blob_metadata}


def test_files_without_field_ids(analyst: Analyst, tmp_path: Path) -> None:
    """Adopted files are known by the names of their columns, which only Iceberg's reader maps."""
    analyst.analyze()
    folder = tmp_path / "adopted"
    frame = analyst.spark.range(200, 230, 1, 1).selectExpr(
        "id", "concat('x', id) AS word", "CAST(1 AS int) AS part"
    )
    frame.write.parquet(str(folder))
    analyst.call("add_files", source_table=f"'`parquet`.`{folder}`'")
    report = analyst.analyze()
    assert report.chunks == {"engine": 3}
    analyst.exact()


# -- snapshots


def test_an_old_snapshot(analyst: Analyst) -> None:
    first = analyst.snapshot()
    analyst.append(300)
    analyst.analyze()
    with unreadable(set(analyst.data_files())):
        report = analyst.analyze(snapshot=first)
    assert (report.snapshot_id, report.files_read, report.committed) == (first, 0, True)
    assert report.columns[0].ndv == 100
    statistics = {s.snapshot_id for s in analyst.lake.load(analyst.name).metadata.statistics}
    assert statistics == {first, analyst.snapshot()}
    assert not analyst.analyze().committed
    analyst.exact()
    with pytest.raises(UsageError, match="no snapshot 12345"):
        analyst.analyze(snapshot=12345)


def test_an_old_snapshot_of_another_schema(analyst: Analyst) -> None:
    analyst.sql("DELETE FROM TABLE_NAME WHERE id = 7")
    old = analyst.snapshot()
    before = rows_of(analyst.spark, analyst.name)
    analyst.sql("ALTER TABLE TABLE_NAME RENAME COLUMN word TO text")
    analyst.sql("ALTER TABLE TABLE_NAME DROP COLUMN part")
    analyst.append(300)
    report = analyst.analyze(snapshot=old)
    assert [column.name for column in report.columns] == ["id", "word", "part"]
    table, _ = rookery.table(analyst.name, analyst.lake).load()
    snapshot = table.snapshot(old)
    expected = [
        len(expected_hashes(before, table.schema(snapshot), field)) for field in table.fields(snapshot)
    ]
    assert [column.ndv for column in report.columns] == expected
    analyst.analyze()
    analyst.exact()


def test_a_branch(analyst: Analyst) -> None:
    analyst.analyze()
    analyst.sql("ALTER TABLE TABLE_NAME CREATE BRANCH side")
    analyst.sql(
        "INSERT INTO TABLE_NAME.branch_side SELECT /*+ COALESCE(1) */ id, 'side', 9 FROM range(500, 520)"
    )
    side = analyst.lake.load(analyst.name).metadata.refs["side"].snapshot_id
    report = analyst.analyze(snapshot=side)
    assert report.files_read == 1
    assert [column.ndv for column in report.columns] == [120, 38, 4]
    assert not analyst.analyze().committed  # main is as it was
    analyst.append(1000)
    assert analyst.analyze().files_read == 1
    analyst.exact()


def test_fast_forward_to_a_branch(analyst: Analyst) -> None:
    analyst.sql("ALTER TABLE TABLE_NAME CREATE BRANCH side")
    analyst.sql(
        "INSERT INTO TABLE_NAME.branch_side SELECT /*+ COALESCE(1) */ id, 'side', 9 FROM range(500, 520)"
    )
    analyst.analyze(snapshot=analyst.lake.load(analyst.name).metadata.refs["side"].snapshot_id)
    analyst.call("fast_forward", branch="'main'", to="'side'")
    with unreadable(set(analyst.data_files())):
        assert not analyst.analyze().committed
    analyst.exact()


def test_rollback(analyst: Analyst) -> None:
    analyst.analyze()
    first = analyst.snapshot()
    analyst.append(300)
    analyst.analyze()
    analyst.call("rollback_to_snapshot", snapshot_id=first)
    with unreadable(set(analyst.data_files())):
        assert analyst.analyze().files_read == 0
    analyst.exact()
    analyst.append(400)
    assert analyst.analyze().files_read == 1
    analyst.exact()


def test_rollback_to_what_was_never_analysed(analyst: Analyst) -> None:
    """The state of another line of history serves as well: its files are known by their paths."""
    first = analyst.snapshot()
    analyst.append(300)
    analyst.analyze()
    analyst.call("rollback_to_snapshot", snapshot_id=first)
    with unreadable(set(analyst.data_files())):
        assert analyst.analyze().files_read == 0
    analyst.exact()


def test_a_state_whose_snapshot_has_expired(analyst: Analyst) -> None:
    analyst.analyze()
    analyst.append(300)
    analyst.append(400)
    analyst.call("expire_snapshots", older_than="TIMESTAMP '2100-01-01 00:00:00'", retain_last=1)
    assert len(analyst.lake.load(analyst.name).metadata.snapshots) == 1
    assert analyst.analyze().files_read == 2
    analyst.exact()


@pytest.mark.parametrize("version", [1, 2])
def test_partition_evolution_and_new_manifests(
    spark: SparkSession, lake: Lake, new_table: NewTable, version: int
) -> None:
    analyst = Analyst(spark, lake, new_table(COLUMNS, version))
    analyst.append(0)
    analyst.analyze()
    analyst.sql("ALTER TABLE TABLE_NAME ADD PARTITION FIELD bucket(2, id)")
    analyst.append(30)
    assert analyst.analyze().files_read == 2
    analyst.sql("ALTER TABLE TABLE_NAME REPLACE PARTITION FIELD bucket(2, id) WITH truncate(1, word)")
    analyst.call("rewrite_manifests")
    with unreadable(set(analyst.data_files())):
        assert analyst.analyze().files_read == 0
    analyst.exact()


def test_a_table_of_the_same_name(spark: SparkSession, lake: Lake, analyst: Analyst) -> None:
    """Dropped and made again in the same place: what is kept beside it is of another table."""
    analyst.analyze()
    analyst.sql("DROP TABLE TABLE_NAME")
    analyst.sql(f"CREATE TABLE TABLE_NAME ({COLUMNS}) USING iceberg")
    analyst.append(7, count=20)
    assert analyst.analyze().files_read == 1
    analyst.exact()


# -- θ


def large(analyst: Analyst, start: int, count: int, part: int) -> None:
    analyst.sql(
        f"INSERT INTO TABLE_NAME SELECT /*+ COALESCE(1) */ id, concat('w', id), {part} "
        f"FROM range({start}, {start + count})"
    )


def test_a_starved_column_is_collected_again(
    spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path: Path
) -> None:
    analyst = Analyst(spark, lake, new_table(COLUMNS))
    analyst.sql("ALTER TABLE TABLE_NAME ADD PARTITION FIELD part")
    large(analyst, 0, 10 * K, 1)
    large(analyst, 20 * K, 600, 2)
    analyst.analyze()
    assert kept(analyst.name, lake).thetas[1].theta < MAX_THETA
    analyst.sql("DELETE FROM TABLE_NAME WHERE part = 1")
    report = analyst.analyze()
    assert report.files_read == 1
    assert sum(report.chunks.values()) == 2  # `part` has too few values to starve
    analyst.exact()


def test_a_dead_segment_takes_its_theta_along(spark: SparkSession, lake: Lake, new_table: NewTable) -> None:
    """A small file in a segment of its own is known exactly, whatever θ its neighbours had."""
    analyst = Analyst(spark, lake, new_table(COLUMNS))
    analyst.sql("ALTER TABLE TABLE_NAME ADD PARTITION FIELD part")
    large(analyst, 0, 10 * K, 1)
    analyst.analyze()
    large(analyst, 20 * K, 600, 2)
    analyst.analyze()
    analyst.sql("DELETE FROM TABLE_NAME WHERE part = 1")
    with unreadable(set(analyst.data_files())):
        assert analyst.analyze().files_read == 0
    analyst.exact()


def test_large_columns_through_removals(
    spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path: Path
) -> None:
    analyst = Analyst(spark, lake, new_table(COLUMNS))
    analyst.sql("ALTER TABLE TABLE_NAME ADD PARTITION FIELD part")
    for number in range(4):
        large(analyst, 8_000 * number, 10_000, number)  # neighbours share two thousand
        if number % 2:
            analyst.analyze()
    analyst.sql("DELETE FROM TABLE_NAME WHERE part = 2")
    assert analyst.analyze().files_read == 0
    state, anew = kept(analyst.name, lake), recollected(spark, analyst.name, lake, tmp_path)
    for number, sketch in anew.items():
        assert same_below(state.thetas[number], sketch)
    exact = spark.sql(f"SELECT count(DISTINCT id) FROM {analyst.name}").first()[0]
    assert state.thetas[1].estimate().value == pytest.approx(exact, rel=3 / K**0.5)
    assert Path(statistics_path(analyst.name, lake).removeprefix("file:")).exists()
