"""Row-weighted statistics: quantiles and most frequent values, from all rows or from a sample of row groups.

They describe the table as a whole. New files are merged in; rows removed since cannot be taken out
again, so their share is kept, and when it passes a fifth everything is collected again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from rookery.collect.arrow import leaf_array, read_leaves
from rookery.collect.distribution_request import DistributionRequest
from rookery.collect.own_rows import own_rows
from rookery.collect.physical import NeedsEngineError, PhysicalColumns
from rookery.collect.pyworkers import forget_jars, on_spark
from rookery.collect.readable import needs_engine, readable_only
from rookery.io import SourceFile, TailSource, open_source
from rookery.model import Field, Snapshot, quote_part
from rookery.parquet import FIRST_READ, read_footer
from rookery.sidecar import Store
from rookery.sketch.frequent import Frequent
from rookery.sketch.quantiles import Quantiles
from rookery.sketch.values import in_one_form, no_view
from rookery.tables import Table
from rookery.tables.column_mapping import BY_FIELD_ID, ColumnMapping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STALE_SHARE = 0.2
LOCAL_BYTES = 48 << 20
_SCHEMA = "kind string, field int, payload binary, rows bigint"
_ARROW = pa.schema(
    [("kind", pa.string()), ("field", pa.int32()), ("payload", pa.binary()), ("rows", pa.int64())]
)
_QUANTILES, _FREQUENT, _ROWS, _NEEDS_ENGINE = "quantiles", "frequent", "rows", "needs_engine"


@dataclass(slots=True)
class DistributionSketches:
    """The result: sketches by field id, and how many rows were read."""

    quantiles: dict[int, Quantiles] = field(default_factory=dict)
    frequent: dict[int, Frequent] = field(default_factory=dict)
    rows: int = 0
    needs_engine: tuple[str, ...] = ()  # files that only Iceberg's own reader understands

    @classmethod
    def empty(cls, wants: DistributionRequest) -> DistributionSketches:
        """Return the sketches of no rows."""
        return cls(
            {column.id: Quantiles.empty(column.type) for column in wants.histogram},
            {column.id: Frequent.empty() for column in wants.top_k},
        )

    def add(self, wants: DistributionRequest, column: Field, array: pa.Array) -> None:
        """Add the values of one column, from any reader; nulls are skipped."""
        array = in_one_form(column.type, no_view(array).drop_null())
        if column.type == "string":
            array = array.cast(pa.large_string())
        if column in wants.histogram:
            self.quantiles[column.id] = self.quantiles[column.id].with_values(array)
        if column in wants.top_k:
            self.frequent[column.id] = self.frequent[column.id].with_values(array)

    def merge(self, other: DistributionSketches) -> DistributionSketches:
        """Return the sketches of both."""
        return DistributionSketches(
            {key: self.quantiles[key].merge(value) for key, value in other.quantiles.items()},
            {key: self.frequent[key].merge(value) for key, value in other.frequent.items()},
            self.rows + other.rows,
            (*self.needs_engine, *other.needs_engine),
        )

    def batch(self) -> pa.RecordBatch:
        """Return the sketches as rows, to be sent from an executor to the driver."""
        rows: list[tuple[str, int, bytes | None, int]] = [(_ROWS, 0, None, self.rows)]
        rows += [(_NEEDS_ENGINE, 0, path.encode(), 0) for path in self.needs_engine]
        rows += [(_QUANTILES, key, sketch.encode(), 0) for key, sketch in self.quantiles.items()]
        rows += [(_FREQUENT, key, sketch.encode(), 0) for key, sketch in self.frequent.items()]
        columns = zip(*rows, strict=True)
        arrays = [pa.array(list(column), kind.type) for column, kind in zip(columns, _ARROW, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


@dataclass(frozen=True, slots=True)
class RowsTask:
    """A Parquet file whose rows are read."""

    path: str
    size: int
    mapping: ColumnMapping = BY_FIELD_ID


def read_rows(
    files: Sequence[RowsTask], wants: DistributionRequest, io_properties: Mapping[str, str]
) -> DistributionSketches:
    """Read rows of Parquet files."""
    result = DistributionSketches.empty(wants)
    for file in files:
        try:
            _read_file(file, wants, io_properties, result)
        except NeedsEngineError:
            result.needs_engine = (*result.needs_engine, file.path)
    return result


def _read_file(
    task: RowsTask,
    wants: DistributionRequest,
    io_properties: Mapping[str, str],
    result: DistributionSketches,
) -> None:
    with open_source(task.path, io_properties) as opened:
        source = TailSource(opened, task.size, FIRST_READ)
        physical = PhysicalColumns(task.mapping.with_ids(read_footer(source, task.size).leaves))
        leaves = [(column, physical.leaf(column)) for column in wants.fields]  # before any row is counted
        file = pq.ParquetFile(pa.PythonFile(SourceFile(source), mode="r"))
        for number in chosen_groups(task.path, file.num_row_groups, wants.sample):
            result.rows += file.metadata.row_group(number).num_rows
            for column, leaf in leaves:
                if leaf is not None:
                    (values,) = read_leaves(file, number, [leaf])
                    for array in values.chunks:
                        result.add(wants, column, leaf_array(array, column.parts[1:]))


def chosen_groups(path: str, count: int, most: int) -> list[int]:
    """Choose row groups: all, or *most* at random, the same ones whenever the file is read.

    >>> chosen_groups("a", 3, 0), len(chosen_groups("a", 10, 2))
    ([0, 1, 2], 2)
    """
    if most <= 0 or most >= count:
        return list(range(count))
    return sorted(random.Random(path).sample(range(count), most))  # noqa: S311 (a sample, not a secret)


def collect_rows(
    spark: SparkSession | None,
    table: Table,
    store: Store,
    snapshot: Snapshot,
    files: pa.Table,
    wants: DistributionRequest,
) -> DistributionSketches:
    """Collect row statistics of *files* (rows of a file set with their deletes)."""
    by_engine = needs_engine(files)
    plain = files.filter(pa.array(~by_engine))
    pairs = zip(plain["path"].to_pylist(), plain["size"].to_pylist(), strict=True)
    parts = [RowsTask(path, size, table.column_mapping(path)) for path, size in pairs]
    result = _collect_plain(spark, parts, wants, store.io_properties)
    left = [*files.filter(pa.array(by_engine))["path"].to_pylist(), *result.needs_engine]
    if not left:
        return result
    roots = list(dict.fromkeys(column.parts[0] for column in wants.fields))
    if spark is None:
        rows = (batch for _, batch in own_rows(table, store, snapshot, left, roots))
        return result.merge(_sketched(rows, wants))
    with on_spark(spark):
        frame = table.for_engine(spark).staged(snapshot.id, left, readable_only(table, snapshot))
        if frame is not None:
            # PySpark cannot resolve names with dots, so columns are sent under numbers.
            columns = [f"{quote_part(root)} AS c{number}" for number, root in enumerate(roots)]
            read = frame.selectExpr(*columns).mapInArrow(_engine_mapper(wants, roots), _SCHEMA)
            result = result.merge(_gather(read, wants))
    return result


def _collect_plain(
    spark: SparkSession | None,
    files: Sequence[RowsTask],
    wants: DistributionRequest,
    io_properties: Mapping[str, str],
) -> DistributionSketches:
    if spark is None or sum(file.size for file in files) <= LOCAL_BYTES:
        return read_rows(files, wants, io_properties)
    count = min(len(files), 2 * spark.sparkContext.defaultParallelism)
    shares = [files[number::count] for number in range(count)]
    with on_spark(spark):
        frame = spark.range(0, count, 1, count)
        return _gather(frame.mapInArrow(_plain_mapper(shares, wants, io_properties), _SCHEMA), wants)


def _plain_mapper(
    shares: Sequence[Sequence[RowsTask]], wants: DistributionRequest, io_properties: Mapping[str, str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_jars()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield read_rows(shares[number], wants, io_properties).batch()

    return read


def _engine_mapper(
    wants: DistributionRequest, roots: Sequence[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_jars()
        yield _sketched((batch.rename_columns(list(roots)) for batch in batches), wants).batch()

    return read


def _sketched(rows: Iterable[pa.RecordBatch], wants: DistributionRequest) -> DistributionSketches:
    """Sketch rows of any reader, whose columns have their names."""
    result = DistributionSketches.empty(wants)
    for batch in rows:
        result.rows += batch.num_rows
        for column in wants.fields:
            root, *path = column.parts
            result.add(wants, column, leaf_array(batch.column(root), path))
    return result


def _gather(frame: DataFrame, wants: DistributionRequest) -> DistributionSketches:
    """Merge the sketches that executors sent."""
    result = DistributionSketches.empty(wants)
    for row in frame.collect():
        if row.kind == _ROWS:
            result.rows += row.rows
        elif row.kind == _NEEDS_ENGINE:
            result.needs_engine = (*result.needs_engine, bytes(row.payload).decode())
        elif row.kind == _QUANTILES:
            result.quantiles[row.field] = result.quantiles[row.field].merge(
                Quantiles.decode(bytes(row.payload))
            )
        else:
            result.frequent[row.field] = result.frequent[row.field].merge(Frequent.decode(bytes(row.payload)))
    return result
