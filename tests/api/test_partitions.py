"""Which files `field=value` means."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rookery
from rookery.api.lake import Lake
from rookery.model import UsageError
from tests.lakehouse import sqlite_lake

SCHEMA = pa.schema([("region", pa.string()), ("n", pa.int64())])


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return sqlite_lake(tmp_path)


def make(lake: Lake, version: int) -> None:
    table = lake.catalog.create_table("db.t", SCHEMA, properties={"format-version": str(version)})
    with table.update_spec() as update:
        update.add_identity("region")
    rows = {"region": [None, "null", "EU", "'EU'"], "n": [1, 2, 3, 4]}
    table.append(pa.table(rows, schema=SCHEMA))
    with table.update_spec() as update:
        update.remove_field("region")
    table.append(pa.table({"region": ["EU"] * 10, "n": range(10)}, schema=SCHEMA))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("text", "rows"),
    [("region=null", 1), ("region='null'", 1), ("region=EU", 1), ("region='EU'", 1), ("region=''EU''", 1)],
)
def test_null_is_not_the_text(lake: Lake, version: int, text: str, rows: int) -> None:
    """Nor is it what a field has that was removed: format version 1 keeps it, with nulls throughout."""
    make(lake, version)
    assert rookery.table("db.t", lake).stats(partition=text).rows == rows


def test_a_field_named_twice(lake: Lake) -> None:
    make(lake, 2)
    with pytest.raises(UsageError, match="'region' is named twice"):
        rookery.table("db.t", lake).stats(partition="region=EU,region=null")
