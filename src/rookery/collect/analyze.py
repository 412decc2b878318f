"""From a table to its statistics: compare, plan, read, keep, register."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from rookery.collect.choose import Choice, choose
from rookery.collect.declared_statistics import change_by, distributions
from rookery.collect.distribution_request import DistributionRequest
from rookery.collect.engine_choice import NeedsSparkError, not_committable, not_readable, session_for
from rookery.collect.keep import keep
from rookery.collect.prepare import AnalyzePlan, differs, prepare
from rookery.collect.progress import Progress, silent
from rookery.collect.readable import (
    needs_engine,
    unreadable,
    why_not_sketched,
    why_skipped,
)
from rookery.collect.refresh_distributions import RowsPlan, plan_rows, refresh_rows
from rookery.collect.segments import write_groups
from rookery.collect.task import Costs
from rookery.model import Engine, Field
from rookery.sidecar import State, Store
from rookery.sidecar.statistics_file import is_registered, register, registrable
from rookery.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERYTHING = Choice()


@dataclass(frozen=True, slots=True)
class AnalyzeResult:
    """What an analysis did: the state that results, and the costs."""

    state: State | None
    snapshot_id: int | None
    files: int
    files_to_read: int
    bytes_to_read: int
    costs: Costs
    rows_read: int  # for quantiles and frequent values
    seconds: float
    committed: bool
    skipped: Mapping[str, str]  # columns that are not covered in all files, and why


def analyze(
    session: Callable[[], SparkSession],
    table: Table,
    store: Store,
    choice: Choice = EVERYTHING,
    *,
    full: bool = False,
    snapshot_id: int | None = None,
    dry_run: bool = False,
    engine: Engine = Engine.SPARK,
    progress: Progress = silent,
) -> AnalyzeResult:
    """Bring a table's statistics up to date; only files that no state describes are read.

    The session is started only when there is something to do that *engine* leaves to Spark.
    """
    started = time.perf_counter()
    snapshot = table.snapshot(snapshot_id)
    if snapshot is None:
        return AnalyzeResult(
            state=None,
            snapshot_id=None,
            files=0,
            files_to_read=0,
            bytes_to_read=0,
            costs=Costs(),
            rows_read=0,
            seconds=time.perf_counter() - started,
            committed=False,
            skipped={},
        )
    columns = table.fields(snapshot)
    fields, skipped = choose(columns, choice)
    work = prepare(table, store, snapshot, fields, full, change_by(columns, choice))
    requested = distributions(work.declared, columns)
    wants = requested.without(_not_in_rows(table, work))
    state, costs, rows_read, committed = work.state, Costs(), 0, False
    if not dry_run:
        choose_session = partial(session_for, engine, session, table)
        reads = differs(work, wants)
        if reads:
            spark, (state, costs, rows_read) = _collect(choose_session, table, store, work, wants, progress)
        assert state is not None
        something = any(registrable(table, snapshot, state).values())
        if (costs.files and something) or not is_registered(table, snapshot, state):
            if not reads:
                spark = choose_session(not_committable(table), 0)
            register(spark, table, snapshot, state, store.io_properties)
            committed = True
            store.collect_garbage(table.uuid, table.snapshots.keys())
    return AnalyzeResult(
        state=state,
        snapshot_id=snapshot.id,
        files=work.live.count,
        files_to_read=sum(group.files.num_rows for group in work.groups),
        bytes_to_read=sum(int(group.files["size"].to_numpy().sum()) for group in work.groups),
        costs=costs,
        rows_read=rows_read,
        seconds=time.perf_counter() - started,
        committed=committed,
        skipped=_skipped(table, work, skipped) | _no_rows(requested, wants),
    )


def _skipped(table: Table, work: AnalyzePlan, not_sketched: Sequence[Field]) -> dict[str, str]:
    reasons = {field.name: why_not_sketched(table, field) for field in not_sketched}
    unable = unreadable(table, work.snapshot)
    return reasons | {
        field.name: why_skipped(table, field, work.skipped[field.id], unable)
        for field in work.fields
        if field.id in work.skipped
    }


def _not_in_rows(table: Table, work: AnalyzePlan) -> Set[int]:
    """The columns that distributions skip: files with deletes are read for them by Spark."""
    unable = unreadable(table, work.snapshot)
    by_spark = bool(unable) and bool(needs_engine(work.live.decoded).any())
    return work.skipped.keys() | (unable if by_spark else frozenset())


def _no_rows(requested: DistributionRequest, wants: DistributionRequest) -> dict[str, str]:
    left_out = [field for field in requested.fields if field not in wants.fields]
    why = "no histogram and no frequent values, as Spark must read some files and cannot read a {}"
    return {field.name: why.format(field.type) for field in left_out}


def _collect(
    choose_session: Callable[[str | None, int], SparkSession | None],
    table: Table,
    store: Store,
    work: AnalyzePlan,
    wants: DistributionRequest,
    progress: Progress,
) -> tuple[SparkSession | None, tuple[State, Costs, int]]:
    """Collect what is missing where it is best done; return in which session that was."""
    rows = plan_rows(table, work, wants)
    files = pa.concat_tables([*(group.files for group in work.groups), rows.files])
    size = int(files["size"].to_numpy().sum())
    spark = choose_session(not_committable(table) or not_readable(files), size)
    try:
        return spark, _collect_in(spark, table, store, work, rows, progress)
    except NeedsSparkError as error:  # which only reading shows
        spark = choose_session(str(error), size)
        return spark, _collect_in(spark, table, store, work, rows, progress)


def _collect_in(
    spark: SparkSession | None,
    table: Table,
    store: Store,
    work: AnalyzePlan,
    rows: RowsPlan,
    progress: Progress,
) -> tuple[State, Costs, int]:
    """Read what is missing, then write it: segments first, the state that names them last."""
    if spark is not None and table.not_loadable is None:
        table.check_loadable(spark)  # where a commit would fail, nothing need be read
    written = write_groups(spark, table, store, work, progress)
    index, sketches, rows_read = refresh_rows(spark, table, store, work, rows)
    state = keep(table, store, work, written, (index, sketches))
    return state, sum((part.costs for part in written), Costs()), rows_read
