"""Running a plan: in this process if it is small, else as one Spark stage that merges as it reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from rookery.collect.plan import Task
from rookery.collect.progress import Progress, silent, watched
from rookery.collect.work import Costs, Partial, run_task
from rookery.collect.workers import forget_jars, on_spark
from rookery.sketch import InvertedTheta

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

LOCAL_BYTES = 48 << 20  # of files; below this, starting Spark's tasks costs more than reading
_SCHEMA = "group int, field int, theta binary, costs string"
_ARROW = pa.schema(
    [("group", pa.int32()), ("field", pa.int32()), ("theta", pa.binary()), ("costs", pa.string())]
)
_NO_FIELD = -1  # no column has this id, and no column group
_HARD = "hard"


def run(
    spark: SparkSession | None,
    tasks: Sequence[Task],
    io_properties: Mapping[str, str],
    progress: Progress = silent,
) -> Iterator[Partial]:
    """Yield what the tasks find, merged to one partial a group."""
    size = sum(file.size for task in tasks for file in task.files)
    if spark is None or len(tasks) == 1 or size <= LOCAL_BYTES:
        found = _run_here(tasks, io_properties, progress)
    else:
        found = _run_on_spark(spark, tasks, io_properties, progress)
    for _, partials in groupby(found, attrgetter("group")):  # tasks come in the order of their groups
        yield merge(list(partials))


def merge(partials: Sequence[Partial]) -> Partial:
    """Join what several tasks found of one group."""
    if len(partials) == 1:
        return partials[0]
    thetas = {
        field_id: InvertedTheta.merge([partial.thetas[field_id] for partial in partials])
        for field_id in partials[0].thetas
    }
    costs = sum((partial.costs for partial in partials), Costs())
    return Partial(partials[0].group, thetas, costs, tuple(n for partial in partials for n in partial.hard))


def _run_here(
    tasks: Sequence[Task], io_properties: Mapping[str, str], progress: Progress
) -> Iterator[Partial]:
    files = size = 0
    for task in tasks:
        yield run_task(task, io_properties)
        files += len(task.files)
        size += sum(file.size for file in task.files)
        progress(files, size)


def _run_on_spark(
    spark: SparkSession, tasks: Sequence[Task], io_properties: Mapping[str, str], progress: Progress
) -> Iterator[Partial]:
    read = _mapper(tuple(tasks), dict(io_properties))
    groups = len({task.group for task in tasks})
    with watched(spark, tasks, progress), on_spark(spark):
        frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, _SCHEMA)
        if groups == 1:
            yield from _partials(frame.collect())
        else:
            # One partition at a time comes to the driver, which so never holds more than a few groups.
            frame = frame.repartition(groups, "group").sortWithinPartitions("group")
            yield from _partials(frame.toLocalIterator())


def _partials(rows: Iterable[Row]) -> Iterator[Partial]:
    """Put together what tasks sent of each group; rows of a group come one behind the other."""
    for group, found in groupby(rows, attrgetter("group")):
        thetas: dict[int, list[InvertedTheta]] = {}
        costs = Costs()
        hard: list[int] = []
        for row in found:
            if row.field == _NO_FIELD:
                stated = json.loads(row.costs)
                hard += stated.pop(_HARD)
                costs += Costs.of(stated)
            else:
                thetas.setdefault(row.field, []).append(InvertedTheta.decode(bytes(row.theta)))
        merged = {field_id: InvertedTheta.merge(parts) for field_id, parts in thetas.items()}
        yield Partial(group, merged, costs, tuple(hard))


def _mapper(
    tasks: tuple[Task, ...], io_properties: dict[str, str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forget_jars()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                partial = run_task(tasks[number], io_properties)
                rows: list[dict[str, object]] = [
                    {"group": partial.group, "field": field_id, "theta": theta.encode(), "costs": None}
                    for field_id, theta in partial.thetas.items()
                ]
                costs = json.dumps(partial.costs.as_dict() | {_HARD: partial.hard})
                rows.append({"group": partial.group, "field": _NO_FIELD, "theta": None, "costs": costs})
                yield pa.RecordBatch.from_pylist(rows, _ARROW)

    return read
