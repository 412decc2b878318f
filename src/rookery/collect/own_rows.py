"""Parquet files with deletes of a table that Spark refuses: rows and deletes are read by our own reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rookery.collect.engine import SCHEMA, FileBatch, add_rows, ordinals_by_path, roots_of, sketched
from rookery.collect.lengths import FileLengths
from rookery.collect.plan import Group
from rookery.collect.pyworkers import forget_jars, on_spark
from rookery.collect.read import ARROW
from rookery.collect.task import Costs, Partial
from rookery.model import ALWAYS, Field, Snapshot
from rookery.prune.cascade import Pruning
from rookery.prune.fileset import FileSet
from rookery.read.file import FileRead, ReadCosts, Request, read_file
from rookery.read.survivors import survivors
from rookery.read.table_reader import make_request
from rookery.sidecar import Store
from rookery.sidecar.live import live_files
from rookery.sketch import InvertedThetaBuilder
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_PER_CORE = 2


def run_own(
    spark: SparkSession,
    table: Table,
    store: Store,
    snapshot: Snapshot,
    group: Group,
    ordinals: Sequence[int],
) -> Partial:
    """Sketch files of a group, by ordinal."""
    by_path = ordinals_by_path(group, ordinals)
    roots = list(dict.fromkeys(root for column in group.fields for root in roots_of(column)))
    request = make_request(table, store, snapshot, ALWAYS, roots)
    files = _with_deletes(table, store, snapshot, list(by_path))
    count = min(len(files), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    shares = [files[number::count] for number in range(count)]
    thetas = {column.id: InvertedThetaBuilder(group.files.num_rows) for column in group.fields}
    lengths = FileLengths()
    with on_spark(spark):
        frame = spark.range(0, count, 1, count).mapInArrow(_mapper(group.fields, request, shares), SCHEMA)
        values = add_rows(thetas, lengths, frame.collect(), by_path)
    read = sum(file.size for file in files)  # at most
    ways = Counter({ARROW: len(files) * len(group.fields)})
    sketches = {field_id: theta.result() for field_id, theta in thetas.items()}
    return Partial(group.number, sketches, Costs(len(files), ways, values, read, 0), lengths=lengths)


def _with_deletes(table: Table, store: Store, snapshot: Snapshot, paths: Sequence[str]) -> list[FileRead]:
    files = FileSet(store, None, live_files(table, snapshot, None, decode_all=True))
    wanted = pc.is_in(files.files["path"], value_set=pa.array(paths, pa.string()))
    keep = wanted.combine_chunks().to_numpy(zero_copy_only=False)
    return survivors(
        Pruning(table, snapshot, files, ALWAYS, keep, np.ones(len(files), bool)), store.io_properties
    )


def _mapper(
    fields: tuple[Field, ...], request: Request, shares: Sequence[Sequence[FileRead]]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def batches(numbers: Iterable[pa.RecordBatch]) -> Iterator[FileBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for file in shares[number]:
                    for rows in read_file(request, file, ReadCosts()):
                        for part in rows.combine_chunks().to_batches():
                            yield file.path, part

    def sketch(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_jars()
        yield sketched(batches(numbers), fields)

    return sketch
