"""SQLite catalogs are read without SQLAlchemy: with the same result as PyIceberg's, or none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from rookery.api.lake import Lake
from rookery.model import CatalogError, MissingTableError, TableName, UsageError
from rookery.tables.config import CatalogConfig
from rookery.tables.iceberg.catalogs import IcebergCatalog
from rookery.tables.iceberg.opening import open_pyiceberg
from rookery.tables.iceberg.sqlite_catalog import LocatedTable, SqliteCatalog, sqlite_catalog
from tests.isolation import isolate

ROWS = pa.table({"id": range(3)})
NAME = TableName("lake", ("db",), "t")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogConfig:
    """A catalog with one table."""
    isolate(tmp_path, monkeypatch)
    found = CatalogConfig("lake", properties_of(tmp_path))
    client = IcebergCatalog(found).create()
    client.create_namespace("db")
    client.create_table("db.t", ROWS.schema).append(ROWS)
    return found


def properties_of(folder: Path, query: str = "?timeout=30", **more: str) -> dict[str, str]:
    uri = f"sqlite:///{folder}/catalog.db{query}"
    return {"type": "sql", "uri": uri, "warehouse": f"file://{folder}/warehouse", **more}


def located(config: CatalogConfig) -> SqliteCatalog:
    found = sqlite_catalog(config)
    assert found is not None
    return found


def execute(folder: Path, statement: str, *values: str) -> None:
    with sqlite3.connect(folder / "catalog.db") as connection:
        connection.execute(statement, values)
    connection.close()


def test_same_table(config: CatalogConfig) -> None:
    ours = IcebergCatalog(config).open(NAME).table
    theirs = open_pyiceberg(config).load_table(NAME.identifier)
    assert isinstance(ours, LocatedTable)
    assert ours.name() == theirs.name()
    assert ours.metadata == theirs.metadata
    assert ours.metadata_location == theirs.metadata_location
    assert dict(ours.io.properties) == dict(theirs.io.properties)
    assert type(ours.io) is type(theirs.io)


def test_commits_through_pyiceberg(config: CatalogConfig) -> None:
    lake = Lake(config)
    table = lake.load("db.t")
    assert isinstance(table, LocatedTable)
    table.append(ROWS)
    assert table.scan().to_arrow().num_rows == 6
    assert lake.load("db.t").metadata == table.refresh().metadata
    assert table.catalog is lake.catalog


def test_dropped_and_made_again(config: CatalogConfig) -> None:
    catalog = IcebergCatalog(config)
    before = catalog.open(NAME)
    assert catalog.open(NAME).table.metadata is before.table.metadata  # parsed once
    catalog.client.drop_table("db.t")
    with pytest.raises(MissingTableError):
        catalog.open(NAME)
    catalog.client.create_table("db.t", ROWS.schema)
    assert catalog.open(NAME).uuid != before.uuid


def test_metadata_files_that_may_be_replaced(config: CatalogConfig, tmp_path: Path) -> None:
    """As of tables that were made without a catalog: their names repeat."""
    catalog = IcebergCatalog(config)
    table = catalog.open(NAME).table
    plain = tmp_path / "v1.metadata.json"
    text = table.io.new_input(table.metadata_location).open().read().decode()
    plain.write_text(text)
    execute(tmp_path, "UPDATE iceberg_tables SET metadata_location = ?", f"file://{plain}")
    assert catalog.open(NAME).uuid == str(table.metadata.table_uuid)
    other = "0" * 8 + str(table.metadata.table_uuid)[8:]
    plain.write_text(text.replace(str(table.metadata.table_uuid), other))
    assert catalog.open(NAME).uuid == other


@pytest.mark.parametrize("missing", ["x.t", "db.x", "db .t"])
def test_missing(config: CatalogConfig, missing: str) -> None:
    namespace, name = missing.split(".")
    assert located(config).metadata_location((namespace, name)) is None
    with pytest.raises(MissingTableError):
        IcebergCatalog(config).open(TableName("lake", (namespace,), "x"))


def test_views_are_no_tables(config: CatalogConfig, tmp_path: Path) -> None:
    execute(tmp_path, "UPDATE iceberg_tables SET iceberg_type = 'VIEW'")
    assert located(config).metadata_location(NAME.identifier) is None
    with pytest.raises(UsageError, match="is a view"):
        IcebergCatalog(config).open(NAME)


def test_older_catalogs(config: CatalogConfig, tmp_path: Path) -> None:
    """They have no column for the kind; PyIceberg is asked."""
    execute(tmp_path, "ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    assert located(config).metadata_location(NAME.identifier) is None
    assert IcebergCatalog(config).open(NAME).snapshot() is not None


def test_metadata_that_cannot_be_read(config: CatalogConfig) -> None:
    catalog = IcebergCatalog(config)
    Path(catalog.open(NAME).table.metadata_location.removeprefix("file://")).write_text("{")
    with pytest.raises(CatalogError, match=r"lake\.db\.t cannot be loaded"):
        IcebergCatalog(config).open(NAME)


def test_metadata_that_is_gone(config: CatalogConfig) -> None:
    """Though it was read before: such a table must not seem whole."""
    catalog = IcebergCatalog(config)
    Path(catalog.open(NAME).table.metadata_location.removeprefix("file://")).unlink()
    with pytest.raises(CatalogError, match=r"lake\.db\.t cannot be loaded"):
        catalog.open(NAME)


def test_no_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path, monkeypatch)
    assert located(CatalogConfig("lake", properties_of(tmp_path))).metadata_location(("db", "t")) is None
    assert not (tmp_path / "catalog.db").exists()


@pytest.mark.parametrize(
    "unusual",
    [
        {"uri": "sqlite:///:memory:"},
        {"uri": "sqlite:///file:catalog.db?uri=true"},
        {"uri": "sqlite:////a.db?mode=ro"},
        {"uri": "sqlite:////a.db?timeout=soon"},
        {"uri": "sqlite+aiosqlite:////a.db"},
        {"uri": "postgresql://host/db"},
        {"schema_version": "v1"},
        {"init_catalog_tables": "false"},
        {"echo": "true"},
    ],
    ids=str,
)
def test_left_to_pyiceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unusual: dict[str, str]) -> None:
    isolate(tmp_path, monkeypatch)
    assert sqlite_catalog(CatalogConfig("lake", properties_of(tmp_path, ""))) is not None
    assert sqlite_catalog(CatalogConfig("lake", {**properties_of(tmp_path), **unusual})) is None


def test_settings_of_a_name_are_not_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog is opened with its own properties, also where others are configured under its name."""
    isolate(tmp_path, monkeypatch)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__ECHO", "false")
    assert sqlite_catalog(CatalogConfig("lake", properties_of(tmp_path))) is not None
    assert "echo" not in IcebergCatalog(CatalogConfig("lake", properties_of(tmp_path))).create().properties


def test_metadata_is_in_the_cache_of_the_lake(config: CatalogConfig) -> None:
    lake = Lake(config)
    first = lake.load("db.t").metadata
    assert lake.load("db.t").metadata is first
    lake.clear_cache()
    assert lake.load("db.t").metadata is not first
