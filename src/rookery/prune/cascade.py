"""The cascade: an ordered tuple of stages, each of which skips files on proof, over whole arrays.

A stage that fails, or cannot help, keeps every file and notes why.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rookery.indexes import KINDS
from rookery.indexes.view import SegmentRows
from rookery.model import ALWAYS, NEVER, Predicate, Snapshot, opaque_parts
from rookery.model.warned import warn
from rookery.prune import by_bounds, by_file_list, by_partition, by_theta
from rookery.prune.fileset import FileSet
from rookery.tables import Table

log = logging.getLogger(__name__)


_Left: TypeAlias = tuple[int, int, int]  # files, bytes, rows


@dataclass(frozen=True, slots=True)
class StageReport:
    """What a stage did: its input and output, its costs, and why it could not help."""

    name: str
    files_in: int
    files_out: int
    bytes_in: int
    bytes_out: int
    rows_in: int
    rows_out: int
    index_bytes: int
    ms: float
    note: str = ""

    @property
    def skipped(self) -> float:
        """The share of bytes that it skipped."""
        return 1 - self.bytes_out / self.bytes_in if self.bytes_in else 0.0


@dataclass(slots=True)
class Pruning:
    """A predicate on its way through the cascade."""

    table: Table
    snapshot: Snapshot
    files: FileSet
    predicate: Predicate
    keep: NDArray[np.bool_]
    alone: NDArray[np.bool_]  # files whose rows no other file replaces; the others are not skipped
    stages: list[StageReport] = field(default_factory=list)
    rows: dict[int, SegmentRows] = field(default_factory=dict)  # by segment, where an index knows rows
    has_failed: bool = False  # whether a stage could not be used because of an error

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The files that are left."""
        return np.flatnonzero(self.keep)

    def share_left(self) -> float:
        """The share of the table's bytes that is left."""
        sizes = self.files.files["size"].to_numpy()
        return float(sizes[self.keep].sum() / max(sizes.sum(), 1))

    def measure(self) -> _Left:
        """Return files, bytes and rows that are left."""
        sizes, rows = self.files.files["size"].to_numpy(), self.files.files["rows"].to_numpy()
        return int(self.keep.sum()), int(sizes[self.keep].sum()), int(rows[self.keep].sum())


Stage = Callable[[Pruning], tuple[NDArray[np.bool_], str]]
"""Returns which files may match, of all, and a note: why it could not help, or what it did."""

CASCADE: tuple[tuple[str, Stage], ...] = (
    ("manifest list scan", by_file_list.stage),
    ("partitions", by_partition.stage),
    ("manifest file scan", by_bounds.stage),
    ("inverted theta", by_theta.stage),
)
"""Those of indexes follow, in the order of the registry."""


def prune(table: Table, snapshot: Snapshot, files: FileSet, predicate: Predicate) -> Pruning:
    """Send a predicate through the cascade."""
    everything = np.ones(len(files), bool)
    pruning = Pruning(
        table=table,
        snapshot=snapshot,
        files=files,
        predicate=predicate,
        keep=everything,
        alone=table.stands_alone(files.files),
    )
    indexes = ((kind.stage, kind.prune) for kind in KINDS.values())
    left = pruning.measure()
    for name, stage in (*CASCADE, *indexes):
        left = _run(pruning, name, stage, left)
    return pruning


def _run(pruning: Pruning, name: str, stage: Stage, before: _Left) -> _Left:
    """Run a stage on what is left, and return what it leaves."""
    started = time.perf_counter()
    read_before = pruning.files.index_bytes()
    may_match, note = _judged(pruning, name, stage)
    keep = pruning.keep & (may_match | ~pruning.alone)
    after = before
    if not np.array_equal(keep, pruning.keep):
        pruning.keep = keep
        after = pruning.measure()
    read = pruning.files.index_bytes() - read_before
    took = (time.perf_counter() - started) * 1000
    pruning.stages.append(
        StageReport(
            name=name,
            files_in=before[0],
            files_out=after[0],
            bytes_in=before[1],
            bytes_out=after[1],
            rows_in=before[2],
            rows_out=after[2],
            index_bytes=read,
            ms=round(took, 3),
            note=note,
        )
    )
    return after


def _judged(pruning: Pruning, name: str, stage: Stage) -> tuple[NDArray[np.bool_], str]:
    everything = np.ones(len(pruning.files), bool)
    if not pruning.keep.any():
        return everything, "no file is left"
    if pruning.predicate == ALWAYS:
        return everything, "no predicate"
    if pruning.predicate == NEVER:
        return ~everything, "no row can match"
    try:
        may_match, note = stage(pruning)
    except Exception as error:  # noqa: BLE001  # an error here costs speed, never a row
        warn(log, f"the stage '{name}' could not be used: {error}")
        pruning.has_failed = True
        return everything, f"could not be used: {error}"
    if not note and may_match.all() and (parts := list(opaque_parts(pruning.predicate))):
        note = f"not understood: {parts[0].text} ({parts[0].reason})"
    return may_match, note
