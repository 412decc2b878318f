"""Catalogs that only a Spark session has: everything that Rookery does works on their tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rookery
from rookery.api.lake import Lake
from rookery.api.table import TableHandle
from rookery.maintain.steps.step import Outcome
from rookery.model import CatalogError, MissingTableError, UsageError
from rookery.spark.attach import attach
from tests.lakehouse import NewTable
from tests.spark.attach.ways import files_read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, ROWS = 4, 200
COLUMNS = "id bigint, key string, n int"
ICEBERG = "org.apache.iceberg.spark"


@dataclass(frozen=True)
class Known:
    """A session with a catalog of its own, and the table that is in it."""

    session: SparkSession
    catalog: str
    name: str

    @property
    def handle(self) -> TableHandle:
        return rookery.table(self.name, spark=self.session)

    @property
    def lake(self) -> Lake:
        return rookery.connect(self.catalog, spark=self.session)


def configure(session: SparkSession, catalog: str, kind: str, properties: Mapping[str, str]) -> None:
    session.conf.set(f"spark.sql.catalog.{catalog}", f"{ICEBERG}.{kind}")
    for key, value in properties.items():
        session.conf.set(f"spark.sql.catalog.{catalog}.{key}", value)


def hadoop(folder: Path) -> dict[str, str]:
    return {"type": "hadoop", "warehouse": str(folder)}


def jdbc(folder: Path) -> dict[str, str]:
    uri = f"jdbc:sqlite:{folder}/catalog.db"
    return {"type": "jdbc", "uri": uri, "jdbc.schema-version": "V1", "warehouse": f"file://{folder}"}


CATALOGS = {
    "hadoop": ("prod", "SparkCatalog", hadoop),
    "jdbc": ("prod", "SparkCatalog", jdbc),
    "session catalog": ("spark_catalog", "SparkSessionCatalog", hadoop),
}


@contextmanager
def known_table(spark: SparkSession, folder: Path, kind: str, version: int = 2) -> Iterator[Known]:
    """Make a table of 4 files; which of them has a key is known by sketches alone."""
    catalog, implementation, properties = CATALOGS[kind]
    session = spark.newSession()
    configure(session, catalog, implementation, properties(folder))
    name = f"{catalog}.default.events"
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.default")
    session.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING iceberg TBLPROPERTIES "
        f"('format-version'='{version}', 'write.delete.mode'='merge-on-read')"
    )
    rows = session.range(0, ROWS, 1, FILES)
    rows.selectExpr("id", "md5(cast(id AS string)) AS key", "cast(id % 10 AS int) AS n").writeTo(name).option(
        "distribution-mode", "none"
    ).append()
    try:
        yield Known(session, catalog, name)
    finally:
        rookery.detach(session)  # which maintenance has attached
        session.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture(params=[(kind, version) for kind in CATALOGS for version in (2, 3)], ids=str)
def known(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Known]:
    with known_table(spark, tmp_path, *request.param) as made:
        yield made


@pytest.fixture
def prod(spark: SparkSession, tmp_path: Path) -> Iterator[Known]:
    with known_table(spark, tmp_path, "hadoop") as made:
        yield made


def test_everything(known: Known) -> None:
    handle, session = known.handle, known.session
    handle.add_index("bloom", "key")
    report = rookery.analyze(session, known.name)
    assert (report.table, report.files_read, report.committed) == (known.name, FILES, True)
    assert rookery.analyze(session, known.name).files_read == 0
    session.sql(f"DELETE FROM {known.name} WHERE id = 7")
    assert rookery.table(known.name, spark=session).stats().freshness == "1 snapshot behind"
    rookery.analyze(session, known.name)
    stats = {column.name: column for column in handle.stats().columns}
    assert (stats["key"].ndv, stats["n"].ndv) == (pytest.approx(ROWS, abs=1), 10)
    assert [index.column for index in handle.indexes().indexes] == ["key"]
    where = f"key = '{hashlib.md5(b'77').hexdigest()}'"
    assert handle.explain(where).stages[-1].files_out == 1
    assert handle.read(where)["id"].to_pylist() == [77]
    assert (handle.count(), handle.count("n = 7")) == (ROWS - 1, ROWS // 10 - 1)
    assert [row.id for row in handle.scan(session, where).collect()] == [77]
    with attach(session, least_bytes=0):
        assert files_read(session, f"SELECT id FROM {known.name} WHERE {where}") == {"events": [1]}
    assert handle.status().tables[0].table == known.name


def test_maintenance(known: Known, tmp_path: Path) -> None:
    session, name = known.session, known.name
    session.sql(f"DELETE FROM {name} WHERE id = 7")
    before = known.handle.load()[0]
    policy = tmp_path / "rookery.yaml"
    policy.write_text("defaults: {compaction: {min-files: 2}}")
    (planned,) = known.lake.maintain(name, dry_run=True, policy=policy).tables
    assert planned.outcome is Outcome.PLANNED, planned
    assert known.handle.load()[0].version == before.version
    history = f"sqlite:///{tmp_path}/history.db"
    (run,) = known.lake.maintain("default.*", history=history, policy=policy).tables
    assert (run.table, run.outcome) == (name, Outcome.DONE), run
    after = known.handle.load()[0]
    files = after.read_files(after.file_lists(after.snapshot()))
    assert files["content"].to_pylist().count(0) == 1
    assert known.handle.stats().freshness == "current"
    assert known.handle.count() == session.table(name).count() == ROWS - 1


# -- names


def test_names_are_resolved_as_spark_does(prod: Known) -> None:
    session = prod.session
    for use, names in {
        "USE lake": ("prod.default.events", "prod.`default`.`events`"),
        "USE prod": ("prod.default.events", "default.events"),
        "USE prod.default": ("prod.default.events", "default.events", "events"),
    }.items():
        session.sql(use)
        for name in names:
            assert str(rookery.table(name, spark=session).name) == prod.name
            assert rookery.analyze(session, name).table == prod.name
    lake = rookery.connect(spark=session)
    assert (lake.name, list(map(str, lake.find("*")))) == ("prod", [prod.name])
    assert str(rookery.table("events", lake).name) == prod.name
    assert lake.spark() is session


def test_a_catalog_that_no_query_has_used_yet(prod: Known, spark: SparkSession) -> None:
    """Spark loads it by the settings of the active session, which is another one."""
    session = spark.newSession()
    properties = dict(rookery.connect("prod", spark=prod.session).properties)
    configure(session, "other", "SparkCatalog", properties)
    assert rookery.analyze(session, "other.default.events").files_read == FILES
    configure(session, "spark_catalog", "SparkSessionCatalog", properties)
    assert rookery.connect("spark_catalog", spark=session).status("default.events").tables


def test_what_is_not_there(prod: Known) -> None:
    hint = "the session has the catalogs lake, prod, spark_catalog; its current one is lake"
    with pytest.raises(MissingTableError) as alike:
        rookery.analyze(prod.session, "prod.default.event")
    assert alike.value.hint == "did you mean prod.default.events?"
    for name, error, message in (
        ("prod.default.nothing", MissingTableError, "there is no table prod.default.nothing"),
        ("prod.nowhere.nothing", MissingTableError, "there is no table prod.nowhere.nothing"),
        ("nope.default.events", MissingTableError, "there is no table lake.nope.default.events"),
        ("spark_catalog.default.t", MissingTableError, "there is no Iceberg table spark_catalog.default.t"),
    ):
        with pytest.raises(error, match=message) as caught:
            rookery.analyze(prod.session, name)
        assert caught.value.hint == hint
    with pytest.raises(UsageError, match="the session has no catalog 'nope'") as refused:
        rookery.connect("nope", spark=prod.session)
    assert refused.value.hint == hint
    with pytest.raises(UsageError, match="has no Iceberg tables"):
        rookery.connect("spark_catalog", spark=prod.session)
    with pytest.raises(UsageError, match="is configured there"):
        rookery.connect(spark=prod.session, uri="sqlite:///x.db")
    with pytest.raises(UsageError, match=r"no table of prod matches 'other\.\*'"):
        rookery.connect("prod", spark=prod.session).find("other.*")


def test_what_is_no_table(prod: Known) -> None:
    prod.session.sql(f"ALTER TABLE {prod.name} CREATE BRANCH b")
    for name in ("prod.default.events.files", "prod.default.events.branch_b"):
        with pytest.raises(UsageError, match="is a branch, a snapshot or a metadata table"):
            rookery.table(name, spark=prod.session).stats()


def test_a_catalog_that_cannot_be_loaded(spark: SparkSession) -> None:
    session = spark.newSession()
    configure(session, "broken", "SparkCatalog", {"type": "rest", "uri": "http://127.0.0.1:1"})
    with pytest.raises(CatalogError, match="Spark cannot load the catalog broken"):
        rookery.analyze(session, "broken.db.t")


# -- which of several catalogs


def test_one_that_python_knows_too_is_opened_by_python(
    spark: SparkSession, lake: Lake, new_table: NewTable
) -> None:
    session = spark.newSession()
    assert rookery.connect(spark=session).catalog.name == lake.name
    name = new_table("id int")
    handle = rookery.table(name, spark=session)
    assert handle.lake.load(name).metadata.table_uuid == lake.load(name).metadata.table_uuid
    assert handle.lake.spark(attach=False) is session


def test_a_catalog_with_the_name_of_another(
    spark: SparkSession, lake: Lake, new_table: NewTable, tmp_path: Path
) -> None:
    """Of that name, the session has a catalog of its own, with a table that Python has too."""
    name = new_table(COLUMNS)
    spark.sql(f"INSERT INTO {name} VALUES (1, 'of Python', 1)")
    session = spark.newSession()
    for key in rookery.spark.spark_catalog(lake.config).conf:
        session.conf.unset(key)
    configure(session, "lake", "SparkCatalog", hadoop(tmp_path))
    session.sql(f"CREATE TABLE {name} ({COLUMNS}) USING iceberg")
    session.sql(f"INSERT INTO {name} VALUES (1, 'of Spark', 1), (2, 'of Spark', 1)")
    with pytest.raises(UsageError, match="is not a catalog of PyIceberg"):
        rookery.connect(spark=session).catalog  # noqa: B018
    assert rookery.table(name, spark=session).read("id = 1")["key"].to_pylist() == ["of Spark"]
    assert (
        rookery.analyze(session, name).snapshot_id == rookery.table(name, spark=session).stats().snapshot_id
    )
    assert rookery.table(name, lake).read("id = 1")["key"].to_pylist() == ["of Python"]
    assert lake.open(name)[1].states() == []
    for mixed in (
        lambda: rookery.analyze(session, name, lake=lake),
        lambda: rookery.table(name, lake).scan(session, "id = 1"),
    ):
        with pytest.raises(CatalogError, match="is another table in Spark than in Rookery"):
            mixed()
    assert lake.open(name)[1].states() == []


# -- a table is opened as it is now


def test_other_sessions_change_a_table(prod: Known, spark: SparkSession) -> None:
    other = spark.newSession()
    configure(other, "prod", "SparkCatalog", dict(prod.lake.properties))
    handle = prod.handle
    assert handle.count() == ROWS
    other.sql(f"INSERT INTO {prod.name} VALUES (1, 'a', 1)")
    assert handle.count() == ROWS + 1
    assert rookery.analyze(prod.session, prod.name).files_read == FILES + 1
    other.sql(f"DROP TABLE {prod.name}")
    with pytest.raises(MissingTableError):
        handle.count()
    other.sql(f"CREATE TABLE {prod.name} (word string) USING iceberg")
    other.sql(f"INSERT INTO {prod.name} VALUES ('new')")
    assert handle.read()["word"].to_pylist() == ["new"]
    assert [column.name for column in rookery.analyze(prod.session, prod.name).columns] == ["word"]


# -- statements


def test_analyze_as_a_statement(prod: Known) -> None:
    session = prod.session
    session.sql("USE prod.default")
    found = rookery.sql(session, "ANALYZE TABLE events COMPUTE STATISTICS FOR COLUMNS N, key").collect()
    assert {row.column: row.ndv for row in found} == {"n": 10, "key": pytest.approx(ROWS, abs=1)}
    assert prod.handle.stats().freshness == "current"


def test_analyze_of_a_table_of_another_format(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    configure(session, "spark_catalog", "SparkSessionCatalog", hadoop(tmp_path))
    name = "spark_catalog.default.plain_rows"
    session.sql(f"CREATE TABLE {name} USING parquet LOCATION '{tmp_path}/plain' AS SELECT id FROM range(3)")
    try:
        rookery.sql(session, f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")
        described = session.sql(f"DESCRIBE EXTENDED {name} id").collect()
        assert {row.info_name: row.info_value for row in described}["distinct_count"] == "3"
        with pytest.raises(UsageError, match="is not an Iceberg table"):
            rookery.analyze(session, name)
    finally:
        session.sql(f"DROP TABLE {name}")
