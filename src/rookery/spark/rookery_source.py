"""`spark.read.format("rookery")`: the rows of a table that match the option `where`.

It gives pruning to plain SQL by `CREATE TEMPORARY VIEW … USING rookery OPTIONS (table '…', where '…')`, and
to sessions that have no JVM in reach. Filters that Spark would push down are refused: Spark 4.1 keeps one
reader for all scans of a relation, so that filters of one scan would apply to the others too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rookery.model import ALWAYS, Predicate, Snapshot, UsageError
from rookery.model.cache import Cache
from rookery.prune.cascade import prune
from rookery.prune.fileset import file_set
from rookery.read.file import FileRead, ReadCosts, Request, read_file
from rookery.read.survivors import survivors
from rookery.read.table_reader import make_request
from rookery.sidecar import Store, store_of
from rookery.spark.spark_types import for_spark, spark_columns
from rookery.tables import Table
from rookery.tables.formats import open_table
from rookery.where.sql_text import parse_predicate

_OPTIONS = ("table", "path", "catalog", "columns", "where", "time_zone", "snapshot")
_TASK_BYTES = 64 << 20  # of files that one task reads
_CACHE = Cache(128 << 20)  # of a process of Spark, which may plan several scans and has no lake


@dataclass
class FilesPartition(InputPartition):
    """Files that are read by one task, with columns and predicate."""

    request: Request
    files: list[FileRead]

    def __init__(self, request: Request, files: list[FileRead]) -> None:
        super().__init__(None)
        self.request = request
        self.files = files


class RookeryDataSource(DataSource):
    """Reads a table.

    Options: `table`, its name; `where`, which rows, in SQL; `time_zone`, that of local times in it;
    `snapshot`, an id; `columns`, names with commas.
    """

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "rookery"

    def schema(self) -> str:
        """The columns of the table, or those that the option names."""
        table, _ = self._open()
        snapshot = self._snapshot(table)
        self._predicate(table, snapshot)  # errors are raised at once, not when rows are read
        return spark_columns(table.schema(snapshot), self._columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make the reader of some columns."""
        table, store = self._open()
        snapshot = self._snapshot(table)
        return RookeryReader(table, store, snapshot, self._predicate(table, snapshot), schema.names)

    def _open(self) -> tuple[Table, Store]:
        unknown = next((key for key in self.options if key.lower() not in _OPTIONS), None)
        if unknown is not None:
            raise UsageError(f"there is no option '{unknown}'", hint=f"options are {', '.join(_OPTIONS)}")
        text = self.options.get("table") or self.options.get("path")
        if not text:
            raise UsageError(
                "no table was named", hint='use spark.read.format("rookery").option("table", "db.orders")'
            )
        table = open_table(text, self.options.get("catalog"))
        return table, store_of(table, _CACHE)

    def _columns(self) -> list[str] | None:
        names = self.options.get("columns")
        return [name.strip() for name in names.split(",") if name.strip()] if names else None

    def _option(self, key: str) -> int | None:
        text = self.options.get(key)
        if text is None:
            return None
        if not text.strip().lstrip("-").isdigit():
            raise UsageError(f"'{text}' is not a snapshot", hint="use the id of a snapshot, a whole number")
        return int(text)

    def _predicate(self, table: Table, snapshot: Snapshot | None) -> Predicate:
        text = self.options.get("where")
        if text is None:
            return ALWAYS
        return parse_predicate(text, table.fields(snapshot), zone=self.options.get("time_zone", "UTC"))

    def _snapshot(self, table: Table) -> Snapshot | None:
        return table.at(self._option("snapshot"))


class RookeryReader(DataSourceReader):
    """Prunes on the driver, reads the files that are left on the executors."""

    def __init__(
        self,
        table: Table,
        store: Store,
        snapshot: Snapshot | None,
        predicate: Predicate,
        columns: list[str],
    ) -> None:
        self._table = table
        self._store = store
        self._snapshot = snapshot
        self._predicate = predicate
        self._columns = columns

    def __getstate__(self) -> dict[str, object]:
        return {}  # Spark sends the reader to its workers before it plans partitions, which contain all

    def partitions(self) -> list[InputPartition]:
        """The files that are left, some per partition."""
        if self._snapshot is None:
            return []
        request = make_request(self._table, self._store, self._snapshot, self._predicate, self._columns)
        files = file_set(self._table, self._store, self._snapshot)
        pruning = prune(self._table, self._snapshot, files, self._predicate)
        left = survivors(pruning, self._store.io_properties)
        return [FilesPartition(request, group) for group in _bins(left)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of some files that match."""
        if not isinstance(partition, FilesPartition):  # Spark's own, where there are no partitions
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
