"""Registering statistics by PyIceberg, while others commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from rookery.api.lake import Lake
from rookery.model import CatalogError, MetadataFile, MissingTableError, RookeryError, TableName
from rookery.puffin import THETA_V1, Blob, Writer
from rookery.tables import Table
from rookery.tables.iceberg import IcebergTable, commit
from rookery.tables.java_errors import OtherTableError
from tests.lakehouse import sqlite_lake, sqlite_options

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = sqlite_lake(tmp_path)
    lake.catalog.create_table("db.t", ROWS.schema).append(ROWS)
    return lake


@pytest.fixture
def other(lake: Lake, tmp_path: Path) -> SqlCatalog:
    """The catalog as another process has it."""
    return SqlCatalog(lake.name, **sqlite_options(tmp_path))


def register(table: Table, ndv: int = 3) -> None:
    snapshot = table.snapshot()
    assert snapshot is not None
    with Writer(f"{table.statistics_folder}/{snapshot.id}-{ndv}.stats") as writer:
        writer.add(Blob(THETA_V1, b"payload", (1,), snapshot.id, 1, properties={"ndv": str(ndv)}))
    table.register_statistics(None, snapshot.id, writer.written, lambda blob: True)


def before_each_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object]
) -> list[int]:
    """Act when the table has been loaded to be changed, before the commit; return the attempts."""
    attempts: list[int] = []
    stage = lake.catalog._update_and_stage_table

    def staged(*arguments: Any) -> Any:
        attempts.append(len(attempts) + 1)
        act(attempts[-1])
        return stage(*arguments)

    monkeypatch.setattr(lake.catalog, "_update_and_stage_table", staged)
    return attempts


def test_commits_of_others_stay(lake: Lake, other: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, properties and statistics of others that are committed between load and commit."""
    table, _ = lake.open("db.t")

    def commit_too(attempt: int) -> None:
        theirs = other.load_table("db.t")
        if attempt == 1:
            theirs.append(ROWS)
        if attempt == 2:
            theirs.transaction().set_properties(theirs="2").commit_transaction()
        if attempt == 3:
            register_of_others(other)

    attempts = before_each_commit(lake, monkeypatch, commit_too)
    register(table)
    assert attempts == [1, 2, 3, 4]
    now, _ = lake.open("db.t")
    assert len(now.snapshots) == 2
    assert now.properties["theirs"] == "2"
    first, second = sorted(now.snapshots.values(), key=lambda snapshot: snapshot.timestamp_ms)
    stated = {file.snapshot_id: file.blobs[0].properties["ndv"] for file in now.statistics}
    assert stated == {first.id: "3", second.id: "6"}


def register_of_others(other: SqlCatalog) -> None:
    register(IcebergTable(TableName(other.name, ("db",), "t"), other.load_table("db.t")), 6)


def test_others_always_commit_first(lake: Lake, other: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = lake.open("db.t")

    def change(attempt: int) -> None:
        other.load_table("db.t").transaction().set_properties(number=str(attempt)).commit_transaction()

    monkeypatch.setattr(commit, "_LONGEST_PAUSE", 0.05)
    attempts = before_each_commit(lake, monkeypatch, change)
    with pytest.raises(
        CatalogError, match=r"could not be registered: .*updated by another process"
    ) as raised:
        register(table)
    assert raised.value.hint == "what was collected is kept; run analyze again"
    assert len(attempts) == commit.ATTEMPTS
    now, _ = lake.open("db.t")
    assert (now.properties["number"], now.statistics) == (str(commit.ATTEMPTS), ())


def dropped(catalog: SqlCatalog) -> None:
    catalog.drop_table("db.t")


def made_again(catalog: SqlCatalog) -> None:
    catalog.drop_table("db.t")
    catalog.create_table("db.t", ROWS.schema).append(ROWS)


def expired(catalog: SqlCatalog) -> None:
    table = catalog.load_table("db.t")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.append(ROWS)
    table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()


@pytest.mark.parametrize(
    ("happened", "error", "said"),
    [
        (dropped, MissingTableError, "has been dropped"),
        (made_again, OtherTableError, "is another table"),
        (expired, CatalogError, "has expired during the run"),
    ],
)
def test_the_table_is_no_longer_the_same(
    lake: Lake,
    other: SqlCatalog,
    happened: Callable[[SqlCatalog], None],
    error: type[RookeryError],
    said: str,
) -> None:
    table, _ = lake.open("db.t")
    happened(other)
    with pytest.raises(error, match=said):
        register(table)


def test_a_table_of_a_metadata_file(lake: Lake) -> None:
    table, _ = lake.open("db.t")
    assert table.not_committable is None
    assert table.version is not None
    alone, _ = lake.open_metadata(MetadataFile.at(table.version))
    assert alone.not_committable == "PyIceberg does not know its catalog"
