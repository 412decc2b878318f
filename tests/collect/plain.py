"""Tables of PyIceberg, and an analysis of them with no JVM: all of it but the commit of statistics."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from rookery.api.explain import ExplainReport, explain
from rookery.api.indexes import IndexReport, add_index, list_indexes
from rookery.api.where import bind
from rookery.collect.choose import Choice, choose
from rookery.collect.distributions import DistributionSketches
from rookery.collect.keep import keep
from rookery.collect.prepare import AnalyzePlan, prepare
from rookery.collect.progress import silent
from rookery.collect.segments import Written, write_groups
from rookery.model import Snapshot, TableName
from rookery.read.table_reader import count_rows, read_table
from rookery.sidecar import State, Store
from rookery.tables.iceberg import IcebergTable

NO_SPARK = cast(Any, SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2)))


class PlainTable:
    """A table, and what is kept of it."""

    def __init__(self, folder: Path, schema: pa.Schema, name: str = "t") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.catalog = SqlCatalog("plain", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        self.catalog.create_namespace_if_not_exists("db")
        self.name = TableName("plain", ("db",), name)
        self.table = self.catalog.create_table(f"db.{name}", schema)
        self.store = Store(str(folder / f"{name}.rookery"), {})

    def append(self, rows: pa.Table) -> None:
        """Append one file."""
        self.table.append(rows)

    def load(self) -> IcebergTable:
        return IcebergTable(self.name, self.table.refresh())

    def snapshot(self) -> Snapshot:
        found = self.load().snapshot()
        assert found is not None
        return found

    def add_index(self, kind: str, column: str, fpp: float | None = None) -> IndexReport:
        return add_index(self.load(), self.store, kind, column, fpp)

    def indexes(self) -> IndexReport:
        return list_indexes(self.load(), self.store)

    def prepared(self, *columns: str, full: bool = False) -> AnalyzePlan:
        table, snapshot = self.load(), self.snapshot()
        fields, _ = choose(table.fields(snapshot), Choice(columns=columns) if columns else Choice())
        return prepare(table, self.store, snapshot, fields, full)

    def written(self, work: AnalyzePlan) -> list[Written]:
        return write_groups(NO_SPARK, self.load(), self.store, work, silent)

    def analyse(self, *columns: str, full: bool = False) -> State:
        work = self.prepared(*columns, full=full)
        return keep(self.load(), self.store, work, self.written(work), (None, DistributionSketches()))

    def read(self, where: str, table: IcebergTable | None = None) -> list[dict[str, Any]]:
        table = table or self.load()
        snapshot = table.snapshot()
        assert snapshot is not None
        rows = read_table(table, self.store, snapshot, bind(where, table, snapshot, "UTC")).rows
        return sorted(rows.to_pylist(), key=repr)

    def count(self, where: str, table: IcebergTable | None = None) -> int:
        table = table or self.load()
        snapshot = table.snapshot()
        assert snapshot is not None
        return count_rows(table, self.store, snapshot, bind(where, table, snapshot, "UTC"))[0]

    def explain(self, where: str, table: IcebergTable | None = None) -> ExplainReport:
        return explain(table or self.load(), self.store, where, resolved_ms=0.0)

    def segment_paths(self) -> list[Path]:
        return sorted(Path(self.store.location).glob("segment-*.puffin"))
