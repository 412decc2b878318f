"""`explain`: what each stage of the cascade skips for a predicate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rookery.api.where import Where, bind
from rookery.model import ALWAYS, Predicate, Report, Sheet, counted, in_bytes, opaque_parts
from rookery.prune.cascade import Pruning, StageReport, prune
from rookery.prune.fileset import file_set
from rookery.read.explain_inside import PAGES, ROW_GROUPS, look_inside
from rookery.read.survivors import survivors
from rookery.sidecar import Store
from rookery.tables import Table

__all__ = ["ExplainReport", "ExplainedFile"]

INSIDE = 64


@dataclass(frozen=True, slots=True)
class ExplainedFile:
    """A file that may have matching rows."""

    path: str
    size: int
    rows: int
    rows_left: int | None  # after looking inside, where that was done


@dataclass(frozen=True, slots=True)
class ExplainReport(Report):
    """The result of the cascade for a predicate."""

    table: str
    where: str
    snapshot_id: int | None
    stages: tuple[StageReport, ...]
    files: tuple[ExplainedFile, ...]
    not_understood: tuple[str, ...]
    ms: float

    @property
    def index_bytes(self) -> int:
        """How many bytes of sidecar files were read; footers of data files are not counted."""
        inside = (ROW_GROUPS, PAGES)
        return sum(stage.index_bytes for stage in self.stages if stage.name not in inside)

    def sheets(self) -> Sequence[Sheet]:
        """One line per stage."""
        header = ("stage", "files", "bytes", "rows", "skipped", "index read", "ms", "")
        rows = tuple(
            (
                stage.name,
                f"{stage.files_in:,} → {stage.files_out:,}",
                f"{in_bytes(stage.bytes_in)} → {in_bytes(stage.bytes_out)}",
                f"{stage.rows_in:,} → {stage.rows_out:,}",
                f"{stage.skipped:.1%}" if stage.bytes_in else "–",
                in_bytes(stage.index_bytes) if stage.index_bytes else "–",
                f"{stage.ms:.2f}",
                stage.note,
            )
            for stage in self.stages
        )
        notes = [f"not understood, treated as true: {part}" for part in self.not_understood]
        last = self.stages[-1] if self.stages else None
        if last is not None:
            first = self.stages[0]
            notes.append(
                f"{last.files_out:,} of {counted(first.files_in, 'file')} and {in_bytes(last.bytes_out)} of "
                f"{in_bytes(first.bytes_in)} are left to read; {in_bytes(self.index_bytes)} of index read, "
                f"{self.ms:.1f} ms"
            )
        title = f"{self.table} where {self.where}"
        return [
            Sheet(
                title=title,
                header=header,
                rows=rows,
                notes=tuple(notes),
                right=frozenset({1, 2, 3, 4, 5, 6}),
                spare=(6, 5, 3, 4, 2),
            )
        ]


def explain(
    table: Table,
    store: Store,
    where: Where,
    *,
    resolved_ms: float,
    snapshot: int | None = None,
    inside: int = INSIDE,
    zone: str = "UTC",
) -> ExplainReport:
    """Run the cascade for a predicate; of the files that are left, at most *inside* are examined inside."""
    started = time.perf_counter()
    current = table.at(snapshot)
    predicate = bind(where, table, current, zone)
    text = "true" if where is None else str(where)
    if current is None:
        return ExplainReport(
            table=str(table.name),
            where=text,
            snapshot_id=None,
            stages=(),
            files=(),
            not_understood=(),
            ms=resolved_ms,
        )
    files = file_set(table, store, current)
    planned = time.perf_counter()
    pruning = prune(table, current, files, predicate)
    resolution = _resolution(pruning, files.opening_cost(), resolved_ms + (planned - started) * 1000)
    stages = [resolution, *pruning.stages]
    few = len(pruning.numbers) <= inside
    left = survivors(pruning, store.io_properties, with_deletes=False) if few else None
    within, rows_left = look_inside(pruning, left, predicate, store.io_properties, inside)
    stages += within
    listed = files.files.take(pruning.numbers).select(["path", "size", "rows"]).to_pylist()
    return ExplainReport(
        table=str(table.name),
        where=text,
        snapshot_id=current.id,
        stages=tuple(stages),
        files=tuple(
            ExplainedFile(file["path"], file["size"], file["rows"], rows_left.get(file["path"]))
            for file in listed
        ),
        not_understood=_not_understood(predicate),
        ms=round(resolved_ms + (time.perf_counter() - started) * 1000, 3),
    )


def _not_understood(predicate: Predicate) -> tuple[str, ...]:
    return (
        tuple(f"{part.text} ({part.reason})" for part in opaque_parts(predicate))
        if predicate != ALWAYS
        else ()
    )


def _resolution(pruning: Pruning, read: int, ms: float) -> StageReport:
    files = pruning.files
    sizes, rows = int(files.files["size"].to_numpy().sum()), int(files.files["rows"].to_numpy().sum())
    state = files.state
    known = (
        "never analyzed"
        if state is None
        else f"{len(files) - files.fresh:,} of {counted(len(files), 'file')} known"
    )
    note = "; ".join([f"snapshot {pruning.snapshot.id}, {known}", *files.notes])
    count = len(files)
    return StageReport(
        name="catalog resolution",
        files_in=count,
        files_out=count,
        bytes_in=sizes,
        bytes_out=sizes,
        rows_in=rows,
        rows_out=rows,
        index_bytes=read,
        ms=round(ms, 3),
        note=note,
    )
