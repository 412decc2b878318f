"""Reading the groups of a plan, and writing a segment for each as soon as it is complete."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rookery.collect import plan
from rookery.collect.engine import run_engine
from rookery.collect.own_rows import run_own
from rookery.collect.prepare import AnalyzePlan
from rookery.collect.progress import Progress
from rookery.collect.readable import needs_engine, refused
from rookery.collect.run import merge, run
from rookery.collect.task import Costs, Partial
from rookery.sidecar import Contents, SegmentEntry, Store, ZoneMap, write_segment
from rookery.sidecar.checksums import footer_checksum
from rookery.sidecar.state import NO_COLUMN_IS_YOUNGER
from rookery.sketch import ThetaSketch
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Written:
    """A segment that was written: its entry for the state, and its contribution to the table as a whole."""

    entry: SegmentEntry
    sketches: Mapping[int, ThetaSketch]
    costs: Costs


def write_groups(
    spark: SparkSession | None, table: Table, store: Store, work: AnalyzePlan, progress: Progress
) -> list[Written]:
    """Read the groups; of each, only what concerns the whole table is kept.

    Without a session, this process reads them.
    """
    planned = {group.number: np.flatnonzero(needs_engine(group.files)).tolist() for group in work.groups}
    cores = spark.sparkContext.defaultParallelism if spark is not None else os.cpu_count() or 1
    tasks = plan.tasks(work.groups, cores, planned, table.column_mapping)
    shared = {(task.group, file.ordinal) for task in tasks for file in task.files if file.parts > 1}
    written: dict[int, Written] = {}

    def finish(group: plan.Group, partial: Partial | None) -> None:
        by_engine = sorted({*planned[group.number], *(partial.needs_engine if partial is not None else ())})
        parts = [partial] if partial is not None else []
        if by_engine and group.fields:
            parts += _by_engine(spark, table, store, work, group, by_engine)
        whole = merge(parts) if parts else Partial(group.number, {}, Costs())
        # Whether files that were not understood here have field ids is not known: a later column may be in
        # them by its name.
        understood = bool(parts) and not by_engine
        last_id = max(table.last_column_id, whole.highest_id)
        last_id = last_id if understood else NO_COLUMN_IS_YOUNGER
        in_parts = {ordinal for number, ordinal in shared if number == group.number}
        written[group.number] = _write(store, work, group, whole, in_parts, last_id)

    store.make_folder()
    for partial in run(spark, tasks, store.io_properties, store.location, progress):
        finish(work.groups[partial.group], partial)
    for group in work.groups:
        if group.number not in written:
            finish(group, None)
    return [written[group.number] for group in work.groups]


def _by_engine(
    spark: SparkSession | None,
    table: Table,
    store: Store,
    work: AnalyzePlan,
    group: plan.Group,
    ordinals: Sequence[int],
) -> list[Partial]:
    """Read files by Iceberg's own reader, or Parquet by Rookery's without Spark or if it refuses a type."""
    formats = group.files["format"].to_pylist()
    refuses = spark is None or refused(table, work.snapshot) is not None
    own = [ordinal for ordinal in ordinals if refuses and formats[ordinal] == "parquet"]
    others = [ordinal for ordinal in ordinals if not (refuses and formats[ordinal] == "parquet")]
    parts = [run_own(spark, table, store, work.snapshot, group, own)] if own else []
    if others:
        assert spark is not None  # the formats are checked first
        parts.append(run_engine(spark, table, work.snapshot, group, others))
    return parts


def _write(
    store: Store,
    work: AnalyzePlan,
    group: plan.Group,
    partial: Partial,
    shared: Set[int],
    last_column_id: int,
) -> Written:
    count = group.files.num_rows
    blobs = (
        blob
        for wanted, part in partial.indexes.items()
        for blob in wanted.kind.blobs(wanted.index, part, count, shared)
    )
    written = write_segment(
        store.segment_path(),
        Contents(ZoneMap.of(group.files), partial.thetas, partial.lengths.tables(count)),
        blobs,
        snapshot_id=work.snapshot.id,
        sequence_number=work.snapshot.sequence_number,
        io_properties=store.io_properties,
    )
    entry = SegmentEntry(
        name=written.location.rpartition("/")[2],
        files=count,
        field_ids=tuple(sorted(partial.thetas)),
        last_column_id=last_column_id,
        indexes=tuple(wanted.index for wanted in group.indexes),
        size=written.size,
        footer_size=written.footer_size,
        checksum=footer_checksum(written.metadata),
    )
    sketches = {field_id: theta.sketch() for field_id, theta in partial.thetas.items()}
    return Written(entry, sketches, partial.costs)
