"""A table by its name: its statistics, pruning, and rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rookery.api import analyze as analyzing
from rookery.api import count as counting
from rookery.api import explain as explaining
from rookery.api import indexes as indexing
from rookery.api import statistics
from rookery.api.columns import check_column_lists
from rookery.api.lake import Lake, connect, not_in_catalog
from rookery.api.where import Where, bind
from rookery.model import MetadataFile, Snapshot, TableName, is_metadata_file
from rookery.read.table_reader import make_request, no_rows, read_batches, read_table
from rookery.sidecar import Store
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rookery.api.describe import DescribeReport
    from rookery.api.estimate import EstimateReport
    from rookery.api.status import StatusReport
    from rookery.maintain.policies.choosing import PolicySet

__all__ = ["TableHandle", "table"]


@dataclass(frozen=True, slots=True)
class TableHandle:
    """A table by its name; except `scan`, and `analyze` of much data, its calls need no Spark."""

    lake: Lake
    name: TableName

    def load(self) -> tuple[Table, Store]:
        """Load the table as it is now, and its sidecar files."""
        if isinstance(self.name, MetadataFile):
            return self.lake.open_metadata(self.name)
        return self.lake.open(self.name)

    def _in_catalog(self) -> tuple[Table, Store]:
        """Load the table to change what is beside it, or for Spark: by its name in a catalog."""
        if isinstance(self.name, MetadataFile):
            raise not_in_catalog(self.name.location)
        return self.lake.open(self.name)

    def stats(self, *, partition: str | None = None, snapshot: int | None = None) -> statistics.StatsReport:
        """Return the statistics of each column, for the table or for the partitions that are named."""
        return statistics.stats(*self.load(), partition=partition, snapshot=snapshot)

    def analyze(self, **options: Any) -> analyzing.AnalyzeReport:
        """Bring the statistics up to date, with the options of `rookery.analyze`.

        Small files are read in this process, without Java. Spark is started for what is large, or cannot be
        done here; `engine="local"` never starts it. A table of a session is analyzed in that session.
        """
        if isinstance(self.name, MetadataFile):
            raise not_in_catalog(self.name.location)
        spark = self.lake.session or self.lake.spark
        return analyzing.analyze(spark, str(self.name), lake=self.lake, **options)

    def status(self, *, columns: bool = True, policies: PolicySet | None = None) -> StatusReport:
        """Return the status: statistics, their visibility to engines, layout, policy breaches."""
        from rookery.api.status import status_of_table  # brings the maintenance, which reading does without

        if isinstance(self.name, MetadataFile):
            raise not_in_catalog(self.name.location)
        return status_of_table(self.lake, self.name, policies, columns=columns)

    def describe(self) -> DescribeReport:
        """Return what the table is: columns, layout, properties, files, snapshots, branches and tags."""
        from rookery.api.describe import describe

        return describe(self.load()[0])

    def indexes(self) -> indexing.IndexReport:
        """Return the indexes of the table."""
        return indexing.list_indexes(*self.load())

    def add_index(self, kind: str, column: str, *, fpp: float | None = None) -> indexing.IndexReport:
        """Declare an index of a kind, such as `bloom`, on a column; the next `analyze` builds it."""
        return indexing.add_index(*self._in_catalog(), kind, column, fpp)

    def drop_index(self, kind: str, column: str) -> indexing.IndexReport:
        """Drop an index."""
        return indexing.drop_index(*self._in_catalog(), kind, column)

    def explain(
        self,
        where: Where,
        *,
        snapshot: int | None = None,
        inside: int = explaining.INSIDE,
        time_zone: str = "UTC",
    ) -> explaining.ExplainReport:
        """Return the result of the cascade for a predicate, stage by stage."""
        started = time.perf_counter()
        table, store = self.load()
        took = (time.perf_counter() - started) * 1000
        return explaining.explain(
            table, store, where, resolved_ms=took, snapshot=snapshot, inside=inside, zone=time_zone
        )

    def read(
        self,
        where: Where = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        snapshot: int | None = None,
        time_zone: str = "UTC",
    ) -> pa.Table:
        """Return the rows that match, in Arrow; local times in the predicate are in *time_zone*."""
        check_column_lists(columns=columns)
        table, store = self.load()
        current = table.at(snapshot)
        predicate = bind(where, table, current, time_zone)
        if current is None:
            request = make_request(table, store, _NO_SNAPSHOT, predicate, columns)
            return no_rows(request.columns)
        return read_table(table, store, current, predicate, columns, limit).rows

    def read_batches(
        self,
        where: Where = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        *,
        snapshot: int | None = None,
        time_zone: str = "UTC",
    ) -> pa.RecordBatchReader:
        """Return the same rows as `read`, batch by batch: files are read while the batches are taken."""
        check_column_lists(columns=columns)
        table, store = self.load()
        current = table.at(snapshot)
        predicate = bind(where, table, current, time_zone)
        if current is None:
            request = make_request(table, store, _NO_SNAPSHOT, predicate, columns)
            return no_rows(request.columns).to_reader()
        return read_batches(table, store, current, predicate, columns, limit)

    def count(self, where: Where = None, *, snapshot: int | None = None, time_zone: str = "UTC") -> int:
        """Return how many rows match: by indexes and metadata where they suffice, else by reading."""
        return counting.count(*self.load(), where, snapshot=snapshot, zone=time_zone).count

    def estimate(
        self,
        where: Where = None,
        *,
        group_by: Sequence[str] = (),
        snapshot: int | None = None,
        time_zone: str = "UTC",
    ) -> EstimateReport:
        """Return about how many rows match, and the groups they form, from statistics and metadata alone."""
        from rookery.api.estimate import estimate  # brings what reading does without

        check_column_lists(group_by=group_by)
        return estimate(*self.load(), where, group_by=group_by, snapshot=snapshot, zone=time_zone)

    def scan(
        self,
        spark: SparkSession,
        where: Where = None,
        columns: Sequence[str] | None = None,
        *,
        snapshot: int | None = None,
    ) -> DataFrame:
        """Return a DataFrame over Iceberg's own reader, of the files that may have matching rows."""
        from rookery.api.scan import scan  # imports what only a session needs

        if isinstance(self.name, MetadataFile):
            raise not_in_catalog(self.name.location)
        check_column_lists(columns=columns)
        return scan(spark, self.lake, self.name, where, columns, snapshot)


_NO_SNAPSHOT = Snapshot(
    id=0, parent_id=None, sequence_number=0, timestamp_ms=0, schema_id=None, operation=None
)


def table(name: str, lake: Lake | None = None, *, spark: SparkSession | None = None) -> TableHandle:
    """Return a handle on a table, of *lake* or of the default catalog.

    With *spark*, it is the table that this session means by the name, in any catalog that it has.
    The path of a metadata file is a table too, which can be read, but not changed or analyzed.
    """
    if is_metadata_file(name):
        return TableHandle(lake or connect(), MetadataFile.at(name))
    if spark is not None and lake is None:
        from rookery.api.session_lake import locate  # which imports this module

        return locate(spark, name)
    lake = lake or connect()
    return TableHandle(lake, lake.table_name(name))
