"""Running a plan: in this process if it is small, else as one Spark stage that merges as it reads."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from rookery.collect.lengths import FileLengths
from rookery.collect.part_files import read_part_file, write_part_file
from rookery.collect.plan import IndexColumn, Task
from rookery.collect.progress import Progress, silent, watched
from rookery.collect.pyworkers import forget_jars, on_spark
from rookery.collect.task import Costs, Partial, run_task
from rookery.model.announce import announce
from rookery.sketch import InvertedTheta
from rookery.sketch.kmv import are_compiled

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

LOCAL_BYTES = 48 << 20  # of files; below this, starting Spark's tasks costs more than reading
# The number is that of a column, or the place of an index among those of its group.
_SCHEMA = "group int, kind string, number int, part int, payload binary"
_ARROW = pa.schema(
    [
        ("group", pa.int32()),
        ("kind", pa.string()),
        ("number", pa.int32()),
        ("part", pa.int32()),
        ("payload", pa.binary()),
    ]
)
_COSTS, _THETA, _INDEX, _INDEX_FILE = "costs", "theta", "index", "index file"
_NEEDS_ENGINE, _HIGHEST_ID, _LENGTHS = "needs_engine", "highest_id", "lengths"
_BATCH_BYTES = 32 << 20
_Sent: TypeAlias = tuple[str, int, int, bytes]  # kind, number, part and payload


def run(
    spark: SparkSession | None,
    tasks: Sequence[Task],
    io_properties: Mapping[str, str],
    folder: str,
    progress: Progress = silent,
) -> Iterator[Partial]:
    """Yield the results of tasks, merged to one partial per group; *folder* is where files may be put.

    Without a session, all tasks run in this process.
    """
    size = sum(file.size for task in tasks for file in task.files)
    if tasks and not are_compiled():
        announce("compiling kernels (first run)")
    if spark is None or len(tasks) == 1 or size <= LOCAL_BYTES:
        results = _run_here(tasks, io_properties, progress)
    else:
        results = _run_on_spark(spark, tasks, io_properties, folder, progress)
    for _, partials in groupby(results, attrgetter("group")):  # tasks are in the order of their groups
        yield merge(list(partials))


def merge(partials: Sequence[Partial]) -> Partial:
    """Merge the results of several tasks of one group."""
    if len(partials) == 1:
        return partials[0]
    fields = dict.fromkeys(number for partial in partials for number in partial.thetas)
    indexes: defaultdict[IndexColumn, list[Any]] = defaultdict(list)
    for partial in partials:
        for wanted, part in partial.indexes.items():
            indexes[wanted].append(part)
    return Partial(
        group=partials[0].group,
        thetas={
            n: InvertedTheta.merge([part.thetas[n] for part in partials if n in part.thetas]) for n in fields
        },
        costs=sum((partial.costs for partial in partials), Costs()),
        needs_engine=tuple(ordinal for partial in partials for ordinal in partial.needs_engine),
        indexes={wanted: wanted.kind.merge(parts) for wanted, parts in indexes.items()},
        highest_id=max(partial.highest_id for partial in partials),
        lengths=FileLengths(row for partial in partials for row in partial.lengths.rows()),
    )


def _run_here(
    tasks: Sequence[Task], io_properties: Mapping[str, str], progress: Progress
) -> Iterator[Partial]:
    files = size = 0
    all_files = sum(len(task.files) for task in tasks)
    all_bytes = sum(file.size for task in tasks for file in task.files)
    progress(0, all_files, 0, all_bytes)
    for task in tasks:
        yield run_task(task, io_properties)
        files += len(task.files)
        size += sum(file.size for file in task.files)
        progress(files, all_files, size, all_bytes)


def _run_on_spark(
    spark: SparkSession,
    tasks: Sequence[Task],
    io_properties: Mapping[str, str],
    folder: str,
    progress: Progress,
) -> Iterator[Partial]:
    read = _mapper(tuple(tasks), io_properties, folder)
    indexes = {task.group: task.indexes for task in tasks}
    groups = len(indexes)
    with watched(spark, tasks, progress), on_spark(spark):
        frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, _SCHEMA)
        if groups == 1:
            # Arrow transfers large values in half the time of rows.
            rows = (_Row(*row) for batch in frame.toArrow().to_batches() for row in _cells(batch))
            yield from _partials(rows, indexes, io_properties)
        else:
            # The driver fetches one partition at a time, so it never holds more than a few groups.
            frame = frame.repartition(groups, "group").sortWithinPartitions("group")
            yield from _partials(frame.toLocalIterator(), indexes, io_properties)


class _Row(NamedTuple):
    """A row as Arrow brings it."""

    group: int
    kind: str
    number: int
    part: int
    payload: bytes


def _cells(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    *keys, payloads = batch.columns
    return zip(
        *(column.to_pylist() for column in keys), (value.as_buffer() for value in payloads), strict=True
    )


def _partials(
    rows: Iterable[Row | _Row],
    indexes: Mapping[int, Sequence[IndexColumn]],
    io_properties: Mapping[str, str],
) -> Iterator[Partial]:
    """Merge what tasks sent of each group; rows of a group are consecutive."""
    for group, sent in groupby(rows, attrgetter("group")):
        yield merge([part for row in sent for part in _parts(group, row, indexes[group], io_properties)])


def _parts(
    group: int, row: Row | _Row, indexes: Sequence[IndexColumn], io_properties: Mapping[str, str]
) -> Iterator[Partial]:
    if row.kind == _INDEX_FILE:
        for number, within, payload in read_part_file(bytes(row.payload), io_properties):
            yield _index_part(group, indexes[number], within, payload)
    else:
        yield _partial(group, row, indexes)


def _index_part(group: int, wanted: IndexColumn, within: int, payload: bytes | memoryview) -> Partial:
    return Partial(
        group=group,
        thetas={},
        costs=Costs(),
        needs_engine=(),
        indexes={wanted: wanted.kind.decode(within, payload)},
    )


def _partial(group: int, row: Row | _Row, indexes: Sequence[IndexColumn]) -> Partial:
    payload = bytes(row.payload)
    if row.kind == _COSTS:
        stated = json.loads(payload)
        needs_engine, highest_id = tuple(stated.pop(_NEEDS_ENGINE)), stated.pop(_HIGHEST_ID)
        lengths = FileLengths(stated.pop(_LENGTHS))
        return Partial(group, {}, Costs.of(stated), needs_engine, highest_id=highest_id, lengths=lengths)
    if row.kind == _THETA:
        return Partial(group, {row.number: InvertedTheta.decode(payload)}, Costs())
    return _index_part(group, indexes[row.number], row.part, payload)


def _rows(partial: Partial, folder: str, io_properties: Mapping[str, str]) -> Iterator[_Sent]:
    stated = {
        _NEEDS_ENGINE: partial.needs_engine,
        _HIGHEST_ID: partial.highest_id,
        _LENGTHS: partial.lengths.rows(),
    }
    costs = json.dumps(partial.costs.as_dict() | stated)
    yield _COSTS, 0, 0, costs.encode()
    for number, theta in partial.thetas.items():
        yield _THETA, number, 0, theta.encode()
    indexes = [
        (number, within, payload)
        for number, (wanted, part) in enumerate(partial.indexes.items())
        for within, payload in wanted.kind.encode(part)
    ]
    file = write_part_file(indexes, folder, io_properties)
    if file is not None:
        yield _INDEX_FILE, 0, 0, file.encode()
    else:
        yield from ((_INDEX, number, within, bytes(payload)) for number, within, payload in indexes)


def _batches(partial: Partial, folder: str, io_properties: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """The results of a task, in batches of bounded size."""
    rows: list[_Sent] = []
    held = 0
    for row in _rows(partial, folder, io_properties):
        rows.append(row)
        held += len(row[3])
        if held > _BATCH_BYTES:
            yield _batch(partial.group, rows)
            rows, held = [], 0
    if rows:
        yield _batch(partial.group, rows)


def _batch(group: int, rows: Sequence[_Sent]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch([[group] * len(rows), *columns], schema=_ARROW)


def _mapper(
    tasks: tuple[Task, ...], io_properties: Mapping[str, str], folder: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_jars()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _batches(run_task(tasks[number], io_properties), folder, io_properties)

    return read
