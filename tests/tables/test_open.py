"""Opening catalogs: what works, and what is said in one line when it does not."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rookery.model import CatalogError, MissingCatalogError, MissingTableError, TableName
from rookery.tables.config import CatalogConfig, embedded, resolve, sqlite_path
from rookery.tables.iceberg.catalogs import IcebergCatalog
from rookery.tables.iceberg.opening import create_catalog, open_pyiceberg


def test_embedded_in_a_missing_folder(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    catalog = IcebergCatalog(embedded(folder))
    assert (list(catalog.tables()), catalog.count_namespaces()) == ([], 0)
    with pytest.raises(MissingTableError):
        catalog.open(TableName("lake", ("db",), "t"))
    assert not (tmp_path / "not").exists()
    catalog.create().create_namespace("db")
    assert (folder / "catalog.db").exists()
    assert open_pyiceberg(embedded(folder)).list_namespaces() == [("db",)]


def test_a_missing_catalog_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "not" / "catalog.db"
    catalog = IcebergCatalog(CatalogConfig("c", {"uri": f"sqlite:///{path}"}))
    for look in (lambda: list(catalog.tables()), lambda: catalog.open(TableName("c", ("db",), "t"))):
        with pytest.raises(MissingCatalogError, match=f"no catalog 'c': no file {path}") as caught:
            look()
        assert "check its uri" in (caught.value.hint or "")
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_a_catalog_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE mine (x)")
        database.commit()
        config = CatalogConfig("c", {"uri": f"sqlite:///{path}"})
        with pytest.raises(MissingCatalogError, match="has no tables of one"):
            open_pyiceberg(config)
        assert _names(database) == {"mine"}
        create_catalog(config)
        assert _names(database) > {"mine", "iceberg_tables"}
    assert open_pyiceberg(config).list_namespaces() == []


def _names(database: sqlite3.Connection) -> set[str]:
    return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_a_catalog_that_may_only_be_read(tmp_path: Path) -> None:
    config = CatalogConfig("c", {"uri": f"sqlite:///file:{tmp_path}/catalog.db?mode=ro&uri=true"})
    create_catalog(CatalogConfig("c", {"uri": f"sqlite:///{tmp_path}/catalog.db"}))
    assert open_pyiceberg(config).list_namespaces() == []


def test_a_catalog_of_an_older_iceberg(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Spark's JdbcCatalog creates its tables so, unless it is told otherwise."""
    with closing(sqlite3.connect(tmp_path / "c.db")) as database:
        for name, columns in _OLD.items():
            database.execute(f"CREATE TABLE {name} ({columns})")
        database.execute("INSERT INTO iceberg_tables VALUES ('c', 'db', 't', 'file:/t.json', NULL)")
        database.execute("INSERT INTO iceberg_namespace_properties VALUES ('c', 'db', 'exists', 'true')")
        database.commit()
        before = list(database.iterdump())
        catalog = IcebergCatalog(CatalogConfig("c", {"uri": f"sqlite:///{tmp_path}/c.db"}))
        assert list(map(str, catalog.tables())) == ["c.db.t"]
        assert list(database.iterdump()) == before
    other = IcebergCatalog(CatalogConfig("other", {"uri": f"sqlite:///{tmp_path}/c.db"}))
    assert (list(other.tables()), other.other_names()) == ([], ["c"])
    assert "v0" not in caplog.text


_OLD = {
    "iceberg_tables": "catalog_name, table_namespace, table_name, metadata_location, "
    "previous_metadata_location",
    "iceberg_namespace_properties": "catalog_name, namespace, property_key, property_value",
}


def test_sqlite_in_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = CatalogConfig("c", {"uri": f"sqlite:///{tmp_path}/file/catalog.db"})
    with pytest.raises(CatalogError, match="file") as caught:
        create_catalog(config)
    assert caught.value.hint


def test_sqlite_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"not a database, and long enough to be taken for one" * 30)
    with pytest.raises(CatalogError, match=r"'c' cannot be opened.*not a database") as caught:
        open_pyiceberg(CatalogConfig("c", {"uri": f"sqlite:///{tmp_path}/catalog.db"}))
    assert "\n" not in caught.value.message


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    "secrets",
    [{"token": "t0ken-s3cret"}, {"credential": "client:cr3d-s3cret"}, {"s3.secret-access-key": "k3y-s3cret"}],
)
@pytest.mark.filterwarnings("ignore:Deprecated")  # of PyIceberg, about where its tokens come from
def test_unreachable_rest(secrets: dict[str, str]) -> None:
    uri = f"http://me:pw-s3cret@127.0.0.1:{_closed_port()}/catalog"
    with pytest.raises(CatalogError, match="'c' cannot be opened") as caught:
        open_pyiceberg(CatalogConfig("c", {"type": "rest", "uri": uri, **secrets}))
    assert "\n" not in caught.value.message
    assert "s3cret" not in caught.value.message + (caught.value.hint or "")
    assert "nothing answers at its address" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        ("thrift://127.0.0.1:1", "pip install 'pyiceberg[hive]'"),
        ("postgresql+psycopg2://me:pw-s3cret@127.0.0.1:1/db", "pip install 'pyiceberg[sql-postgres]'"),
        ("jdbc:mysql://127.0.0.1:1/db?user=me&password=pw-s3cret", "pip install pymysql"),
    ],
)
def test_missing_packages(uri: str, hint: str) -> None:
    with pytest.raises(CatalogError, match="is not installed") as caught:
        open_pyiceberg(resolve("c", uri))
    assert caught.value.hint == hint
    assert "s3cret" not in caught.value.message


def test_missing_driver_names_no_password() -> None:
    config = CatalogConfig("c", {"uri": "postgresql+nosuchdriver://me:pw-s3cret@host/db"})
    with pytest.raises(CatalogError) as caught:
        open_pyiceberg(config)
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("sqlite:////a/b.db", "/a/b.db"),
        ("sqlite:///b.db?timeout=3", "b.db"),
        ("sqlite+pysqlite:////a.db", "/a.db"),
        ("sqlite://", None),
        ("sqlite:///", None),
        ("postgresql:///db", None),
        ("", None),
    ],
)
def test_sqlite_path(uri: str, path: str | None) -> None:
    assert sqlite_path(uri) == path
