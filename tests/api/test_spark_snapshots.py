"""A scan reads the newest snapshot, and goes on reading it as long as it is used; `sql` is Spark's own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import CatalogError
from rookery.tables.iceberg.jvm import load_java_table
from tests.lakehouse import tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROUNDS = 500  # of garbage collection, after which what nobody uses must be gone


@contextmanager
def numbers(spark: SparkSession, lake: Lake) -> Iterator[str]:
    """A table of the numbers up to 80 in eight files."""
    with tables(spark) as make:
        name = make("k bigint", "numbers")
        spark.range(0, 80, 1, 1).toDF("k").repartitionByRange(8, "k").writeTo(name).append()
        rookery.analyze(spark, name, lake=lake)
        yield name


@pytest.fixture
def name(spark: SparkSession, lake: Lake) -> Iterator[str]:
    with numbers(spark, lake) as name:
        yield name


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session of the test's own, which `rookery.sql` attaches."""
    session = spark.newSession()
    yield session
    rookery.detach(session)


@pytest.fixture(scope="module")
def lasting(spark: SparkSession, lake: Lake) -> Iterator[str]:
    """One that nobody writes to."""
    with numbers(spark, lake) as name:
        yield name


def test_a_table_that_another_session_has_made_anew(spark: SparkSession, lake: Lake, name: str) -> None:
    """The session's catalog has cached the one that had the name before, which cannot be refreshed."""
    assert spark.table(name).count() == 80
    another = spark.newSession()
    another.sql(f"DROP TABLE {name}")
    another.sql(f"CREATE TABLE {name} USING iceberg AS SELECT id k FROM range(3)")
    rookery.analyze(spark, name, lake=lake)
    assert rookery.table(name, lake).count() == 3
    assert rookery.table(name, lake).scan(spark, "k = 1").count() == 1


def append(lake: Lake, name: str, *numbers: int) -> None:
    """Commit as another engine does, of which Spark hears nothing."""
    lake.load(name).append(pa.table({"k": pa.array(numbers, pa.int64())}))


WHERES = ["k = 5", "k >= 0", "k < 70 OR k > 1000", "k + 0 >= 0"]
LENIENT, ASIDE = {"spark.sql.ansi.enabled": "false"}, {"spark.wap.branch": "none"}


@pytest.mark.parametrize(("where", "settings"), [*zip(WHERES, [{}, LENIENT, ASIDE, {}], strict=True)])
def test_commits_of_others_are_seen_at_once(
    spark: SparkSession, lake: Lake, name: str, where: str, settings: dict[str, str]
) -> None:
    session = spark.newSession()
    for key, value in settings.items():
        session.conf.set(key, value)
    table = rookery.table(name, lake)
    for change in (lambda: append(lake, name, 5, 5000), lambda: lake.load(name).delete("k = 5")):
        session.table(name).count()  # which Iceberg's catalog remembers
        change()
        expected = table.count(where) if "+" not in where else table.count()
        assert table.scan(session, where).count() == expected


def test_sql_sees_what_the_session_sees(session: SparkSession, lake: Lake, name: str) -> None:
    append(lake, name, 5)  # the session has not loaded the table yet, so that nothing is cached
    for text, expected in (
        (f"SELECT k FROM {name} WHERE k = 5", [(5,), (5,)]),
        (f"FROM {name} |> WHERE k < 7 |> AGGREGATE count(*)", [(8,)]),
    ):
        assert session.sql(text).collect() == expected
        assert rookery.sql(session, text, lake).collect() == expected
        rookery.detach(session)


def test_a_frame_goes_on_showing_its_snapshot(spark: SparkSession, lake: Lake, name: str) -> None:
    table = rookery.table(name, lake)
    frames = [table.scan(spark, where) for where in (None, *WHERES)]
    before = [frame.count() for frame in frames]
    append(lake, name, 5)
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN k TO n")
    assert [frame.count() for frame in frames] == before
    assert [row.k for row in frames[1].collect()] == [5]
    assert table.scan(spark, "n = 5").count() == 2


def test_a_column_added_and_no_row(spark: SparkSession, session: SparkSession, lake: Lake, name: str) -> None:
    spark.sql(f"ALTER TABLE {name} ADD COLUMN x int")
    for where in (None, "k = 5", "x IS NULL"):
        assert rookery.table(name, lake).scan(spark, where).columns == ["k", "x"]
    text = f"SELECT a.x, b.k FROM {name} a JOIN {name} b ON a.k = b.k AND a.k = 5"
    assert rookery.sql(session, text, lake).collect() == [(None, 5)]


@pytest.mark.parametrize("version", [2, 3])
def test_metadata_columns(spark: SparkSession, session: SparkSession, lake: Lake, version: int) -> None:
    with tables(spark) as make:
        name = make("k bigint, p int", partitioned="p", **{"format-version": version})
        spark.range(0, 80, 1, 1).selectExpr("id k", "CAST(id DIV 10 AS int) p").writeTo(name).append()
        spark.sql(f"DELETE FROM {name} WHERE k = 7")
        rookery.analyze(spark, name, lake=lake)
        columns = ["_file", "_pos", "_partition", "_partition.p", "_spec_id", "_deleted"]
        columns += ["_row_id", "_last_updated_sequence_number"] if version > 2 else []
        for chosen in (["_pos"], columns):
            expected = spark.table(name).where("k < 10").select("k", *chosen).collect()
            assert rookery.table(name, lake).scan(spark, "k < 10").select("k", *chosen).collect() == expected
            text = f"SELECT k, {', '.join(chosen)} FROM {name} WHERE k < 10"
            assert rookery.sql(session, text, lake).collect() == expected
        inner = f"SELECT k FROM {name} WHERE k < 10 AND _pos < o._pos + 1"
        outer = f"SELECT k, _pos FROM {name} o WHERE k IN ({inner}) AND k < 70"
        assert rookery.sql(session, outer, lake).collect() == spark.sql(outer).collect()


def test_a_column_qualified_by_the_current_namespace(session: SparkSession, lake: Lake, lasting: str) -> None:
    _, namespace, last = lasting.split(".")
    session.sql(f"USE lake.{namespace}")
    qualified = (f"{namespace}.{last}.k", f"lake.{namespace}.{last}.k", f"{last}.k", f"{namespace}.{last}.*")
    for columns in qualified:
        assert rookery.sql(session, f"SELECT {columns} FROM {last} WHERE k = 5", lake).collect() == [(5,)]


def test_catalogs_that_share_only_their_name(
    spark: SparkSession, session: SparkSession, lake: Lake, name: str, tmp_path: Path
) -> None:
    other = rookery.connect("lake", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}")
    namespace, last = name.split(".")[1:]
    other.catalog.create_namespace(namespace)
    made = other.catalog.create_table((namespace, last), pa.schema([("k", pa.int64())]))
    made.append(pa.table({"k": pa.array([1000], pa.int64())}))
    assert rookery.sql(session, f"SELECT k FROM {name} WHERE k = 5", other).collect() == [(5,)]
    with pytest.raises(CatalogError, match="share only the name"):
        rookery.table(name, other).scan(spark, "k = 5")


def test_a_catalog_that_has_fallen_behind(
    session: SparkSession, lake: Lake, name: str, tmp_path: Path
) -> None:
    """The same table by its uuid, at an older state, answers no query of Spark's."""
    other = rookery.connect("lake", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{tmp_path}")
    namespace, last = name.split(".")[1:]
    other.catalog.create_namespace(namespace)
    other.catalog.register_table((namespace, last), lake.load(name).metadata_location)
    append(lake, name, 5)
    assert rookery.sql(session, f"SELECT k FROM {name} WHERE k = 5", other).collect() == [(5,), (5,)]
    assert rookery.table(name, other).scan(session, "k = 5").count() == 2


def staged_sets(spark: SparkSession, lake: Lake, name: str) -> int:
    jvm: Any = spark._jvm
    table = load_java_table(spark, lake.table_name(name))
    return int(jvm.org.apache.iceberg.spark.ScanTaskSetManager.get().fetchSetIds(table).size())


def collected(spark: SparkSession, done: Callable[[], bool]) -> bool:
    """Collect garbage, of Python and of the JVM, until something is so."""
    jvm: Any = spark._jvm
    for _ in range(ROUNDS):
        gc.collect()
        jvm.System.gc()
        jvm.java.util.Collections.nCopies(1 << 16, "pressure").toArray()
        if done():
            return True
    return False


def _as_view(spark: SparkSession, frame: DataFrame) -> Callable[[], int]:
    frame.createOrReplaceTempView("lasting")
    return lambda: spark.sql("SELECT k FROM lasting WHERE k = 5").count()


def _as_cached(spark: SparkSession, frame: DataFrame) -> Callable[[], int]:
    frame.createOrReplaceTempView("lasting")
    spark.sql("CACHE LAZY TABLE lasting")
    return lambda: spark.table("lasting").where("k = 5").count()


KEPT: dict[str, Callable[[SparkSession, DataFrame], Callable[[], int]]] = {
    "frame": lambda spark, frame: frame.count,
    "derived": lambda spark, frame: frame.groupBy("k").count().where("k = 5").count,
    "joined": lambda spark, frame: frame.alias("a").join(frame.alias("b"), "k").where("k = 5").count,
    "rows": lambda spark, frame: frame.rdd.count,
    "view": _as_view,
    "cached view": _as_cached,
}


@pytest.mark.parametrize("kept", KEPT)
def test_what_is_staged_lives_as_long_as_it_can_be_read(
    spark: SparkSession, lake: Lake, lasting: str, kept: str
) -> None:
    def frame(number: int) -> DataFrame:
        return rookery.table(lasting, lake).scan(spark, f"k = {number}")

    count = KEPT[kept](spark, frame(5))
    frame(25)  # which nobody keeps, and whose end shows that garbage was collected
    assert collected(spark, lambda: staged_sets(spark, lake, lasting) <= 1)  # an RDD is planned at once
    assert count() == 1
    spark.catalog.clearCache()
    spark.catalog.dropTempView("lasting")
    del count
    assert collected(spark, lambda: staged_sets(spark, lake, lasting) == 0)
