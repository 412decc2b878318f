"""`spark.read.format("rookery")`: the rows of a table, pruned by the filters that Spark pushes down.

It gives pruning to plain SQL by `CREATE TEMPORARY VIEW … USING rookery OPTIONS (table '…')`, and to sessions
that have no JVM at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as ice
from pyspark.sql import datasource as pushed
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from rookery.model import (
    ALWAYS,
    Predicate,
    RookeryError,
    Snapshot,
    TableName,
    UsageError,
    all_of,
    opaque_parts,
)
from rookery.prune.cascade import prune
from rookery.prune.fileset import file_set
from rookery.read.file import FileRead, ReadCosts, Request, read_file
from rookery.read.rows import make_request
from rookery.read.survivors import survivors
from rookery.spark.spark_types import for_spark, spark_columns
from rookery.store import Store, store_of
from rookery.tables import configured, load_table, open_catalog, resolve
from rookery.tables.iceberg import IcebergTable
from rookery.where.expressions import predicate_from_expression

_ice: Any = ice  # whose annotations know only the forms that pydantic makes
_DIGITS = 28  # of a decimal that comes through PySpark whole
_TASK_BYTES = 64 << 20  # of files that one task reads


@dataclass
class FilesPartition(InputPartition):
    """Files that are read by one task, and what is asked of them."""

    request: Request
    files: list[FileRead]

    def __init__(self, request: Request, files: list[FileRead]) -> None:
        super().__init__(None)
        self.request = request
        self.files = files


class RookeryDataSource(DataSource):
    """Reads a table. Options: `table`, its name; `snapshot`, an id; `columns`, names with commas."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "rookery"

    def schema(self) -> str:
        """The columns of the table, or those that the option names."""
        table, _ = self._open()
        return spark_columns(table.schema(self._snapshot(table)), self._columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader of some columns."""
        table, store = self._open()
        return RookeryReader(table, store, self._option("snapshot"), schema.names)

    def _open(self) -> tuple[IcebergTable, Store]:
        text = self.options.get("table") or self.options.get("path")
        if not text:
            raise UsageError(
                "no table was named", hint='say spark.read.format("rookery").option("table", "db.orders")'
            )
        config = resolve(self.options.get("catalog"))
        name = TableName.parse(text, default_catalog=config.name, catalogs=configured().keys())
        if name.catalog != config.name:
            config = resolve(name.catalog)
        table = IcebergTable(name, load_table(open_catalog(config), name, config.properties))
        return table, store_of(table, config.properties)

    def _columns(self) -> list[str] | None:
        said = self.options.get("columns")
        return [name.strip() for name in said.split(",") if name.strip()] if said else None

    def _option(self, key: str) -> int | None:
        said = self.options.get(key)
        if said is None:
            return None
        if not said.strip().lstrip("-").isdigit():
            raise UsageError(f"'{said}' is no snapshot", hint="say the id of a snapshot, a whole number")
        return int(said)

    def _snapshot(self, table: IcebergTable) -> Snapshot | None:
        return table.at(self._option("snapshot"))


class RookeryReader(DataSourceReader):
    """Prunes on the driver, reads the files that are left on the executors."""

    def __init__(self, table: IcebergTable, store: Store, snapshot: int | None, columns: list[str]) -> None:
        self._table = table
        self._store = store
        self._snapshot = table.at(snapshot)
        self._columns = columns
        self._predicate: Predicate = ALWAYS

    def __getstate__(self) -> dict[str, object]:
        return {}  # Spark sends the reader to its workers before it asks for partitions, which hold it all

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take what is understood for pruning; Spark applies every filter again, and has the last word."""
        fields = self._table.fields(self._snapshot)
        for each in filters:
            expression = _expression(each)
            if expression is not None:
                with suppress(RookeryError):  # Spark will say so, or knows better
                    found = predicate_from_expression(expression, fields)
                    if not any(opaque_parts(found)):
                        self._predicate = all_of(self._predicate, found)
        return filters

    def partitions(self) -> list[InputPartition]:
        """Some files a partition, those that are left."""
        if self._snapshot is None:
            return []
        request = make_request(self._table, self._store, self._snapshot, self._predicate, self._columns)
        files = file_set(self._table, self._store, self._snapshot)
        pruning = prune(self._table, self._snapshot, files, self._predicate)
        left = survivors(pruning, self._store.io_properties)
        return [FilesPartition(request, group) for group in _bins(left)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of some files that match."""
        if not isinstance(partition, FilesPartition):  # what Spark makes up where there are no partitions
            return
        costs = ReadCosts()
        for file in partition.files:
            for rows in read_file(partition.request, file, costs):
                yield from for_spark(rows).to_batches()


def _bins(files: list[FileRead]) -> Iterator[list[FileRead]]:
    """Files in their order, so many together that a task is worth its start."""
    held: list[FileRead] = []
    size = 0
    for file in files:
        if held and size + file.size > _TASK_BYTES:
            yield held
            held, size = [], 0
        held.append(file)
        size += file.size
    if held:
        yield held


def _is_rounded(value: object) -> bool:
    """Whether PySpark may have rounded a value: it hands over decimals in 28 digits."""
    return isinstance(value, Decimal) and len(value.as_tuple().digits) >= _DIGITS


_COMPARED: Mapping[type[Filter], Any] = {
    pushed.EqualTo: ice.EqualTo,
    pushed.GreaterThan: ice.GreaterThan,
    pushed.GreaterThanOrEqual: ice.GreaterThanOrEqual,
    pushed.LessThan: ice.LessThan,
    pushed.LessThanOrEqual: ice.LessThanOrEqual,
}


def _expression(found: Filter) -> ice.BooleanExpression | None:
    """Return a filter as PyIceberg has it, or None for one that it has not."""
    if isinstance(found, pushed.Not):
        inner = _expression(found.child)
        return None if inner is None else ice.Not(inner)
    attribute = getattr(found, "attribute", ())
    if not attribute or any("." in part for part in attribute):
        return None
    name, value = ".".join(attribute), getattr(found, "value", None)
    if any(map(_is_rounded, value if isinstance(value, list | tuple) else (value,))):
        return None
    made: ice.BooleanExpression | None = None
    with suppress(TypeError, ValueError):  # a value that PyIceberg has no literal for
        if isinstance(found, pushed.IsNull):
            made = _ice.IsNull(name)
        elif isinstance(found, pushed.IsNotNull):
            made = _ice.NotNull(name)
        elif isinstance(found, pushed.In):
            known = [each for each in value or () if each is not None]
            made = _ice.In(name, known) if known else None
        elif isinstance(found, pushed.StringStartsWith):
            made = _ice.StartsWith(name, value)
        elif type(found) in _COMPARED and value is not None:
            made = _COMPARED[type(found)](name, value)
    return made
