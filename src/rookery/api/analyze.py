"""`analyze`: statistics collected."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from rookery.api.by_column import ByColumn
from rookery.api.columns import check_column_lists, check_column_sets
from rookery.api.lake import Lake, connect
from rookery.api.progress import in_notebook
from rookery.api.statistics import ColumnStats, column_stats, summary_of
from rookery.collect.progress import silent
from rookery.model import Engine, FormatError, Report, Sheet, counted, in_bytes, thousands
from rookery.sidecar import Store
from rookery.tables import Table
from rookery.tables.java_errors import translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AnalyzeReport", "analyze"]

log = logging.getLogger(__name__)

_WAYS = ("pages", "arrow", "engine")


@dataclass(frozen=True, slots=True)
class AnalyzeReport(ByColumn[ColumnStats], Report):
    """What an analysis did, and the statistics after it."""

    table: str
    snapshot_id: int | None
    dry_run: bool
    files: int
    files_to_read: int
    bytes_to_read: int
    files_read: int
    bytes_read: int
    values: int
    chunks: Mapping[str, int]  # column chunks by the way they were read
    rows_read: int  # for quantiles and frequent values
    seconds: float
    committed: bool
    skipped: Mapping[str, str]  # columns that are not covered in all files, and why
    columns: tuple[ColumnStats, ...]

    def sheets(self) -> Sequence[Sheet]:
        """A summary, and one line per column."""
        if self.snapshot_id is None:
            return [Sheet(f"{self.table}: the table is empty, there is nothing to analyze")]
        if self.dry_run:
            return [
                Sheet(
                    f"{self.table}: {self.files_to_read:,} of {counted(self.files, 'file')} would be read, "
                    f"at most {in_bytes(self.bytes_to_read)}"
                )
            ]
        if not self.files_read and not self.rows_read and not self.committed:
            return [Sheet(f"{self.table}: nothing has changed, nothing was read", notes=self._left_out())]
        notes = [
            f"read {in_bytes(self.bytes_read)} of {counted(self.files_read, 'file')}, "
            f"{counted(self.values, 'value')}, in {self.seconds:.2f} s"
        ]
        if self.rows_read:
            notes.append(f"quantiles and frequent values from {counted(self.rows_read, 'row')}")
        rows = tuple(
            (c.name, thousands(c.ndv), thousands(c.ndv_low), thousands(c.ndv_high), c.kind or "–")
            for c in self.columns
        )
        header = ("column", "ndv", "low", "high", "kind")
        return [
            Sheet(
                title=self.table,
                header=header,
                rows=rows,
                notes=(*notes, *self._left_out()),
                right=frozenset({1, 2, 3}),
            )
        ]

    def details(self) -> Sequence[str]:
        """How column chunks were read."""
        ways = ", ".join(f"{self.chunks[way]:,} by {way}" for way in _WAYS if self.chunks.get(way))
        return (f"{self.table}: column chunks read: {ways}",) if ways else ()

    def _left_out(self) -> tuple[str, ...]:
        return tuple(f"{name}: {why}" for name, why in self.skipped.items())


def _opened(
    spark: SparkSession | Callable[[], SparkSession], name: str, lake: Lake | None
) -> tuple[Table, Store]:
    """Open a table of *lake*; without one, what the session means by the name."""
    if lake is None and not callable(spark):
        from rookery.api.session_lake import locate  # which imports this module

        return locate(spark, name).load()
    return (lake or connect()).open(name)


def analyze(
    spark: SparkSession | Callable[[], SparkSession],
    name: str,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    column_sets: Sequence[Sequence[str]] = (),
    histogram: Sequence[str] = (),
    top_k: Sequence[str] = (),
    sample: int | None = None,
    drop_column_sets: Sequence[Sequence[str]] = (),
    drop_histogram: Sequence[str] = (),
    drop_top_k: Sequence[str] = (),
    full: bool = False,
    snapshot: int | None = None,
    dry_run: bool = False,
    lake: Lake | None = None,
    progress: Callable[[int, int, int, int], None] | None = None,
    engine: str = "auto",
    together: Sequence[Sequence[str]] = (),
    drop_together: Sequence[Sequence[str]] = (),
) -> AnalyzeReport:
    """Bring a table's statistics up to date, reading only the files that are new.

    Distinct values are counted for all columns, or for *columns*, without *exclude*, and for the sets of
    columns in *column_sets*. *histogram* and *top_k* name columns whose quantiles and frequent values are
    collected, from at most *sample* row groups per file, or from all rows if that is 0 or was never given.
    All of these are declared for the table: later calls keep them current, for any current snapshot, until
    they are dropped by *drop_column_sets*, *drop_histogram* or *drop_top_k*.
    *together* and *drop_together* are older names of *column_sets* and *drop_column_sets*.
    Without *lake*, the name means what it means in the session, whose catalogs need not be known to Python.
    *progress* is called with the number of files that have been read, the number to read, and the same of
    bytes; notebooks show it by default.

    *spark* is a session, or a function that returns one. *engine* is where the work is done: `spark`; `local`
    for this process, which needs no Java; or `auto`: on Spark if *spark* is a session, else in this process
    if it can do the work and the files are small. The function is called only if Spark does the work.
    """
    from rookery.collect.analyze import analyze as collect  # these bring numba, which `stats` does without
    from rookery.collect.choose import Choice, choose
    from rookery.spark.live import check_jvm

    chosen = Engine.named(engine)
    if not callable(spark):
        check_jvm(spark)
        chosen = Engine.SPARK if chosen is Engine.AUTO else chosen
    loaded, store = _opened(spark, name, lake)
    check_column_lists(
        columns=columns,
        exclude=exclude,
        histogram=histogram,
        top_k=top_k,
        drop_histogram=drop_histogram,
        drop_top_k=drop_top_k,
    )
    check_column_sets(
        column_sets=column_sets,
        drop_column_sets=drop_column_sets,
        together=together,
        drop_together=drop_together,
    )

    @cache
    def session() -> SparkSession:
        started = spark() if callable(spark) else spark
        check_jvm(started)
        return started

    choice = Choice(
        columns=tuple(columns),
        exclude=tuple(exclude),
        column_sets=tuple(tuple(names) for names in (*column_sets, *together)),
        histogram=tuple(histogram),
        top_k=tuple(top_k),
        sample=sample,
        drop_column_sets=tuple(tuple(names) for names in (*drop_column_sets, *drop_together)),
        drop_histogram=tuple(drop_histogram),
        drop_top_k=tuple(drop_top_k),
    )
    run = translated(f"analyze of {loaded.name}")(
        partial(
            collect,
            session,
            loaded,
            store,
            choice,
            snapshot_id=snapshot,
            dry_run=dry_run,
            engine=chosen,
            progress=progress or in_notebook(str(loaded.name)) or silent,
        )
    )
    outcome = run(full=full)
    of = outcome.snapshot_id
    known: tuple[ColumnStats, ...] = ()
    if of is not None and not dry_run:
        wanted = {field.id for part in choose(loaded.fields(loaded.snapshot(of)), choice) for field in part}
        try:
            summary = summary_of(loaded, store, of, outcome.state)
        except FormatError as error:  # a segment that this run did not need to read
            log.warning("the stored statistics are damaged and are collected again: %s", error)
            outcome = run(full=True)
            summary = summary_of(loaded, store, of, outcome.state)
        known = tuple(column_stats(column, of) for column in summary.columns if column.field.id in wanted)
    costs = outcome.costs
    return AnalyzeReport(
        table=str(loaded.name),
        snapshot_id=of,
        dry_run=dry_run,
        files=outcome.files,
        files_to_read=outcome.files_to_read,
        bytes_to_read=outcome.bytes_to_read,
        files_read=costs.files,
        bytes_read=costs.bytes_read,
        values=costs.values,
        chunks=dict(costs.chunks),
        rows_read=outcome.rows_read,
        seconds=outcome.seconds,
        committed=outcome.committed,
        skipped=outcome.skipped,
        columns=known,
    )
