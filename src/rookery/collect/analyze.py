"""From a table to its statistics: compare, plan, read, keep, register."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rookery.collect.choose import Choice, choose, choose_rows
from rookery.collect.keep import keep
from rookery.collect.prepare import Work, differs, prepare
from rookery.collect.progress import Progress, silent
from rookery.collect.refresh_rows import refresh_rows
from rookery.collect.rows import RowWants
from rookery.collect.segments import write_groups
from rookery.collect.statistics import is_registered, register, registrable
from rookery.collect.work import Costs
from rookery.model import Field
from rookery.store import State, Store
from rookery.tables.iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERYTHING = Choice()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an analysis did: the state it left, and what that cost."""

    state: State | None
    snapshot_id: int | None
    files: int
    files_to_read: int
    bytes_to_read: int
    costs: Costs
    seconds: float
    committed: bool
    skipped: tuple[Field, ...]  # columns of a type that cannot be sketched


def analyze(
    spark: SparkSession,
    table: IcebergTable,
    store: Store,
    choice: Choice = EVERYTHING,
    *,
    full: bool = False,
    snapshot_id: int | None = None,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """Bring a table's statistics up to date; only files that no state describes are read."""
    started = time.perf_counter()
    snapshot = table.snapshot(snapshot_id)
    if snapshot is None:
        return Outcome(None, None, 0, 0, 0, Costs(), time.perf_counter() - started, False, ())
    fields, skipped = choose(table.fields(snapshot), choice)
    work = prepare(table, store, snapshot, fields, full)
    wants = choose_rows(table.fields(snapshot), choice, work.declared)
    state, costs, committed = work.state, Costs(), False
    if not dry_run:
        if differs(work, wants):
            state, costs = _collect(spark, table, store, work, wants, progress)
        assert state is not None
        something = any(registrable(table, snapshot, state).values())
        if (costs.files and something) or not is_registered(table, snapshot, state):
            register(spark, table, snapshot, state, store.io_properties)
            committed = True
            store.collect_garbage(str(table.table.metadata.table_uuid), table.snapshots.keys())
    return Outcome(
        state,
        snapshot.id,
        work.live.count,
        sum(group.files.num_rows for group in work.groups),
        sum(int(group.files["size"].to_numpy().sum()) for group in work.groups),
        costs,
        time.perf_counter() - started,
        committed,
        skipped,
    )


def _collect(
    spark: SparkSession, table: IcebergTable, store: Store, work: Work, wants: RowWants, progress: Progress
) -> tuple[State, Costs]:
    """Read what is missing, then write it down: segments first, the state that names them last."""
    written = write_groups(spark, table, store, work, progress)
    rows = refresh_rows(spark, table, store, work, wants)
    state = keep(table, store, work, written, rows)
    return state, sum((part.costs for part in written), Costs())
