"""Reading the groups of a plan, and writing a segment for each as soon as it is complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rookery.collect import plan
from rookery.collect.engine import run_engine
from rookery.collect.prepare import Work
from rookery.collect.progress import Progress
from rookery.collect.run import merge, run
from rookery.collect.work import Costs, Partial
from rookery.sketch import ThetaSketch
from rookery.store import SegmentEntry, Store, write_segment
from rookery.tables.iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Written:
    """A segment that was written: its entry for the state, and what it says of the table as a whole."""

    entry: SegmentEntry
    sketches: Mapping[int, ThetaSketch]
    costs: Costs


def write_groups(
    spark: SparkSession, table: IcebergTable, store: Store, work: Work, progress: Progress
) -> list[Written]:
    """Read the groups; of each, only what concerns the whole table is held on to."""
    hard = {group.number: _hard(group) for group in work.groups}
    simple = [group for group in work.groups if len(hard[group.number]) < group.files.num_rows]
    tasks = plan.tasks(simple, spark.sparkContext.defaultParallelism, skip=hard)
    written: dict[int, Written] = {}

    def finish(group: plan.Group, found: Partial | None) -> None:
        by_engine = sorted({*hard[group.number], *(found.hard if found is not None else ())})
        parts = [found] if found is not None else []
        if by_engine:
            parts.append(run_engine(spark, table.name, work.snapshot.id, group, by_engine))
        youngest = table.table.metadata.last_column_id
        written[group.number] = _write(store, work, group, merge(parts), youngest)

    for partial in run(spark, tasks, store.io_properties, progress):
        finish(work.groups[partial.group], partial)
    for group in work.groups:
        if group.number not in written:
            finish(group, None)
    return [written[group.number] for group in work.groups]


def _hard(group: plan.Group) -> Sequence[int]:
    """The ordinals of files that only Iceberg's own reader understands."""
    formats, deletes = group.files["format"].to_pylist(), group.files["deletes"].to_pylist()
    return [
        ordinal
        for ordinal, (kind, attached) in enumerate(zip(formats, deletes, strict=True))
        if kind != "parquet" or attached
    ]


def _write(store: Store, work: Work, group: plan.Group, partial: Partial, last_column_id: int) -> Written:
    location = store.segment_path()
    write_segment(
        location,
        group.files,
        partial.thetas,
        snapshot_id=work.snapshot.id,
        sequence_number=work.snapshot.sequence_number,
        io_properties=store.io_properties,
    )
    name, known = location.rpartition("/")[2], tuple(sorted(partial.thetas))
    entry = SegmentEntry(name, group.files.num_rows, known, last_column_id)
    sketches = {field_id: theta.sketch() for field_id, theta in partial.thetas.items()}
    return Written(entry, sketches, partial.costs)
