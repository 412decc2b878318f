"""The other tables of a catalog: which are loaded, and when."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa

from rookery.api.lake import Lake
from rookery.maintain.steps.other_tables import OtherTables
from rookery.model import TableName
from rookery.tables import Table
from rookery.tables.config import embedded
from tests.tables.memory_format import MemoryWriter

ROWS = pa.table({"id": pa.array(range(10), pa.int64())})


def test_tables_that_are_given_are_loaded_once_they_are_old(tmp_path: Path) -> None:
    lake = Lake(embedded(tmp_path))
    lake.catalog.create_namespace("db")
    for name in ("a", "b"):
        lake.catalog.create_table(f"db.{name}", ROWS.schema)
    loads: Counter[str] = Counter()

    def load(name: TableName) -> Table:
        loads[name.table] += 1
        return lake.open(name)[0]

    now = 0.0
    other_tables = OtherTables(lake.tables, load, lambda: now)
    given, _ = lake.open("db.a")
    other_tables.give([given])
    assert sorted(table.name.table for table in other_tables.tables()) == ["a", "b"]
    assert given in other_tables.tables()
    assert loads == {"b": 1}
    now = 1000.0
    assert given not in other_tables.tables()
    assert loads == {"a": 1, "b": 2}


def test_a_table_of_another_format_counts_as_one_that_cannot_be_read(tmp_path: Path) -> None:
    """What it names is not known, so that nothing near it may be deleted."""
    table = MemoryWriter(tmp_path, {"id": "long"}).open()
    other_tables = OtherTables(lambda: [table.name], lambda name: table)
    assert not other_tables.tables()
    assert other_tables.failure is not None
    assert "is not an Iceberg table" in other_tables.failure.message
