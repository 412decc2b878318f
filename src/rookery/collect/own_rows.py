"""Parquet files with deletes, read by our own reader: without Spark, or of a table that Spark refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.collect.engine import SCHEMA, FileBatch, add_rows, ordinals_by_path, roots_of, sketched
from rookery.collect.engine_choice import NeedsSparkError
from rookery.collect.lengths import FileLengths
from rookery.collect.plan import Group
from rookery.collect.pyworkers import forget_jars, on_spark
from rookery.collect.read import ARROW
from rookery.collect.task import Costs, Partial
from rookery.model import ALWAYS, Field, Snapshot
from rookery.prune.cascade import Pruning
from rookery.prune.fileset import FileSet
from rookery.read.file import FileRead, NoFieldIdsError, ReadCosts, Request, read_file
from rookery.read.survivors import survivors
from rookery.read.table_reader import make_request
from rookery.sidecar import Store
from rookery.sidecar.live import live_files
from rookery.sketch import InvertedThetaBuilder
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_TASKS_PER_CORE = 2


def own_rows(
    table: Table, store: Store, snapshot: Snapshot, paths: Sequence[str], roots: Sequence[str]
) -> Iterator[FileBatch]:
    """Yield the rows of files, with the top-level columns *roots*, in this process."""
    request = make_request(table, store, snapshot, ALWAYS, roots)
    try:
        for file in _with_deletes(table, store, snapshot, paths):
            yield from _batches(request, file)
    except NoFieldIdsError as error:
        raise NeedsSparkError(error.message) from error


def run_own(
    spark: SparkSession | None,
    table: Table,
    store: Store,
    snapshot: Snapshot,
    group: Group,
    ordinals: Sequence[int],
) -> Partial:
    """Sketch files of a group, by ordinal."""
    by_path = ordinals_by_path(group, ordinals)
    roots = list(dict.fromkeys(root for column in group.fields for root in roots_of(column)))
    thetas = {column.id: InvertedThetaBuilder(group.files.num_rows) for column in group.fields}
    lengths = FileLengths()
    rows: Iterable[Mapping[str, Any] | Row]
    if spark is None:
        rows = sketched(own_rows(table, store, snapshot, list(by_path), roots), group.fields).to_pylist()
    else:
        request = make_request(table, store, snapshot, ALWAYS, roots)
        files = _with_deletes(table, store, snapshot, list(by_path))
        count = min(len(files), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
        shares = [files[number::count] for number in range(count)]
        with on_spark(spark):
            frame = spark.range(0, count, 1, count).mapInArrow(_mapper(group.fields, request, shares), SCHEMA)
            rows = frame.collect()
    values = add_rows(thetas, lengths, rows, by_path)
    sizes = group.files["size"].to_pylist()
    read = sum(sizes[ordinal] for ordinal in ordinals)  # at most
    ways = Counter({ARROW: len(ordinals) * len(group.fields)})
    sketches = {field_id: theta.result() for field_id, theta in thetas.items()}
    return Partial(
        group.number,
        sketches,
        Costs(files=len(ordinals), chunks=ways, values=values, bytes_read=read, reads=0),
        lengths=lengths,
    )


def _with_deletes(table: Table, store: Store, snapshot: Snapshot, paths: Sequence[str]) -> list[FileRead]:
    files = FileSet(store, None, live_files(table, snapshot, None, decode_all=True))
    wanted = pc.is_in(files.files["path"], value_set=pa.array(paths, pa.string()))
    keep = wanted.combine_chunks().to_numpy(zero_copy_only=False)
    return survivors(
        Pruning(
            table=table,
            snapshot=snapshot,
            files=files,
            predicate=ALWAYS,
            keep=keep,
            alone=np.ones(len(files), bool),
        ),
        store.io_properties,
    )


def _batches(request: Request, file: FileRead) -> Iterator[FileBatch]:
    for rows in read_file(request, file, ReadCosts()):
        for part in rows.combine_chunks().to_batches():
            yield file.path, part


def _mapper(
    fields: tuple[Field, ...], request: Request, shares: Sequence[Sequence[FileRead]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def batches(numbers: Iterable[pa.RecordBatch]) -> Iterator[FileBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for file in shares[number]:
                    yield from _batches(request, file)

    def sketch(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_jars()
        yield sketched(batches(numbers), fields)

    return sketch
