"""Opening catalogs: what works, and what is said in one line when it does not."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from rookery.model import CatalogError
from rookery.tables.config import CatalogConfig, embedded, sqlite_path
from rookery.tables.iceberg.catalogs import open_pyiceberg


def test_embedded_in_a_missing_folder(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    catalog = open_pyiceberg(embedded(folder))
    catalog.create_namespace("db")
    assert (folder / "catalog.db").exists()
    assert open_pyiceberg(embedded(folder)).list_namespaces() == [("db",)]


def test_sqlite_in_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = CatalogConfig("c", {"uri": f"sqlite:///{tmp_path}/file/catalog.db"})
    with pytest.raises(CatalogError, match="file") as caught:
        open_pyiceberg(config)
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
    assert "server runs" in (caught.value.hint or "")


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
