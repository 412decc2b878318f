"""Statements of every kind, tables of other formats and catalogs: attached, they do what they do alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import active_count
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.spark.attach import attach
from rookery.spark.attach.planner import Planner
from tests.lakehouse import NewTable, tables
from tests.spark.attach.ways import attached_session, files_read

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

FILES, ROWS = 4, 50
COLUMNS = "id bigint, key string, n int"


def fill(spark: SparkSession, name: str) -> None:
    """Append 4 files; which of them has a key is known by sketches alone."""
    made = spark.range(0, FILES * ROWS, 1, FILES)
    made.selectExpr("id", "md5(cast(id AS string)) AS key", "cast(id % 10 AS int) AS n").writeTo(name).option(
        "distribution-mode", "none"
    ).append()


@pytest.fixture(scope="module")
def events(spark: SparkSession, lake: Lake) -> Iterator[str]:
    with tables(spark) as make:
        name = make(COLUMNS, "events")
        fill(spark, name)
        rookery.analyze(spark, name, lake=lake)
        yield name


@pytest.fixture
def attached(spark: SparkSession) -> Iterator[SparkSession]:
    with attached_session(spark) as session:
        yield session


def rows(session: SparkSession, text: str) -> list[Row]:
    return sorted(session.sql(text).collect(), key=repr)


# -- tables of other formats


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_tables_of_other_formats(
    spark: SparkSession, attached: SparkSession, events: str, tmp_path: Path, form: str
) -> None:
    frame = spark.range(5).selectExpr("id * 40 AS id", "md5(cast(id * 40 AS string)) AS key")
    frame.write.format(form).save(str(tmp_path / "files"))
    for session in (spark, attached):
        session.read.format(form).schema("id bigint, key string").load(
            str(tmp_path / "files")
        ).createOrReplaceTempView("foreign_rows")
    text = f"SELECT e.id FROM {events} e JOIN foreign_rows f ON e.key = f.key WHERE f.id = 40"
    assert rows(attached, text) == rows(spark, text) == [(40,)]
    text = f"SELECT f.id FROM foreign_rows f JOIN {events} e ON e.id = f.id WHERE e.key = md5('80')"
    assert rows(attached, text) == rows(spark, text) == [(80,)]
    assert files_read(attached, text) == {"events": [1]}


def test_metadata_tables(spark: SparkSession, attached: SparkSession, events: str) -> None:
    for text in (
        f"SELECT count(*) FROM {events}.files WHERE record_count = {ROWS}",
        f"SELECT snapshot_id FROM {events}.snapshots WHERE operation = 'append'",
        f"SELECT e.id FROM {events} e JOIN {events}.files f ON e._file = f.file_path WHERE e.key = md5('7')",
        f"SELECT _pos, _file FROM {events} WHERE key = md5('7')",
    ):
        assert rows(attached, text) == rows(spark, text) != []


# -- reading that is not a batch scan of a snapshot


def test_a_stream(attached: SparkSession, events: str, tmp_path: Path) -> None:
    stream = attached.readStream.format("iceberg").load(events).where("key = md5('77')")
    writer = stream.writeStream.format("memory").queryName("streamed").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path)).start().awaitTermination(60)
    assert [row.id for row in attached.table("streamed").collect()] == [77]


def test_a_stream_that_is_joined_with_a_table(attached: SparkSession, events: str, tmp_path: Path) -> None:
    stream = attached.readStream.format("iceberg").load(events).where("id < 120").select("key")
    joined = stream.join(attached.table(events).where("key = md5('77')"), "key")
    writer = joined.writeStream.format("memory").queryName("joined").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path)).start().awaitTermination(60)
    assert [row.id for row in attached.table("joined").collect()] == [77]


def test_a_view_of_changes(
    spark: SparkSession, lake: Lake, attached: SparkSession, new_table: NewTable
) -> None:
    name = new_table(COLUMNS, **{"write.delete.mode": "copy-on-write"})
    fill(spark, name)
    spark.sql(f"DELETE FROM {name} WHERE id = 77")
    rookery.analyze(spark, name, lake=lake)
    for session in (spark, attached):
        session.sql(f"CALL lake.system.create_changelog_view(table => '{name}', changelog_view => 'changes')")
    for text in (
        "SELECT id, _change_type FROM changes WHERE id = 77",
        "SELECT id, _change_type FROM changes WHERE key = md5('78')",
        "SELECT _change_type, count(*) FROM changes GROUP BY _change_type",
    ):
        assert rows(attached, text) == rows(spark, text) != []


def test_what_a_range_of_snapshots_has_added(
    spark: SparkSession, lake: Lake, attached: SparkSession, new_table: NewTable
) -> None:
    name = new_table(COLUMNS)
    fill(spark, name)
    first = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots").first()
    assert first is not None
    spark.sql(f"INSERT INTO {name} VALUES (77, md5('77'), 3)")
    rookery.analyze(spark, name, lake=lake)
    added = attached.read.format("iceberg").option("start-snapshot-id", first[0]).load(name)
    assert [row.n for row in added.where("key = md5('77')").collect()] == [3]


# -- writing


CHANGES = {
    "delete by a subquery": "DELETE FROM {t} WHERE id IN (SELECT id FROM {e} WHERE key = md5('77'))",
    "delete of its own rows": "DELETE FROM {t} WHERE n = (SELECT max(n) FROM {t} WHERE key = md5('8'))",
    "delete by a key": "DELETE FROM {t} WHERE key = md5('77')",
    "delete without such rows": """
        DELETE FROM {t} WHERE NOT EXISTS (SELECT 1 FROM {e} e WHERE e.key = {t}.key AND e.id < 77)""",
    "delete of whole files": "DELETE FROM {t} WHERE id >= 150",
    "update by a subquery": "UPDATE {t} SET n = 99 WHERE key IN (SELECT key FROM {e} WHERE id = 60)",
    "update by a key": "UPDATE {t} SET n = -n WHERE key = md5('150')",
    "merge": """
        MERGE INTO {t} t USING (SELECT * FROM {e} WHERE key IN (md5('3'), md5('77'))) s ON t.id = s.id + 2
        WHEN MATCHED AND s.n = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.n
        WHEN NOT MATCHED THEN INSERT *""",
    "merge by keys": """
        MERGE INTO {t} t USING (SELECT key, id + 1000 id, n FROM {e} WHERE n = 3) s ON t.key = s.key
        WHEN MATCHED THEN UPDATE SET n = s.id WHEN NOT MATCHED BY SOURCE AND t.id > 190 THEN DELETE""",
    "insert": "INSERT INTO {t} SELECT id + 500, key, n FROM {e} WHERE key = md5('77')",
    "insert overwrite": "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE key IN (md5('77'), md5('150'))",
    "insert in place of rows": """
        INSERT INTO {t} REPLACE WHERE id >= 150 SELECT id + 100, key, n FROM {e} WHERE key = md5('77')""",
}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_changes(
    spark: SparkSession, lake: Lake, attached: SparkSession, events: str, new_table: NewTable, mode: str
) -> None:
    modes: dict[str, object] = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    names = [new_table(COLUMNS, **modes) for _ in range(2)]
    for name in names:
        fill(spark, name)
        rookery.analyze(spark, name, lake=lake)
    for what, text in CHANGES.items():
        found = []
        for session, name in zip((spark, attached), names, strict=True):
            session.sql(text.format(t=name, e=events))
            found.append(rows(session, f"SELECT * FROM {name}"))
            session.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {first_snapshot(spark, name)})")
        assert found[0] == found[1], what
        assert len(found[0]) != FILES * ROWS or "update" in what or "merge" in what, what


def first_snapshot(spark: SparkSession, name: str) -> int:
    first = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at LIMIT 1").first()
    assert first is not None
    return int(first[0])


@pytest.mark.parametrize("change", [text for what, text in CHANGES.items() if not what.startswith("insert")])
def test_the_table_that_is_changed_is_not_touched(
    spark: SparkSession, lake: Lake, attached: SparkSession, events: str, new_table: NewTable, change: str
) -> None:
    name = new_table(COLUMNS)
    fill(spark, name)
    rookery.analyze(spark, name, lake=lake)
    attached.sql(change.format(t=name, e=events))
    listed = [table.table for query in rookery.queries(attached).queries for table in query.tables]
    assert name not in listed


def test_tables_of_queries(
    spark: SparkSession, attached: SparkSession, events: str, new_table: NewTable
) -> None:
    target = new_table(COLUMNS)
    spark.sql(f"DROP TABLE {target}")
    text = f"CREATE TABLE {target} USING iceberg AS SELECT * FROM {events} WHERE key = md5('77')"
    assert files_read(attached, text) == {"events": [1]}
    assert [row.id for row in rows(attached, f"SELECT * FROM {target}")] == [77]
    text = f"INSERT INTO {target} SELECT * FROM {events} WHERE key = md5('150')"
    assert files_read(attached, text) == {"events": [1]}
    attached.table(events).where("key = md5('3')").writeTo(target).append()
    assert [row.id for row in rows(attached, f"SELECT * FROM {target}")] == [150, 3, 77]
    text = f"CREATE OR REPLACE TABLE {target} USING iceberg AS SELECT key FROM {target} WHERE id = 77"
    attached.sql(text)
    assert len(rows(attached, f"SELECT * FROM {target}")) == 1


# -- catalogs of other kinds


@pytest.mark.parametrize("kind", ["SparkCatalog", "SparkSessionCatalog"])
def test_catalogs_that_python_does_not_know(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Python gets the table from Spark's plan."""
    catalog = "hadoop" if kind == "SparkCatalog" else "spark_catalog"
    session = spark.newSession()
    for key, value in {
        f"spark.sql.catalog.{catalog}": f"org.apache.iceberg.spark.{kind}",
        f"spark.sql.catalog.{catalog}.type": "hadoop",
        f"spark.sql.catalog.{catalog}.warehouse": str(tmp_path),
    }.items():
        session.conf.set(key, value)
    name = f"{catalog}.default.events"
    session.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg")
    try:
        fill(session, name)
        rookery.analyze(session, name)
        text = f"SELECT id FROM {name} WHERE key = md5('77')"
        alone = rows(session, text)
        with attach(session, least_bytes=0):
            assert rows(session, text) == alone == [(77,)]
            assert files_read(session, text) == {"events": [1]}
            session.sql(
                f"CREATE TABLE spark_catalog.default.plain USING parquet LOCATION '{tmp_path}/plain' "
                "AS SELECT id FROM range(3)"
            )
            joined = f"SELECT e.id FROM {name} e JOIN spark_catalog.default.plain p ON e.id = p.id"
            assert rows(session, joined) == [(0,), (1,), (2,)]
    finally:
        session.sql(f"DROP TABLE {name}")
        session.sql("DROP TABLE IF EXISTS spark_catalog.default.plain")


# -- sessions


def test_what_sessions_have_cached_is_dropped_when_the_last_is_detached(
    spark: SparkSession, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM releases the planner only when it collects its garbage."""
    attached: WeakValueDictionary[str, Planner] = WeakValueDictionary()  # without those of other tests
    monkeypatch.setattr("rookery.spark.attach.session._ATTACHED", attached)
    text = f"SELECT * FROM {events} WHERE key = md5('77')"
    for _ in range(2):
        with attached_session(spark) as one:
            with attached_session(spark) as two:
                assert files_read(two, text) == {"events": [1]}
                first, second = attached.values()
                assert first.cache is second.cache
            assert second.cache.count > 0
            assert files_read(one, text) == {"events": [1]}
        assert first.cache.count == 0


def test_attaching_often_opens_no_more_connections(spark: SparkSession, events: str) -> None:
    """Each connection from the JVM is served by a thread here."""
    session = spark.newSession()
    counts = []
    for number in range(8):
        with attach(session, least_bytes=0):
            assert rows(session, f"SELECT id FROM {events} WHERE key = md5('{number}')") == [(number,)]
        counts.append(active_count())
    assert counts[-1] == counts[0]
